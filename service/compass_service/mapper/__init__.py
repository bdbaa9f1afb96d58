"""Inner events in, frames out. Pure: no I/O and no clock."""

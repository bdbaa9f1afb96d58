"""The session log: append batches of already serialized frames, read from a seq."""

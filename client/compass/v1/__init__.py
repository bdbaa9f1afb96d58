"""Generated from proto/compass/v1 by `make proto`; never edited by hand."""

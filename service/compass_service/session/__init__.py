"""Sessions: the single writer of each, and the registry that keeps them."""

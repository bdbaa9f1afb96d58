"""The gRPC servicers: they translate, delegate, and decide nothing."""

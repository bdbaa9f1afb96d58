"""Session traces of coding agents: push what an agent does, tail it anywhere, and never miss how it ended."""

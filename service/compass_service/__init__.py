"""The session-trace server: mapper, session log, sessions, subscriptions, doors."""

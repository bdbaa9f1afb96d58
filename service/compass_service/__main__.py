"""`python -m compass_service` is `compass-trace-server`."""

from compass_service.server.main import main

main()

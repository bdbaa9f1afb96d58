"""The bridge: it starts a real agent, and is everything between that process and the service.

`process` runs the agent, `dialects` read what it writes, `feeding` decides what it is handed and when,
`spool` keeps on disk what is not acknowledged, and `bridge` is the life of one run. It restarts nothing by itself.
"""

from compass.bridge.bridge import Bridge, BridgeOptions, Ended
from compass.bridge.dialects import DIALECTS, Dialect
from compass.bridge.spool import Spool, SpoolBusyError, default_spool

__all__ = ["DIALECTS", "Bridge", "BridgeOptions", "Dialect", "Ended", "Spool", "SpoolBusyError", "default_spool"]

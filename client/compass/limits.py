"""Bounds that both sides of the wire share. Sizes are bytes of serialized protobuf unless the name says otherwise."""

MAX_FRAME_BYTES = 256 * 1024
MAX_RESPONSE_BYTES = 1024 * 1024
MAX_REQUEST_BYTES = 16 * 1024 * 1024

MAX_TEXT_CHUNK_BYTES = 128 * 1024
"""Assistant text, thinking and user messages longer than this come as several frames."""

MAX_TOOL_OUTPUT_CHARS = 4_000
MAX_PROSE_BYTES = 2_048
"""Failure text: message, problem, hint, reason."""

TRACE_LANE_FRAMES = 1_024
TRACE_LANE_BYTES = 1024 * 1024

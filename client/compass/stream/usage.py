"""Tokens as a dialect's table says where to find them, brought to one meaning."""

from compass.stream.chunks import Usage
from compass.stream.dialects import UsagePaths
from compass.stream.paths import Frame, total


def read_usage(paths: UsagePaths, frame: Frame, before: Usage) -> Usage:
    """Read the counts of one frame; what it does not count stays as it was before."""
    cache_read, cache_write = total(frame, paths.cache_read), total(frame, paths.cache_write)
    input_tokens, output_tokens = total(frame, paths.input), total(frame, paths.output)
    if input_tokens is not None and paths.input_has_cached:
        input_tokens = max(0, input_tokens - (cache_read or 0))
    return Usage(
        input_tokens=before.input_tokens if input_tokens is None else input_tokens,
        output_tokens=before.output_tokens if output_tokens is None else output_tokens,
        cache_read_tokens=before.cache_read_tokens if cache_read is None else cache_read,
        cache_write_tokens=before.cache_write_tokens if cache_write is None else cache_write,
    )

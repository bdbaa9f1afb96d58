"""Taking frames out of one session, the oldest first, and keeping what its row says of it exact.

Every function runs inside the caller's transaction and leaves no statement open.
"""

from typing import NamedTuple

import apsw

from compass_service.frames import LANE_PRIORITY, LANE_TRACE, LANE_TRIMMED, split
from compass_service.log.schema import SEQ_BITS, SEQ_MASK

CUT_RECORDS = 64
CUT_BYTES = 1024 * 1024
"""One cut looks at no more records, and takes no more once it has taken as many bytes: about a millisecond."""

_NO_LIMIT = 1 << 62
_TRACE_TRIMMED = bytes.maketrans(bytes((LANE_TRACE,)), bytes((LANE_TRIMMED,)))

_TRACE_FROM = "SELECT trace_from_seq FROM sessions WHERE key = ?"
_PROTECTED_FROM = "SELECT protected_from_seq FROM sessions WHERE key = ?"
_HEADERS = """
SELECT key, end_seq, num_trace, num_priority, at_unix_ms, length(frames) FROM records
WHERE key >= ? AND key < ? ORDER BY key LIMIT ?
"""
_OLDEST = "SELECT at_unix_ms FROM records WHERE key >= ? AND key < ? AND end_seq <= ? ORDER BY key LIMIT 1"
_OLDEST_WITH_TRACE = "SELECT at_unix_ms FROM records WHERE key >= ? AND key < ? AND num_trace > 0 ORDER BY key LIMIT 1"
_FIRST = "SELECT key, lanes FROM records WHERE key >= ? AND key < ? ORDER BY key LIMIT 1"
_NOTE = """
UPDATE sessions
SET num_bytes = num_bytes - :num_bytes, num_trimmed = num_trimmed + :num_frames,
    trace_from_seq = max(trace_from_seq, :next_seq), first_kept_seq = coalesce(:first_kept_seq, head_seq + 1)
WHERE key = :session_key
"""


class Limits(NamedTuple):
    """How far a cut goes: to the first record that is not older, or until enough is taken."""

    before_unix_ms: int = _NO_LIMIT
    num_bytes: int = _NO_LIMIT

    def are_met(self, at_unix_ms: int, num_bytes: int) -> bool:
        """Tell whether a record of that time stays, so many bytes having been taken before it."""
        return at_unix_ms >= self.before_unix_ms or num_bytes >= self.num_bytes


class Cut(NamedTuple):
    """What one cut took."""

    num_bytes: int
    is_done: bool
    """Whether the limits leave nothing more to take."""


class _Header(NamedTuple):
    key: int
    end_seq: int
    num_trace: int
    num_priority: int
    at_unix_ms: int
    num_bytes: int


def cut(connection: apsw.Connection, session_key: int, limits: Limits, *, trace_only: bool) -> Cut:
    """Take whole records, or only their trace frames, from the oldest on until a limit is met."""
    from_seq = connection.execute(_TRACE_FROM, (session_key,)).get if trace_only else 0
    headers = connection.execute(_HEADERS, (*_span(session_key, from_seq), CUT_RECORDS)).fetchall()
    free_seq = _NO_LIMIT if trace_only else _free_seq(connection, session_key)
    next_seq, num_bytes, num_frames = from_seq, 0, 0
    is_done = len(headers) < CUT_RECORDS
    for header in map(_Header._make, headers):
        if header.end_seq > free_seq:
            is_done = True
            break
        takes = header.num_trace if trace_only else header.num_trace + header.num_priority
        if takes:
            is_met = limits.are_met(header.at_unix_ms, num_bytes)
            if is_met or num_bytes >= CUT_BYTES:
                is_done = is_met
                break
            num_bytes += _take_trace(connection, header) if trace_only else _take_record(connection, header)
            num_frames += takes
        next_seq = header.end_seq
    _note(connection, session_key, num_bytes=num_bytes, num_frames=num_frames, next_seq=next_seq)
    return Cut(num_bytes, is_done)


def oldest_unix_ms(connection: apsw.Connection, session_key: int, *, trace_only: bool) -> int | None:
    """Tell when the oldest record that may be taken was written; with trace_only, that keeps a trace frame."""
    if trace_only:
        from_seq = connection.execute(_TRACE_FROM, (session_key,)).get
        found = connection.execute(_OLDEST_WITH_TRACE, _span(session_key, from_seq))
    else:
        free_seq = _free_seq(connection, session_key)
        first, end = _span(session_key)
        # Bounded by key too, else a protected session would be read to its end for a record that is not there.
        found = connection.execute(_OLDEST, (first, min(end, first + free_seq), free_seq))
    oldest: int | None = found.get
    return oldest


def _free_seq(connection: apsw.Connection, session_key: int) -> int:
    """Return the seq from which on no priority frame may be taken."""
    protected: int | None = connection.execute(_PROTECTED_FROM, (session_key,)).get
    return _NO_LIMIT if protected is None else protected


def _span(session_key: int, from_seq: int = 0) -> tuple[int, int]:
    """Keys of a session's records that begin at a seq or after it, half-open."""
    return session_key << SEQ_BITS | from_seq, session_key + 1 << SEQ_BITS


def _take_record(connection: apsw.Connection, header: _Header) -> int:
    connection.execute("DELETE FROM records WHERE key = ?", (header.key,))
    return header.num_bytes


def _take_trace(connection: apsw.Connection, header: _Header) -> int:
    """Take the trace frames of one record and leave its priority frames. Returns the bytes taken."""
    if header.num_priority == 0:
        return _take_record(connection, header)
    lanes, frames = connection.execute("SELECT lanes, frames FROM records WHERE key = ?", (header.key,)).get
    kept_lanes = lanes.replace(bytes((LANE_TRIMMED,)), b"")  # of the frames that are there
    kept = b"".join(frame for frame, lane in zip(split(frames), kept_lanes, strict=True) if lane == LANE_PRIORITY)
    row = (lanes.translate(_TRACE_TRIMMED), kept, header.key)
    connection.execute("UPDATE records SET num_trace = 0, lanes = ?, frames = ? WHERE key = ?", row)
    return header.num_bytes - len(kept)


def _note(connection: apsw.Connection, session_key: int, *, num_bytes: int, num_frames: int, next_seq: int) -> None:
    first = connection.execute(_FIRST, _span(session_key)).get
    facts = {
        "session_key": session_key,
        "num_bytes": num_bytes,
        "num_frames": num_frames,
        "next_seq": next_seq,
        "first_kept_seq": None if first is None else (first[0] & SEQ_MASK) + _num_trimmed_first(first[1]),
    }
    connection.execute(_NOTE, facts)


def _num_trimmed_first(lanes: bytes) -> int:
    """Count the frames before the first that is kept."""
    return len(lanes) - len(lanes.lstrip(bytes((LANE_TRIMMED,))))

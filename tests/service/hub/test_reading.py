"""Picking frames from records, and telling what retention took."""

import pytest

from compass.v1 import compass_pb2 as pb
from compass_service import frames
from compass_service.hub.reading import History
from compass_service.log.protocol import Record

T, P, X = frames.LANE_TRACE, frames.LANE_PRIORITY, frames.LANE_TRIMMED


def record(first_seq: int, *lanes: int) -> Record:
    kept = [seq for seq, lane in enumerate(lanes, first_seq) if lane != X]
    return Record("s", first_seq, bytes(lanes), tuple(frames.number(b"", seq) for seq in kept), b"", 0)


def read(delimited: list[bytes]) -> list[int | tuple[int, int, int]]:
    """Show frames as their seqs, and gaps as (first, last, dropped)."""
    response = pb.TailSessionResponse.FromString(b"".join(delimited))
    return [
        (frame.gap.first_seq, frame.gap.last_seq, frame.gap.dropped) if frame.HasField("gap") else frame.seq
        for frame in response.frames
    ]


def take(history: History, *records: Record, end_seq: int = 1_000) -> list[int | tuple[int, int, int]]:
    return [item for one in records for item in read(history.take(one, end_seq=end_seq, max_bytes=10_000).frames)]


def test_a_whole_record_after_the_cursor_comes_as_it_is():
    history = History("s", 4)
    stored = record(5, T, P, T)

    assert list(stored.frames) == history.take(stored, end_seq=100, max_bytes=10_000).frames
    assert history.cursor == 7


@pytest.mark.parametrize(
    ("cursor", "records", "end_seq", "expected"),
    [
        pytest.param(0, [record(1, T, T, T)], 100, [1, 2, 3], id="from the beginning"),
        pytest.param(1, [record(1, T, T, T)], 100, [2, 3], id="from inside a record"),
        pytest.param(0, [record(1, T, T, T)], 3, [1, 2], id="to inside a record"),
        pytest.param(0, [record(1, X, X, P, X, P)], 100, [(1, 2, 2), 3, (4, 4, 1), 5], id="around trimmed frames"),
        pytest.param(0, [record(1, P, X), record(3, X, P)], 100, [1, (2, 3, 2), 4], id="one gap over two records"),
        pytest.param(0, [record(11, T)], 100, [(1, 10, 10), 11], id="below what is kept"),
        pytest.param(5, [record(11, T)], 100, [(6, 10, 5), 11], id="a cursor inside what is gone"),
    ],
)
def test_every_absence_is_told_once_in_its_place(cursor, records, end_seq, expected):
    assert expected == take(History("s", cursor), *records, end_seq=end_seq)


def test_what_is_gone_at_the_end_is_told_when_the_log_was_read_up_to_there():
    history = History("s", 0)

    assert take(history, record(1, P, X, X)) == [1]
    assert read(history.cover(3)) == [(2, 3, 2)]
    assert history.cover(3) == []
    assert history.cursor == 3


def test_a_byte_budget_cuts_a_record_between_frames():
    history = History("s", 0)
    stored = record(1, T, T, T, T)
    budget = 2 * len(stored.frames[0])

    first = history.take(stored, end_seq=100, max_bytes=budget)
    second = history.take(stored, end_seq=100, max_bytes=budget)

    assert (read(first.frames), first.is_exhausted) == ([1, 2], False)
    assert (read(second.frames), second.is_exhausted) == ([3, 4], True)


def test_a_frame_larger_than_the_budget_comes_alone():
    history = History("s", 0)

    assert read(history.take(record(1, T, T), end_seq=100, max_bytes=1).frames) == [1]

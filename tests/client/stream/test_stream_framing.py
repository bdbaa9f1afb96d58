"""Framing: where lines and events end, and what is no event."""

import pytest

from compass.stream import ModelStreamError
from compass.stream.framing import MAX_EVENT_BYTES, MAX_STRAY_CHARS, Framing, NdjsonDecoder, RawEvent, SseDecoder


def read(body: bytes, *, framing: Framing = Framing.SSE, step: int = 0) -> list[RawEvent]:
    decoder = framing.decoder()
    events = []
    for at in range(0, len(body), step or len(body) or 1):
        events += decoder.feed(body[at : at + (step or len(body))])
    return [*events, *decoder.close()]


@pytest.mark.parametrize("step", [0, 1, 2, 3])
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_end_at_cr_lf_and_crlf_and_nowhere_else(end: str, step: int) -> None:
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"
    body = f"event: x{end}data: {odd}{end}data:{odd}{end}{end}data: second{end}{end}".encode()
    assert read(body, step=step) == [RawEvent(f"{odd}\n{odd}", "x"), RawEvent("second")]


def test_an_event_that_ends_in_cr_does_not_wait_for_the_byte_after_it() -> None:
    assert list(SseDecoder().feed(b"data: now\r\r")) == [RawEvent("now")]


@pytest.mark.parametrize("step", [0, 1])
def test_comments_ids_retry_hints_and_empty_data_are_no_events(step: int) -> None:
    body = b": ping\n\nid: 7\n\nretry: 10\n\ndata:\n\ndata\n\n:\n\ndata: one\n\n"
    assert read(body, step=step) == [RawEvent("one")]


def test_only_one_space_after_the_colon_belongs_to_the_framing() -> None:
    assert read(b"data:  two\n\n") == [RawEvent(" two")]


def test_a_last_event_counts_without_its_blank_line_and_without_its_line_end() -> None:
    assert read(b"data: one\n\ndata: last\n") == [RawEvent("one"), RawEvent("last")]
    assert read(b"data: one\n\ndata: last") == [RawEvent("one"), RawEvent("last")]


def test_an_event_name_belongs_to_its_event_only() -> None:
    assert read(b"event: error\n\ndata: plain\n\n") == [RawEvent("plain")]


def test_a_byte_order_mark_is_no_part_of_the_first_field() -> None:
    assert read(b"\xef\xbb\xbfdata: one\n\n", step=1) == [RawEvent("one")]


def test_bytes_that_are_no_utf_8_become_replacement_characters() -> None:
    assert read(b"data: a\xff\xe2\x82\n\n") == [RawEvent("a\ufffd\ufffd")]


@pytest.mark.parametrize("step", [0, 1])
def test_json_outside_of_any_field_is_given_out_as_stray(step: int) -> None:
    body = b'data: one\n\nnoise\n\n{\n  "error": {\n    "code": 1\n  }\n}\n'
    stray = [event for event in read(body, step=step) if event.is_stray]
    assert stray[-1] == RawEvent('{\n  "error": {\n    "code": 1\n  }\n}\n', is_stray=True)


def test_a_body_without_any_event_is_foreign_and_one_with_cut_fields_is_not() -> None:
    for body, is_foreign in ((b"<html>\n", True), (b"{}", True), (b"", False), (b"dat", False), (b": c\n", False)):
        decoder = SseDecoder()
        list(decoder.feed(body))
        list(decoder.close())
        assert decoder.is_foreign == is_foreign, body


def test_of_a_page_no_more_than_its_bound_is_kept() -> None:
    decoder = SseDecoder()
    for _ in range(10):
        assert all(len(event.data) <= MAX_STRAY_CHARS for event in decoder.feed(b"<p>{}\n" * 1_000))
    assert decoder.is_foreign


@pytest.mark.parametrize("step", [0, 1, 4])
def test_ndjson_lines_end_at_lf_and_nowhere_else(step: int) -> None:
    body = '{"a":\r1}\r\n\n  \n{"b":"\u2028"}\n{"c"'.encode()
    assert [event.data for event in read(body, framing=Framing.NDJSON, step=step)] == [
        '{"a":\r1}',
        '{"b":"\u2028"}',
        '{"c"',
    ]


@pytest.mark.parametrize("decoder", [SseDecoder, NdjsonDecoder])
def test_a_line_without_end_is_refused_at_its_bound(decoder) -> None:
    endless = decoder()
    list(endless.feed(b"data: " + b"x" * (MAX_EVENT_BYTES - 100)))
    with pytest.raises(ModelStreamError):
        list(endless.feed(b"x" * 200))


def test_an_event_of_endless_data_lines_is_refused_at_its_bound() -> None:
    endless = SseDecoder()
    line = b"data: " + b"x" * (MAX_EVENT_BYTES // 4) + b"\n"
    list(endless.feed(line * 4))
    with pytest.raises(ModelStreamError):
        list(endless.feed(line))

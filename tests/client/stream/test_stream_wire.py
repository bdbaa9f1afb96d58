"""Every sample through real HTTP: as written, one byte a packet, and cut at every byte."""

import httpx
import pytest

from client.stream.failed import FAILED
from client.stream.frames import Sample
from client.stream.outcome import outcome_of
from client.stream.provider import Provider, Reply, chunked, one_byte_a_packet, until_close, with_length
from client.stream.whole import WHOLE
from compass.failures import Category
from compass.stream import DIALECTS, ChunkStream, open_stream

BROKEN = {Category.MALFORMED_RESPONSE, Category.NETWORK}


def each(samples: list[Sample]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", samples, ids=lambda sample: f"{sample.dialect}: {sample.name}")


def opened(sample: Sample, url: str, client: httpx.AsyncClient) -> ChunkStream:
    return open_stream(sample.dialect, url=url, json={"model": "m"}, client=client)


def has_end(sample: Sample, cut: bytes) -> bool:
    """Tell whether a body that was cut holds its end mark. Gemini has none: there it is a stop in the last frame."""
    if sample.end_mark:
        return sample.end_mark in cut
    frames = [line.removeprefix(b"data:").strip() for line in cut.split(b"\n") if line.startswith(b"data:")]
    last = next((frame for frame in reversed(frames) if frame), b"")
    return (b"finishReason" in last and last.endswith(b"}]}")) or last.endswith(b"7}}")


def test_there_is_a_whole_sample_of_every_dialect() -> None:
    assert {sample.dialect for sample in WHOLE} == set(DIALECTS)


@each(WHOLE)
@pytest.mark.parametrize("framed", [until_close, with_length, chunked])
async def test_a_whole_answer_gives_its_chunks(
    sample: Sample, framed, served: Provider, client: httpx.AsyncClient
) -> None:
    outcome = await outcome_of(opened(sample, served.url(Reply((framed(sample.body),))), client))
    assert (sample.chunks, None) == (outcome.chunks, outcome.error)
    assert len(served.requests) == 1


@each(FAILED)
@pytest.mark.parametrize("framed", [until_close, with_length, chunked])
async def test_a_failed_answer_gives_what_came_and_raises(
    sample: Sample, framed, served: Provider, client: httpx.AsyncClient
) -> None:
    outcome = await outcome_of(opened(sample, served.url(Reply((framed(sample.body),))), client))
    assert sample.chunks == outcome.chunks
    assert outcome.error is not None
    assert (sample.category, sample.retryable) == (outcome.error.category, outcome.error.retryable)
    assert (sample.dialect, None) == (outcome.error.provider, outcome.error.status)
    assert "<" not in outcome.error.message
    assert len(served.requests) == 1


@each([*WHOLE, *FAILED])
async def test_one_byte_a_packet_changes_nothing(sample: Sample, served: Provider, client: httpx.AsyncClient) -> None:
    outcome = await outcome_of(opened(sample, served.url(one_byte_a_packet(until_close(sample.body))), client))
    assert sample.chunks == outcome.chunks
    assert sample.category == (outcome.error.category if outcome.error else None)


@pytest.mark.slow
@pytest.mark.timeout(60)
@each(WHOLE)
async def test_a_whole_answer_cut_at_any_byte_is_whole_only_with_its_end_mark(
    sample: Sample, served: Provider, client: httpx.AsyncClient
) -> None:
    for num_bytes in range(len(sample.body)):
        cut = sample.body[:num_bytes]
        at_close = await outcome_of(opened(sample, served.url(Reply((until_close(cut),))), client))
        assert at_close.chunks == sample.chunks[: len(at_close.chunks)]
        assert at_close.is_whole == has_end(sample, cut)
        assert at_close.is_whole or at_close.error.category is Category.MALFORMED_RESPONSE


@pytest.mark.slow
@pytest.mark.timeout(60)
@each([sample for sample in WHOLE if sample.name.startswith(("T", "one object"))])
async def test_a_whole_answer_whose_transport_breaks_at_any_byte_is_network_unless_its_end_mark_came(
    sample: Sample, served: Provider, client: httpx.AsyncClient
) -> None:
    for num_bytes in range(len(sample.body)):
        cut = sample.body[:num_bytes]
        outcome = await outcome_of(opened(sample, served.url(Reply((chunked(cut, is_ended=False),))), client))
        assert outcome.chunks == sample.chunks[: len(outcome.chunks)]
        assert has_end(sample, cut) or not outcome.is_whole
        assert outcome.is_whole or outcome.error.category is Category.NETWORK


@pytest.mark.slow
@pytest.mark.timeout(60)
@each([sample for sample in FAILED if sample.body and sample.category is not Category.MALFORMED_RESPONSE])
async def test_a_failed_answer_cut_at_any_byte_raises_too(
    sample: Sample, served: Provider, client: httpx.AsyncClient
) -> None:
    for num_bytes in range(len(sample.body)):
        outcome = await outcome_of(opened(sample, served.url(Reply((until_close(sample.body[:num_bytes]),))), client))
        assert outcome.chunks == sample.chunks[: len(outcome.chunks)]
        assert not outcome.is_whole
        assert outcome.error.category in {*BROKEN, sample.category}

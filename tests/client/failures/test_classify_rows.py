import json

import pytest
from classification_rows import ROWS, Row

from compass.failures import Verdict, classify

NEEDS_HEADERS = "openrouter in-flight budget"
"""Only its header tells this one from the others, and an agent's message holds no header."""

rows = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
told_rows = pytest.mark.parametrize("row", [row for row in ROWS if row.name != NEEDS_HEADERS], ids=lambda row: row.name)


def expected(row: Row, *, with_headers: bool = True) -> Verdict:
    told_in_headers = row.headers and not with_headers
    return Verdict(row.category, row.retryable, None if told_in_headers else row.wait_ms)


@rows
def test_a_response_or_frame_is_classified_as_the_provider_means_it(row):
    assert classify(provider=row.provider, status=row.status, headers=row.headers, body=row.body) == expected(row)


@rows
def test_the_verdict_is_the_same_for_text_and_bytes(row):
    for body in (row.text, row.text.encode()):
        assert classify(provider=row.provider, status=row.status, headers=row.headers, body=body) == expected(row)


@rows
def test_the_verdict_is_the_same_in_band_after_status_200(row):
    if row.status is None:
        assert classify(provider=row.provider, status=200, body=row.body) == expected(row)


@rows
def test_the_verdict_is_the_same_in_lower_case(row):
    headers = {name.lower(): value for name, value in row.headers.items()}
    verdict = classify(provider=row.provider, status=row.status, headers=headers, body=row.text.lower())
    assert verdict == expected(row)


@told_rows
def test_the_verdict_is_the_same_in_a_message_in_lower_case(row):
    assert classify(provider=row.provider, message=row.told.lower()) == expected(row, with_headers=False)


@told_rows
@pytest.mark.parametrize(
    "wrap",
    [
        json.dumps,
        lambda text: json.dumps({"message": text}),
        lambda text: json.dumps({"error": text}),
        lambda text: json.dumps({"error": {"message": text}}),
        lambda text: {"errorMessage": text},
    ],
)
def test_the_verdict_is_the_same_wrapped_in_json(row, wrap):
    wrapped = wrap(row.told)
    assert classify(provider=row.provider, message=wrapped) == expected(row, with_headers=False)
    if row.status:
        verdict = classify(provider=row.provider, status=row.status, headers=row.headers, body=wrap(row.text))
        assert verdict == expected(row)


@told_rows
@pytest.mark.parametrize(
    "report",
    [
        lambda row: row.told,
        lambda row: f"Error code: {row.status} - {row.text}" if row.status else f"Error: {row.text}",
        lambda row: f"{row.told} (attempt 3)" if row.status else f"Provider failed: {row.text} (attempt 3)",
        lambda row: f"{row.status or ''} {row.body!r}",
    ],
    ids=["as it is", "as an SDK prints it", "in prose", "as Python prints it"],
)
def test_the_verdict_is_the_same_embedded_in_an_agents_message(row, report):
    message = report(row)
    assert classify(provider=row.provider, message=message) == expected(row, with_headers=False)
    if row.status:
        verdict = classify(provider=row.provider, status=row.status, message=message)
        assert verdict == expected(row, with_headers=False)


@told_rows
def test_a_message_that_was_cut_off_in_its_body_still_counts(row):
    if not isinstance(row.body, str) and row.status:
        assert classify(provider=row.provider, message=row.told[:-2]) == expected(row, with_headers=False)

"""Every refusal of the server comes out as the class that says what to do, with its facts, read from no text."""

import asyncio

import pytest

import compass
from client.scripted import Tails, fail, running
from compass.errors import FieldViolation
from compass.status import translated


async def raised(script):
    async with running(Tails(script)) as address, compass.connect(address, retry_for_s=0.01) as client:
        try:
            async for _ in client.tail("s"):
                pass
        except compass.CompassError as error:
            return error.__cause__ if isinstance(error, compass.TailInterrupted) else error
    return None


FIELDS = (FieldViolation("since_seq", "is odd"),)


@pytest.mark.parametrize(
    ("script", "expected", "facts"),
    [
        (fail("NOT_FOUND", "SESSION_NOT_FOUND"), compass.SessionNotFoundError, {"session_id": "s"}),
        (fail("FAILED_PRECONDITION", "SESSION_STOPPED"), compass.SessionStoppedError, {"session_id": "s"}),
        (fail("OUT_OF_RANGE", "CURSOR_ABOVE_HEAD", head_seq=7), compass.CursorAboveHeadError, {"head_seq": 7}),
        (fail("OUT_OF_RANGE", "CURSOR_ABOVE_HEAD"), compass.CursorAboveHeadError, {"head_seq": None}),
        (
            fail("FAILED_PRECONDITION", "PRODUCER_FENCED", epoch=3, current_epoch=9),
            compass.ProducerFencedError,
            {"current_epoch": 9},
        ),
        (fail("ALREADY_EXISTS", "PRODUCER_ATTACHED"), compass.ProducerAttachedError, {"session_id": "s"}),
        (fail("ABORTED", "PRODUCER_REPLACED"), compass.ProducerReplacedError, {"session_id": "s"}),
        (fail("ABORTED", "SEQUENCE_JUMP", expected_seq=12), compass.SequenceJumpError, {"expected_seq": 12}),
        (fail("FAILED_PRECONDITION", "PRODUCER_NOT_ATTACHED"), compass.ProducerNotAttachedError, {"session_id": "s"}),
        (fail("NOT_FOUND", "PROMPT_NOT_FOUND", prompt_id="p3"), compass.PromptNotFoundError, {"prompt_id": "p3"}),
        (
            fail("FAILED_PRECONDITION", "PROMPT_CLOSED", prompt_id="p3", state="SESSION_PROMPT_STATE_CLAIMED"),
            compass.PromptClosedError,
            {"prompt_id": "p3", "state": "SESSION_PROMPT_STATE_CLAIMED"},
        ),
        (fail("ALREADY_EXISTS", "PROMPT_CONFLICT", prompt_id="p3"), compass.PromptConflictError, {"prompt_id": "p3"}),
        (fail("RESOURCE_EXHAUSTED", "INBOX_FULL"), compass.InboxFullError, {"session_id": "s"}),
        (fail("INVALID_ARGUMENT", "INVALID_EVENT", seq=4), compass.InvalidEventError, {"seq": 4}),
        (
            fail("INVALID_ARGUMENT", "INVALID_REQUEST", violations=FIELDS),
            compass.InvalidRequestError,
            {"violations": FIELDS},
        ),
        (fail("INVALID_ARGUMENT", "INVALID_SESSION_ID"), compass.InvalidSessionIdError, {}),
        (fail("INVALID_ARGUMENT", "INVALID_PAGE_TOKEN"), compass.InvalidPageTokenError, {}),
        (fail("INVALID_ARGUMENT", "UNKNOWN_DIALECT"), compass.UnknownDialectError, {}),
        (fail("RESOURCE_EXHAUSTED", "LOG_FULL", retry_after_s=1.5), compass.LogFullError, {"retry_after_s": 1.5}),
        (
            fail("UNAVAILABLE", "DRAINING", retry_after_s=2),
            compass.ServerUnavailableError,
            {"detail": "DRAINING", "retry_after_s": 2.0},
        ),
        (fail("INTERNAL", "INTERNAL", correlation_id="c1"), compass.ServerFailedError, {"correlation_id": "c1"}),
        (fail("UNIMPLEMENTED", "NOT_BUILT"), compass.UnsupportedError, {}),
        (fail("UNIMPLEMENTED"), compass.UnsupportedError, {}),
        (fail("RESOURCE_EXHAUSTED"), compass.MessageTooLargeError, {}),
        (fail("UNAUTHENTICATED", "TOKEN"), compass.RefusedError, {"code": "UNAUTHENTICATED", "server_reason": "TOKEN"}),
        (fail("PERMISSION_DENIED"), compass.RefusedError, {"code": "PERMISSION_DENIED"}),
        (fail("CANCELLED"), compass.ServerUnavailableError, {"detail": "CANCELLED"}),
        (fail("UNAVAILABLE", "LOG_CLOSED"), compass.ServerUnavailableError, {"detail": "LOG_CLOSED"}),
        (fail("UNKNOWN"), compass.ServerUnavailableError, {"detail": "UNKNOWN"}),
        (fail("INTERNAL"), compass.ServerUnavailableError, {"detail": "INTERNAL"}),
    ],
)
async def test_a_refusal_becomes_its_class_with_its_facts(script, expected, facts):
    error = await raised(script)
    assert type(error) is expected
    assert {name: getattr(error, name) for name in facts} == facts


async def test_a_reason_of_another_domain_is_not_ours():
    error = await raised(fail("NOT_FOUND", "SESSION_NOT_FOUND", domain="elsewhere"))
    assert type(error) is compass.RefusedError


async def test_a_fact_that_is_no_number_is_unknown():
    error = await raised(fail("OUT_OF_RANGE", "CURSOR_ABOVE_HEAD", head_seq="-1x"))
    assert error.head_seq is None


async def test_a_cancel_of_the_calling_task_passes_untouched():
    async def wait():
        with translated():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

import gc
import io
import json
import logging
import pickle
import subprocess
import sys
import traceback
import weakref

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compass.failures import PublicProblemError, observe, record_cause
from compass.failures.problem import UNFORESEEN

SECRET = "/var/lib/compass/CANARY.db"


class LogFullError(PublicProblemError):
    """A domain error with facts of its own."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} has no room")
        self.session_id = session_id


def fail() -> None:
    raise OSError(28, "No space left on device", SECRET)


def by_from() -> None:
    try:
        fail()
    except OSError as cause:
        raise LogFullError("s1") from cause


def by_context() -> None:
    try:
        fail()
    except OSError:
        raise LogFullError("s1")  # noqa: B904 - the case under test


def by_argument() -> None:
    try:
        fail()
    except OSError as cause:
        problem = PublicProblemError("session s1 has no room", cause=cause)
    raise problem


def by_nothing() -> None:
    try:
        fail()
    except OSError:
        raise LogFullError("s1") from None


@pytest.fixture(params=[by_from, by_context, by_argument])
def problem(request) -> PublicProblemError:
    with pytest.raises(PublicProblemError) as caught:
        request.param()
    return caught.value


def test_the_cause_is_seen_by_observe_alone(problem):
    observed = observe(problem)
    assert observed.problem == "session s1 has no room"
    assert observed.cause is not None
    assert observed.cause.type_name == "builtins.OSError"
    assert SECRET in observed.cause.text
    assert "in fail" in observed.cause.traceback


def test_no_attribute_chain_argument_repr_or_copy_leads_to_the_cause(problem):
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "m", None, (type(problem), problem, None)))
    seen = [
        str(problem),
        repr(problem),
        repr(problem.args),
        repr(vars(problem)),
        repr((problem.__cause__, problem.__context__)),
        repr(pickle.dumps(problem)),
        repr(problem.__reduce__()),
        json.dumps(vars(problem)),
        logged.getvalue(),
        "".join(traceback.format_exception(problem)),
        repr(structlog.processors.ExceptionRenderer()(None, "", {"exc_info": (type(problem), problem, None)})),
        *(repr(getattr(problem, name)) for name in dir(problem) if not name.startswith("__")),
    ]
    assert [text for text in seen if "CANARY" in text] == []


def test_a_problem_without_a_cause_has_none():
    assert observe(PublicProblemError("no")).cause is None
    with pytest.raises(PublicProblemError) as caught:
        by_nothing()
    assert observe(caught.value).cause is None


def test_an_error_without_reviewed_text_is_a_cause_and_its_problem_a_fixed_sentence():
    with pytest.raises(OSError) as caught:  # noqa: PT011 - any will do
        fail()
    observed = observe(caught.value)
    assert observed.problem == UNFORESEEN
    assert SECRET in observed.cause.text


def test_credentials_are_taken_out_of_a_cause_too():
    cause = observe(ValueError("postgres://u:CANARY@h/d refused")).cause
    assert "CANARY" not in repr(cause)
    assert "postgres://u:[redacted]@h/d" in cause.text


def test_the_facts_of_a_domain_error_stay(problem):
    if isinstance(problem, LogFullError):
        assert problem.session_id == "s1"


def test_the_cause_is_forgotten_with_the_error():
    with pytest.raises(PublicProblemError) as caught:
        by_argument()
    gone = weakref.ref(caught.value)
    del caught
    gc.collect()
    assert gone() is None


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


def test_a_span_gets_the_cause_under_the_id_that_the_client_gets(spans, problem):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with provider.get_tracer("t").start_as_current_span("rpc"):
        record_cause(observe(problem), correlation_id="c0ffee")
    (span,) = spans.get_finished_spans()
    assert span.attributes["compass.correlation_id"] == "c0ffee"
    assert span.status.description == "session s1 has no room"
    (event,) = span.events
    assert event.name == "exception"
    assert SECRET in event.attributes["exception.message"]
    assert event.attributes["exception.type"] == "builtins.OSError"


def test_without_a_span_nothing_is_recorded(problem):
    record_cause(observe(problem), correlation_id="c0ffee")


def test_without_the_extra_nothing_is_recorded():
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from compass.failures import observe, record_cause\n"
        "record_cause(observe(ValueError('x')), correlation_id='c0ffee')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})

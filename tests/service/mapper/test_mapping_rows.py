"""One test or more for each row of the mapping table."""

from mapping import AGENT_END, AGENT_START, TURN_START, Traced, delta, end, failed, kinds, only, start, text

from compass.v1 import compass_pb2 as pb


def test_a_plain_answer_gives_its_frames_in_order():
    traced = Traced()
    traced.push(AGENT_START, TURN_START, start(), delta("Hello "), delta("you"), end(text("Hello you")), AGENT_END)
    assert kinds(traced.frames) == [
        "WORKING",
        "activity",
        "activity",
        "assistant_text",
        "assistant_text",
        "message_end",
        "READY",
        "activity",
    ]


def test_a_bare_error_on_a_fresh_session_is_two_frames_content_first():
    frames = Traced().push(failed("401 no", errorStatus=401))
    assert kinds(frames) == ["session_error", "ERRORED"]
    error = only(frames, "session_error")
    assert error.kind == pb.SESSION_ERROR_KIND_ERROR
    assert error.status == 401

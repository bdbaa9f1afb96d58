"""Failures, aborts and retries, as the fold shows them."""

from histories import History

from compass.failures import Category
from compass.fold import CardOutcome, fold
from compass.v1 import compass_pb2 as pb


def test_a_failure_is_one_card_and_lies_beside_the_message_it_cut_off():
    history = History()
    history.user("Go", "u1")
    history.text("Half an ans", "m1")
    history.cut("m1")
    history.failure("429 slow down", "m1")

    view = fold(history.frames)

    (card,) = view.errors
    assert (card.outcome, card.attempts) == (CardOutcome.FAILED, ())
    assert card.error.error.message == "429 slow down"
    assert card.error.category is Category.RATE_LIMITED
    assert view.messages[1].errors == (card.error,)
    assert view.messages[1].incomplete is True
    assert "429" not in view.messages[1].text


def test_a_failure_before_any_chunk_lies_beside_the_user_message():
    history = History()
    history.user("Go", "u1")
    history.failure("401 no key")

    (message,) = fold(history.frames).messages

    assert [error.error.message for error in message.errors] == ["401 no key"]
    assert message.text == "Go"


def test_a_failure_before_the_first_message_lies_beside_none():
    history = History()
    history.failure("no model")
    history.user("Go", "u1")

    view = fold(history.frames)

    assert [error.error.message for error in view.errors_before_messages] == ["no model"]
    assert view.messages[0].errors == ()


def test_a_retry_after_the_first_token_shows_the_answer_once():
    history = History()
    history.user("Plan it", "u1")
    history.text("Here is the plan", "m1")
    history.cut("m1")
    failure = history.failure("reset", "m1")
    history.retry(failure)
    history.text("Here is the plan: step 1", "m2")
    history.end("m2")

    view = fold(history.frames)

    assert [message.text for message in view.messages] == ["Plan it", "Here is the plan: step 1"]
    assert [attempt.text for attempt in view.messages[1].superseded] == ["Here is the plan"]
    assert all(message.errors == () for message in view.messages)
    (card,) = view.errors
    assert card.outcome is CardOutcome.RECOVERED
    assert [(attempt.retry.attempt, attempt.message.text) for attempt in card.attempts] == [(1, "Here is the plan")]


def test_retries_that_succeed_are_one_card_with_nothing_standing():
    history = History()
    history.user("Go", "u1")
    for attempt in (1, 2, 3):
        history.retry(history.failure("429"), attempt=attempt)
    history.text("Done", "m1")
    history.end("m1")

    view = fold(history.frames)

    (card,) = view.errors
    assert card.outcome is CardOutcome.RECOVERED
    assert [attempt.retry.attempt for attempt in card.attempts] == [1, 2, 3]
    assert all(message.errors == () for message in view.messages)


def test_retries_that_all_fail_are_one_card_with_one_failure_standing():
    history = History()
    history.user("Go", "u1")
    for attempt in (1, 2, 3):
        history.retry(history.failure(f"429 #{attempt}"), attempt=attempt)
    history.failure("429 #4")

    view = fold(history.frames)

    (card,) = view.errors
    assert card.outcome is CardOutcome.FAILED
    assert card.error.error.message == "429 #4"
    assert [attempt.error.error.message for attempt in card.attempts] == ["429 #1", "429 #2", "429 #3"]
    assert [error.error.message for error in view.messages[0].errors] == ["429 #4"]


def test_a_retry_that_is_awaited_is_shown_as_one():
    history = History()
    history.user("Go", "u1")
    history.retry(history.failure("529"))

    (card,) = fold(history.frames).errors

    assert card.outcome is CardOutcome.RETRYING


def test_retries_that_the_user_cancels_end_as_an_abort():
    history = History()
    history.user("Go", "u1")
    history.retry(history.failure("529"))
    history.abort()

    view = fold(history.frames)

    assert [card.outcome for card in view.errors] == [CardOutcome.ABORTED]
    assert [abort.error.abort_origin for abort in view.aborts] == [pb.SESSION_ABORT_ORIGIN_USER]
    assert view.messages[0].errors == view.aborts


def test_a_retry_that_never_came_does_not_swallow_the_next_turn():
    history = History()
    history.user("Go", "u1")
    history.retry(history.failure("529"))
    history.user("Again", "u2")
    history.failure("401")

    cards = fold(history.frames).errors

    assert [card.outcome for card in cards] == [CardOutcome.ABANDONED, CardOutcome.FAILED]
    assert [len(card.attempts) for card in cards] == [1, 0]


def test_a_steering_message_does_not_end_a_call_that_is_retried():
    history = History()
    history.user("Go", "u1")
    history.retry(history.failure("529"))
    history.user("And hurry", "u2", steering=True)
    history.failure("529 again")

    (card,) = fold(history.frames).errors

    assert (card.outcome, len(card.attempts)) == (CardOutcome.FAILED, 1)


def test_a_session_that_stops_while_it_retries_has_abandoned_the_call():
    history = History()
    history.retry(history.failure("529"))
    history.state(pb.AGENT_SESSION_STATE_STOPPED)

    assert [card.outcome for card in fold(history.frames).errors] == [CardOutcome.ABANDONED]


def test_a_message_taken_back_is_not_adopted_by_a_later_turn():
    history = History()
    history.text("half", "m1")
    history.cut("m1")
    history.retry(history.failure("reset", "m1"))
    history.failure("reset before any chunk")
    history.user("Again", "u2")
    history.text("Fine", "m2")

    view = fold(history.frames)

    assert [message.text for message in view.messages] == ["Again", "Fine"]
    assert view.messages[1].superseded == ()
    assert view.errors[0].attempts[0].message.text == "half"


def test_an_abort_is_never_an_error():
    history = History()
    history.user("Go", "u1")
    history.text("Half", "m1")
    history.cut("m1", stop_reason=pb.SESSION_STOP_REASON_ABORTED)
    history.abort("m1", origin=pb.SESSION_ABORT_ORIGIN_WATCHDOG)

    view = fold(history.frames)

    assert view.errors == ()
    (abort,) = view.aborts
    assert abort.is_abort
    assert abort.category is None
    assert view.messages[1].errors == (abort,)
    assert view.messages[1].incomplete is True


def test_a_bare_repetition_claims_no_supersession():
    history = History()
    history.user("Go", "u1")
    history.failure("529")
    history.text("Done", "m1")
    history.end("m1")

    view = fold(history.frames)

    assert [card.outcome for card in view.errors] == [CardOutcome.FAILED]
    assert [error.error.message for error in view.messages[0].errors] == ["529"]


def test_a_failure_that_names_an_unknown_message_lies_beside_the_one_before_it():
    history = History()
    history.user("Go", "u1")
    history.failure("reset", "m-lost")

    assert [error.error.message for error in fold(history.frames).messages[0].errors] == ["reset"]

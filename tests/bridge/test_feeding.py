"""What the agent is handed and when, step by step: no process, no clock."""

import json

import pytest

from bridge.feeding_samples import Talk
from compass.bridge.dialects import AgentState

IDLE = AgentState()
BUSY = AgentState(is_streaming=True)
COMPACTING = AgentState(is_compacting=True)


def test_a_prompt_is_fed_once_the_agent_says_that_it_rests():
    talk = Talk()
    talk.hand("do it")
    assert talk.fed == []
    talk.says(BUSY)
    assert talk.fed == []
    talk.says(IDLE)
    assert talk.fed == ["do it"]


def test_nothing_is_fed_while_a_retry_or_a_compaction_is_due_whatever_the_agent_says():
    for begin, end in (("auto_retry_start", "auto_retry_end"), ("compaction_start", "compaction_end")):
        talk = Talk()
        talk.event(begin)
        talk.hand("do it")
        talk.says(IDLE)
        assert talk.fed == []
        talk.event(end)
        talk.says(IDLE)
        assert talk.fed == ["do it"]


def test_overlapping_compactions_hold_until_the_last_of_them_ends():
    talk = Talk()
    for kind in ("compaction_start", "auto_compaction_start", "compaction_end"):
        talk.event(kind)
    talk.hand("do it")
    talk.says(IDLE)
    assert talk.fed == []
    talk.event("auto_compaction_end")
    talk.says(IDLE)
    assert talk.fed == ["do it"]


def test_a_steer_goes_to_a_working_agent_past_a_prompt_that_waits_but_not_into_a_compaction():
    talk = Talk()
    talk.hand("later")
    talk.hand("now", steer=True)
    talk.says(COMPACTING)
    assert talk.fed == []
    talk.says(BUSY)
    assert talk.fed == ["now"]


def test_user_messages_belong_to_prompts_in_the_order_of_feeding():
    talk = Talk()
    talk.feed("first")
    talk.feed("second", steer=True, state=BUSY)
    assert talk.user("expanded first") == "first"
    assert talk.user("expanded second") == "second"
    assert talk.user("nobody's") is None


def test_a_message_that_says_exactly_what_a_later_prompt_says_is_that_prompts():
    talk = Talk()
    talk.feed("/template")
    talk.feed("exactly this", steer=True, state=BUSY)
    assert talk.user("exactly this") == "exactly this"
    assert talk.user("what the template says") == "/template"


def test_what_an_agent_says_to_itself_in_the_users_role_takes_no_prompt():
    talk = Talk()
    talk.feed("mine")
    assert talk.user("a reminder", attribution="agent") is None
    assert talk.user("mine") == "mine"


def test_a_refused_prompt_is_given_back():
    talk = Talk()
    talk.feed("no", accepted=False)
    assert talk.given_back == ["no"]


def test_an_accepted_prompt_is_given_back_once_the_agent_was_seen_idle_twice_without_it():
    talk = Talk()
    talk.feed("lost")
    talk.says(IDLE)
    assert talk.given_back == []
    talk.says(IDLE)
    assert talk.given_back == ["lost"]


@pytest.mark.parametrize(
    "state",
    [BUSY, COMPACTING, AgentState(num_pending=1)],
    ids=["streaming", "compacting", "pending"],
)
def test_an_accepted_prompt_stays_with_an_agent_that_is_not_idle(state):
    talk = Talk()
    talk.feed("kept")
    for _ in range(5):
        talk.says(state)
    assert talk.given_back == []


def test_a_prompt_that_was_not_accepted_yet_stays_with_an_idle_agent():
    talk = Talk()
    talk.feed("slow to be taken", accepted=None)
    for _ in range(5):
        talk.says(IDLE)
    assert talk.given_back == []


def test_an_event_in_between_means_that_the_agent_is_alive_to_it():
    talk = Talk()
    talk.feed("coming")
    talk.says(IDLE)
    talk.event("agent_start")
    talk.says(IDLE)
    assert talk.given_back == []


def test_a_steer_that_is_pending_in_a_resting_agent_comes_behind_the_prompt_that_wakes_it():
    talk = Talk()
    talk.feed("steer", steer=True, state=BUSY)
    talk.hand("prompt")
    talk.says(AgentState(num_pending=1))
    talk.accept("prompt")
    assert talk.user("expanded prompt") == "prompt"
    assert talk.user("expanded steer") == "steer"


def test_a_second_prompt_waits_until_the_first_one_has_shown():
    talk = Talk()
    talk.feed("first")
    talk.hand("second")
    talk.says(IDLE)
    assert talk.fed == ["first"]
    talk.user("first")
    talk.says(IDLE)
    assert talk.fed == ["first", "second"]


def test_a_command_of_an_extension_is_settled_by_its_answer():
    talk = Talk(commands=[{"name": "todo", "source": "extension"}, {"name": "fix", "source": "prompt"}])
    talk.feed("/todo add it")
    talk.feed("/fix", accepted=True)
    assert talk.settled == ["/todo add it"]


def test_an_abort_is_forwarded_at_once():
    talk = Talk()
    talk.hand("waits")
    talk.feeding.abort()
    assert json.loads(json.dumps(talk.written[-1]))["type"] == "abort"

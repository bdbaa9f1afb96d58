"""Random histories, seen live, on replay and with repaired gaps, against a model that reads a plain list."""

from histories import History
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from compass.fold import SessionFold, fold
from compass.v1 import compass_pb2 as pb


class Model:
    """What the rules say of a whole history, by scanning its list of frames for each question."""

    def __init__(self, frames: list[pb.AgentSessionFrame]) -> None:
        self.frames = frames
        self.events = [(frame.seq, frame.event) for frame in frames if frame.HasField("event")]

    def of_kind(self, kind: str) -> list[tuple[int, str, object]]:
        found = [(seq, event) for seq, event in self.events if event.WhichOneof("event") == kind]
        return [(seq, event.event_id, getattr(event, kind)) for seq, event in found]

    def taken_back(self) -> set[str]:
        return {activity.supersedes_event_id for _, _, activity in self.of_kind("activity")} - {""}

    def hidden_messages(self) -> set[str]:
        failures = self.of_kind("session_error")
        return {error.message_id for _, event_id, error in failures if event_id in self.taken_back()} - {""}

    def texts(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for _, event in self.events:
            match event.WhichOneof("event"):
                case "user_message" | "assistant_text" as kind:
                    body = getattr(event, kind)
                    texts[body.message_id] = texts.get(body.message_id, "") + body.text
                case "message_end":
                    texts.setdefault(event.message_end.message_id, "")
        return {message_id: text for message_id, text in texts.items() if message_id not in self.hidden_messages()}

    def outcomes(self) -> dict[str, bool]:
        ends = self.of_kind("message_end")
        return {end.message_id: end.outcome == pb.SESSION_MESSAGE_OUTCOME_INCOMPLETE for _, _, end in ends}

    def standing(self) -> list[str]:
        errors = self.of_kind("session_error")
        failures = [(event_id, e) for _, event_id, e in errors if e.kind == pb.SESSION_ERROR_KIND_ERROR]
        return [event_id for event_id, _ in failures if event_id not in self.taken_back()]

    def aborts(self) -> list[str]:
        errors = self.of_kind("session_error")
        return [event_id for _, event_id, e in errors if e.kind == pb.SESSION_ERROR_KIND_ABORTED]

    def state(self) -> int:
        return next((frame.state for frame in reversed(self.frames) if frame.state), 0)


class Sessions(RuleBasedStateMachine):
    """One agent writes a history; one reader gets it with losses and fetches what it missed when it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.reader = SessionFold()
        self.given = 0
        self.missing: list[int] = []
        self.open_message: str | None = None
        self.failed_event: str | None = None
        self.num_messages = 0

    def begin(self, role: str) -> str:
        self.num_messages += 1
        return f"{role}{self.num_messages}"

    @rule(text=st.text(max_size=3), steering=st.booleans())
    def user_speaks(self, text: str, steering: bool) -> None:
        self.history.user(text, self.begin("u"), steering=steering)

    @rule(text=st.text(min_size=1, max_size=3))
    def assistant_speaks(self, text: str) -> None:
        if self.open_message is None:
            self.open_message = self.begin("m")
        self.history.text(text, self.open_message)

    @precondition(lambda self: self.open_message)
    @rule(usage=st.integers(0, 9))
    def message_ends(self, usage: int) -> None:
        self.history.end(self.open_message, usage=usage)
        self.open_message = None

    @rule()
    def turn_fails(self) -> None:
        if self.open_message is not None:
            self.history.cut(self.open_message)
        self.failed_event = self.history.failure("no", self.open_message or "")
        self.open_message = None

    @precondition(lambda self: self.failed_event)
    @rule()
    def retry_begins(self) -> None:
        self.history.retry(self.failed_event)
        self.failed_event = None

    @rule()
    def turn_is_aborted(self) -> None:
        if self.open_message is not None:
            self.history.cut(self.open_message, stop_reason=pb.SESSION_STOP_REASON_ABORTED)
        self.history.abort(self.open_message or "")
        self.open_message = None

    @rule(number=st.integers(0, 2), output=st.sampled_from(["", "a", "b"]))
    def tool_works(self, number: int, output: str) -> None:
        self.history.tool_update(f"t{number}", output)

    @rule(number=st.integers(0, 2))
    def tool_is_called(self, number: int) -> None:
        self.history.tool(f"t{number}", f"Tool {number}")

    @rule(dropped=st.integers(1, 9))
    def producer_overflows(self, dropped: int) -> None:
        self.history.overflow(dropped)

    @rule(state=st.sampled_from([1, 2, 3, 4]))
    def state_changes(self, state: int) -> None:
        self.history.state(state)

    @rule(lost=st.data())
    def reader_reads(self, lost: st.DataObject) -> None:
        """Give the reader what is new, less a random part of it, each missing run as a gap in its place."""
        new = [frame.seq for frame in self.history.frames[self.given :]]
        missing = set(lost.draw(st.lists(st.sampled_from(new), unique=True))) if new else set()
        for item in self.history.without(*missing)[self.given :]:
            self.reader.apply(item)
        self.given = len(self.history.frames)
        self.missing += sorted(missing)

    @rule()
    def reader_gets_everything(self) -> None:
        for frame in self.history.frames[self.given :]:
            self.reader.apply(frame)
        self.given = len(self.history.frames)
        for seq in self.missing:
            self.reader.apply(self.history.frames[seq - 1])
        self.missing = []

    @precondition(lambda self: self.missing)
    @rule(choice=st.data())
    def reader_fetches_one(self, choice: st.DataObject) -> None:
        seq = choice.draw(st.sampled_from(self.missing))
        self.missing.remove(seq)
        self.reader.apply(self.history.frames[seq - 1])

    @invariant()
    def gaps_are_exactly_what_is_missing(self) -> None:
        ranged = [gap for gap in self.reader.view.gaps if gap.seq is None]
        told = [seq for gap in ranged for seq in range(gap.first_seq, gap.last_seq + 1)]

        assert told == sorted(self.missing)
        assert sum(gap.dropped for gap in ranged) == len(self.missing)

    @invariant()
    def a_repaired_view_is_the_replayed_view(self) -> None:
        if self.given == len(self.history.frames) and not self.missing:
            assert self.reader.view == fold(self.history.frames)

    @invariant()
    def a_replayed_view_is_what_the_rules_say(self) -> None:
        view, model = fold(reversed(self.history.frames)), Model(self.history.frames)

        assert {message.message_id: message.text for message in view.messages} == model.texts()
        for message in view.messages:
            if message.role == pb.TRANSCRIPT_ROLE_ASSISTANT:
                assert message.incomplete == model.outcomes().get(message.message_id)
        beside = [error for message in view.messages for error in message.errors]
        beside += view.errors_before_messages
        assert sorted(error.event_id for error in beside) == sorted(model.standing() + model.aborts())
        carded = [card.error.event_id for card in view.errors if card.outcome.value == "failed"]
        assert carded == model.standing()
        attempts = [attempt.error.event_id for card in view.errors for attempt in card.attempts]
        assert set(attempts) == model.taken_back()
        assert [abort.event_id for abort in view.aborts] == model.aborts()
        assert view.state == model.state()
        assert view.head_seq == len(self.history.frames)


Sessions.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSessions = Sessions.TestCase

from compass.retry import Patience


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def patience(retry_for_s, clock, jitter=1.0):
    return Patience(retry_for_s, clock=clock, jitter=lambda: jitter)


def test_pauses_grow_to_a_limit():
    found = patience(None, Clock())
    assert [found.pause_s() for _ in range(7)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_jitter_shortens_a_pause_by_half_at_most():
    assert patience(None, Clock(), jitter=0.0).pause_s() == 0.05


def test_what_the_server_asks_for_is_the_least():
    assert patience(None, Clock()).pause_s(retry_after_s=1.5) == 1.5


def test_progress_makes_the_next_failure_a_first_one():
    found = patience(10, Clock())
    found.pause_s()
    found.pause_s()
    found.progress()
    assert not found.is_failing
    assert found.pause_s() == 0.1


def test_patience_ends_when_nothing_has_succeeded_for_too_long():
    clock = Clock()
    found = patience(10, clock)
    assert found.pause_s() is not None
    clock.now += 9.9
    assert found.pause_s() is None
    found.progress()
    assert found.pause_s() is not None


def test_a_pause_that_would_pass_the_end_is_not_begun():
    assert patience(1, Clock()).pause_s(retry_after_s=2) is None


def test_patience_without_a_limit_never_ends():
    clock = Clock()
    found = patience(None, clock)
    for _ in range(100):
        clock.now += 1e6
        assert found.pause_s() is not None

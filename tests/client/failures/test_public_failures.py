from compass import failures, run_events


def test_the_public_names_of_failures_are_pinned():
    assert failures.__all__ == [
        "Category",
        "Cause",
        "Observed",
        "PublicProblemError",
        "Verdict",
        "bound_prose",
        "classify",
        "classify_exception",
        "digest",
        "failure_from",
        "merge_receipts",
        "observe",
        "public_prose",
        "readable",
        "receipt_from",
        "record_cause",
        "redact",
        "redact_event",
        "redact_value",
    ]


def test_the_public_names_of_run_events_are_the_kinds_and_what_they_take():
    kinds = set(run_events.KINDS)
    assert set(run_events.__all__) - kinds == {
        "KINDS",
        "Actor",
        "Envelope",
        "Failure",
        "Field",
        "Kind",
        "RunEvent",
        "project",
    }
    assert kinds <= set(run_events.__all__)

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass.failures.embedded import read_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=4)


@given(objects)
def test_json_in_prose_is_read_as_it_is(value):
    assert read_text(f"429 {json.dumps(value)} (attempt 3)") == ([value], "429   (attempt 3)")


@given(objects)
def test_what_python_prints_is_read_as_it_is(value):
    values, prose = read_text(f"Error: {value!r}")
    assert (values, prose) == ([value], "Error:")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("no json here", []),
        ('{"a": 1', [{"a": 1}]),
        ('502 {"a": {"b": "cut of', [{"a": {"b": "cut of"}}]),
        ('{"a": tru', [{"a": "tru"}]),
        ("{'a': None, 'b': (1, 2.5)}", [{"a": None, "b": [1, 2.5]}]),
        ("{'a': none, 'b': true}", [{"a": None, "b": True}]),
        ('{"a":1} and {"b":2}', [{"a": 1}, {"b": 2}]),
        ("see {placeholder} then {\"a\": 1}", [{"a": 1}]),
        ('{\\"a\\": \\"b\\"}', [{"a": "b"}]),
        ('data: {"a": 1}\n\ndata: [DONE]', [{"a": 1}]),
        ('"text"', ["text"]),
        ("{'a': 'it\\'s \"quoted\"'}", [{"a": "it's \"quoted\""}]),
        ("{" * 5_000, []),
        ("", []),
    ],
)  # fmt: skip
def test_what_stands_in_a_text_is_found(text, values):
    found = [value for value in read_text(text).values if value not in ({}, [], ["DONE"])]
    assert [value for value in found if not (isinstance(value, dict) and set(value) == {"placeholder"})] == values


@settings(deadline=None)
@given(st.text("{}[]()'\":,\\ a1", max_size=400))
def test_no_text_makes_it_fail(text):
    read_text(text)


@pytest.mark.parametrize(
    "text", ["{" * 10**6, '{"' * 500_000, "[{'a':" * 200_000, "\\" * 10**6, '{"a":"' + "\\" * 10**6]
)
def test_hostile_text_is_read_in_bounded_time(text):
    read_text(text)

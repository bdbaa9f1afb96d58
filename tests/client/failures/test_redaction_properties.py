from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_redaction import KEYS

from compass.failures import bound_prose, public_prose, redact
from compass.failures.credentials import NAME_NEEDLES, SECRET_NAME
from compass.failures.redaction import _SHAPES

FRAGMENTS = [
    "sk-",
    "sk-abcdef123",
    "Bearer ",
    "basic ",
    "token",
    "password",
    "api_key",
    "authorization",
    "cookie",
    ":",
    "=",
    '"',
    "'",
    "\\",
    '\\"',
    "\n",
    "\\n",
    " ",
    "://",
    "@",
    "user:pass@host",
    "[redacted]",
    "[",
    "]",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "eyJabcdef.ghijkl",
    "AKIA1234567890ABCD",
    "abc123456789",
    "QUJDREVGR0g6OmFiYw==",
    "&key=",
    "?sig=",
    "--token ",
    "-u ",
    ",",
    ";",
    ".",
    "%20",
    "null",
    "x",
    "a=b",
    "digest ",
    "🙂",
    "\ud83d",
    "\u2028",
]
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=14).map("".join)


@settings(max_examples=1_000, deadline=None)
@given(texts)
@example("://sk-sk-&key=user:pass@host")
def test_redaction_is_idempotent(text):
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=300, deadline=None)
@given(
    texts, st.sampled_from(["sk-ant-CANARY0123456789", "ghp_CANARY0123456789", '"api_key":"CANARY"', "Bearer CANARY01"])
)
def test_a_secret_set_apart_goes_whatever_stands_around_it(text, secret):
    assert "CANARY" not in redact(f"{text} {secret} {text}")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=1_500) | texts | st.text("é🙂a", min_size=600, max_size=3_000))
def test_bounded_prose_is_a_valid_prefix_within_its_bound(text):
    bounded = bound_prose(text)
    encoded = bounded.encode()
    assert len(encoded) <= 2_048
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert whole.startswith(bounded)
    assert bounded == whole or len(encoded) > 2_044


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    )
)
def test_anything_becomes_public_prose(value):
    assert len(public_prose(value).encode()) <= 2_048


@settings(max_examples=300, deadline=None)
@given(texts, st.sampled_from(KEYS))
def test_what_is_looked_for_first_never_hides_a_shape(text, key):
    text = f"{text} {key}"
    for needles, pattern, _ in _SHAPES:
        assert pattern.search(text) is None or any(needle in text.lower() for needle in needles)
    low = text.lower()
    assert SECRET_NAME.search(low) is None or any(needle in low for needle in NAME_NEEDLES)

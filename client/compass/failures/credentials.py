"""What credentials look like: the shapes of keys that providers hand out, and the names under which secrets stand.

Data, read by the redactor. Every pattern is linear: it starts at an edge and never gives back what it has taken.
"""

import re

EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Where a token may begin: not inside a word, but right after an escape."""

_PART = r"(?:[A-Za-z0-9_*•…-]|\\u00[0-9a-fA-F]{2}|\.++(?=[A-Za-z0-9_*•…-]))"

_KEY_SHAPES = {
    "sk-": rf"(?i:sk)-{_PART}{{6,}}+",  # OpenAI, Anthropic, DeepSeek, OpenRouter and many more; masked ones too
    "sk_ rk_ pk_": r"(?i:[srp]k)_(?:(?i:live|test|prod)_[A-Za-z0-9]{8,}+|(?=[a-z]{0,24}[0-9A-Z])[A-Za-z0-9]{16,}+)",
    "gsk_": r"(?i:gsk)_[A-Za-z0-9_*]{8,}+",
    "xai-": r"(?i:xai)-[A-Za-z0-9]{12,}+",
    "hf_": r"(?i:hf)_(?:[A-Za-z0-9]{16,}+|(?=[a-z]{0,15}[0-9])[A-Za-z0-9]{8,}+)",
    "r8_": r"(?i:r8)_[A-Za-z0-9]{12,}+",
    "ghp_ gho_ ghu_ ghs_ ghr_": r"(?i:gh[pousr])_[A-Za-z0-9_]{10,}+",
    "github_pat_": r"(?i:github_pat)_[A-Za-z0-9_]{10,}+",
    "glpat- gldt- glrt-": r"(?i:glpat|gldt|glrt)-[A-Za-z0-9_-]{10,}+",
    "aiza": r"(?i:AIza)[A-Za-z0-9_*.-]{10,}+",
    "aq.": r"AQ\.[A-Za-z0-9_-]{20,}+",
    "ya29.": r"(?i:ya29)\.[A-Za-z0-9_.-]{10,}+",
    "1//0": r"1//0[A-Za-z0-9_-]{20,}+",
    "gocspx-": r"(?i:GOCSPX)-[A-Za-z0-9_-]{10,}+",
    "akia asia abia acca": r"(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}+|(?:akia|asia)[a-z0-9]{16}(?![a-z0-9]))",
    "absk": r"ABSK[A-Za-z0-9+/=]{20,}+",
    "xox xapp-": r"(?i:xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}+",
    "npm_": r"(?i:npm)_[A-Za-z0-9]{20,}+",
    "pypi-": r"(?i:pypi)-[A-Za-z0-9_-]{24,}+",
    "nvapi csk tvly": r"(?i:nvapi|p?csk|tvly)[-_][A-Za-z0-9_-]{10,}+",
    "pplx- pa-": r"(?i:pplx|pa)-[A-Za-z0-9]{24,}+",
    "tgp_v1_ esecret_ whsec_": r"(?i:tgp_v1|esecret|whsec)_[A-Za-z0-9_-]{16,}+",
    "fw_ jina_ ntn_": r"(?i:fw|jina|ntn)_[A-Za-z0-9]{16,}+",  # names in code begin so, too
    "lin_api_ lsv2_ dop_v1_": r"(?i:lin_api|lsv2_pt|lsv2_sk|dop_v1)_[A-Za-z0-9_-]{16,}+",
    "shpat_ sbp_ dckr_pat_ sntrys_": r"(?i:shpat|sbp|dckr_pat|sntrys)_[A-Za-z0-9_-]{16,}+",
    "sg.": r"SG\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+",
    "dapi": r"(?i:dapi)[0-9a-f]{24,}+",
    "hvs.": r"(?i:hvs)\.[A-Za-z0-9_-]{16,}+",
    "age-secret-key-": r"AGE-SECRET-KEY-1[A-Z0-9]{10,}+",
    "eyj": r"(?<![_-])(?i:eyJ)[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+(?:\.[A-Za-z0-9_-]*+)?",  # a JWT
}
"""By what a text must hold, in lower case, for the shape to be in it at all. Most texts hold none."""

KEY_SHAPES = tuple(
    (tuple(needles.split()), re.compile(f"{EDGE}{shape}[A-Za-z0-9_-]*+")) for needles, shape in _KEY_SHAPES.items()
)

PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
PRIVATE_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)

BEARER = re.compile(
    EDGE + r"(?P<scheme>bearer(?:\s|\\u0020|%20|\+){1,4})(?P<value>(?!(?:bearer|basic)\b)[A-Za-z0-9._~+/=*•…-]{6,}+)",
    re.IGNORECASE,
)
BASIC = re.compile(
    EDGE + r"(?P<scheme>basic(?:\s|\\u0020|%20|\+){1,4})(?P<value>[A-Za-z0-9+/_-]{6,}+={0,2})", re.IGNORECASE
)

QUERY = re.compile(
    r"(?P<name>(?:[?&;]|\\u0026)(?:key|sig|auth|pass|code_verifier|session|sid)=)"
    r"(?P<value>(?:\[redacted\]|[^\s&\"'<>#\\;,)\]}])++)",
    re.IGNORECASE,
)
FLAG = re.compile(
    r"(?P<name>--(?:[a-z0-9]{1,16}-){0,3}(?:key|token|password|secret|passwd|passphrase)"
    r"(?:\s{1,4}|\\*+[\"'],\s{0,4}\\*+[\"']))(?P<value>(?!-)[^\s\"'\\]++)",
    re.IGNORECASE,
)
USER_FLAG = re.compile(
    r"(?P<name>(?<![^\s\"'])(?:-u|--user)(?:[ =]|[\"'],\s?)[\"']?[^\s:\"']{1,128}+:)(?P<value>[^\s\"'\\]++)",
)
"""A flag and its value are words of a command, or items of a list of arguments."""

_SEP = r"[_ -]?"
_CERTAIN = (
    rf"api{_SEP}keys?(?: provided)?|(?:app|consumer){_SEP}key"
    rf"|access{_SEP}key(?:{_SEP}id)?|secret{_SEP}(?:access{_SEP})?key|private{_SEP}key|signing{_SEP}key"
    rf"|encryption{_SEP}key|account{_SEP}key|shared{_SEP}access{_SEP}key|subscription{_SEP}key|master{_SEP}key"
    rf"|(?:access|refresh|id|auth|session|bearer|security|csrf|bot){_SEP}token|client{_SEP}secret|app{_SEP}secret"
    r"|password|passwd|passphrase|pwd"
)
_LIKELY = r"token|secret|credentials?|signature|jwt"
_HEADERS = r"authorization|set-cookie|cookie|x-(?:[a-z]{1,8}-)?api-key"

SECRET_NAME = re.compile(
    rf"(?:(?P<header>{_HEADERS})|(?P<certain>{_CERTAIN})|(?P<likely>{_LIKELY}))"
    r"(?P<close>\\*+[\"'])?[`*]{0,3}\s{0,4}"
    r"(?P<sep>:=|=>|==?|:|,\s{0,4}\\*+[\"']value\\*+[\"']\s{0,4}:|,(?=\s{0,4}b?\\*+[\"'])|%3[ad])"
    r"[`*]{0,3}\s{0,4}(?(header)(?:\[(?!redacted\])\s{0,4})?|(?:\[\s{0,4}(?=\\*+[\"']))?)(?:b(?=[\"']))?",
)
"""The name of a secret in lower-cased text, up to its value. What stands before it is no matter: dbpassword. The value
may be the first of a list (of a header, as Go prints it, without quotes), or that of an entry: `{"name": "x-api-key",
"value": ...}`."""
NAME_NEEDLES = ("key", "token", "secret", "pass", "pwd", "credential", "signature", "jwt", "authorization", "cookie")

SECRET_KEY = re.compile(rf"(?:{_CERTAIN}|{_LIKELY}|{_HEADERS})$", re.IGNORECASE)
"""The end of a mapping's key under which a secret stands."""

_PROSE = """
    a an and are as at bool boolean bytes cannot denied empty error expired false for format from has header if in
    incorrect int invalid is it malformed may missing must no none not null number object of on optional or provided
    rejected required revoked scheme should str string text that the to true type undefined unset was were with wrong
    auth authentication authorization token tokens credential credentials key keys realm value values
"""
PLAIN_VALUES = frozenset(_PROSE.split())
"""Words that stand where a secret could, and are prose."""

CODE = re.compile(
    r"(?:self|this|os|process|config|settings|env|ctx|request|args|options|params|props|secrets)[.\[]"
    r"|[A-Za-z_][\w.]{0,128}\[[\w:-]{0,64}\]?$"
    r"|[A-Za-z_][\w.]{0,128}\((?:[^()]{0,128}\)?)?$"
    r"|\$\{?[A-Z_][A-Z0-9_]{0,64}\}?$",
)
"""What stands where a secret could, and is an expression or the name of a variable."""

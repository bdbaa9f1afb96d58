import json

import pytest

from compass.failures import redact, redact_event, redact_value

CANARY = "CANARYc4n4ry0123456789abcdefgh"
MARK = "[redacted]"

KEYS = [
    f"sk-{CANARY}",
    f"sk-proj-{CANARY}_x-y",
    f"sk-ant-api03-{CANARY}-AA",
    f"sk-or-v1-{CANARY}",
    f"sk_live_{CANARY}",
    f"gsk_{CANARY}",
    f"xai-{CANARY}",
    f"AIzaSy{CANARY}_-1",
    f"hf_{CANARY}",
    f"r8_{CANARY}",
    f"ghp_{CANARY}",
    f"gho_{CANARY}",
    f"ghs_{CANARY}",
    f"github_pat_11{CANARY}_x",
    f"glpat-{CANARY}",
    f"npm_{CANARY}",
    f"pypi-AgEIc{CANARY}",
    f"xoxb-123-{CANARY}",
    f"nvapi-{CANARY}",
    f"pplx-{CANARY}",
    f"tgp_v1_{CANARY}",
    f"fw_{CANARY}",
    f"csk-{CANARY}",
    f"tvly-{CANARY}",
    f"lsv2_pt_{CANARY}",
    f"ya29.{CANARY}",
    f"GOCSPX-{CANARY}",
    f"SG.{CANARY}.{CANARY}",
    f"hvs.{CANARY}",
    f"dop_v1_{CANARY}",
    f"shpat_{CANARY}",
    f"AQ.{CANARY}",
    f"1//0{CANARY}",
    f"ABSK{CANARY}",
    f"secret: {CANARY}",
    "AKIACANARYCANARY1234",
    "ASIACANARYCANARY1234",
    f"eyJhbGciOiJI.{CANARY}.{CANARY}",
    "dapi0123456789abcdef0123456789abcdef",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Incorrect API key provided: {}. You can find it at https://x.example/keys",
        "key={}&alt=sse",
        '{{"error": "bad key {}"}}',
        "line one\\n{}\\nline two",
        "a%20{}%20b",
        "('{}',)",
    ],
)
def test_keys_of_providers_go_wherever_they_stand(key, around):
    redacted = redact(around.format(key))
    assert "CANARY" not in redacted
    assert "0123456789abcdef" not in redacted
    assert MARK in redacted


@pytest.mark.parametrize(
    "masked", ["sk-abc***xyz", "sk-proj-********abcd", "sk-...9f2c", "sk-ab••••yz", "AIzaSy...wxyz01"]
)
def test_a_masked_key_goes_whole(masked):
    assert redact(f"401 Incorrect API key provided: {masked} (type=x)") in {
        f"401 Incorrect API key provided: {MARK} (type=x)",
        f"401 Incorrect API key provided: {masked} (type=x)" if masked == "sk-...9f2c" else "",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer CANARY while calling gpt-4o", f"Authorization: {MARK} while calling gpt-4o"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: {MARK}"),
        ("Proxy-Authorization: CANARY", f"Proxy-Authorization: {MARK}"),
        ('{"Authorization": "Bearer CANARY", "model": "gpt-4o"}', f'{{"Authorization": "{MARK}", "model": "gpt-4o"}}'),
        ("{'authorization': 'CANARY'}", f"{{'authorization': '{MARK}'}}"),
        (
            "[(b'authorization', b'Bearer CANARY'), (b'host', b'h')]",
            f"[(b'authorization', b'{MARK}'), (b'host', b'h')]",
        ),
        ('["x-api-key", "CANARY"]', f'["x-api-key", "{MARK}"]'),
        ('Authorization: Digest username="u", response="CANARY"\nstatus 401', f"Authorization: {MARK}\nstatus 401"),
        ("AWS4-HMAC-SHA256 Credential=AKIACANARYCANARY1234/x, Signature=CANARY", None),
        ("sent bearer CANARY0001 to it", f"sent bearer {MARK} to it"),
        ("Basic dXNlcjpDQU5BUlk= was refused", f"Basic {MARK} was refused"),
        ("Cookie: sid=CANARY; theme=dark\nstatus 403", f"Cookie: {MARK}\nstatus 403"),
        ("Set-Cookie: sid=CANARY; Path=/; HttpOnly", f"Set-Cookie: {MARK}"),
        ('{"cookie": "sid=CANARY"}', f'{{"cookie": "{MARK}"}}'),
        ("X-Api-Key: CANARY", f"X-Api-Key: {MARK}"),
        ("x-goog-api-key: CANARY", f"x-goog-api-key: {MARK}"),
        ('{"api_key":"CANARY","n":1}', f'{{"api_key":"{MARK}","n":1}}'),
        ('{"apiKey": "CANARY"}', f'{{"apiKey": "{MARK}"}}'),
        ("{'access_token': 'CANARY'}", f"{{'access_token': '{MARK}'}}"),
        ('{"client_secret" : "CANARY"}', f'{{"client_secret" : "{MARK}"}}'),
        ('{"password": "CAN\\"ARY", "user": "bob"}', f'{{"password": "{MARK}", "user": "bob"}}'),
        ('{"password": "CANARY\\\\", "user": "bob"}', f'{{"password": "{MARK}", "user": "bob"}}'),
        ('"{\\"api_key\\": \\"CANARY\\", \\"n\\": 1}"', f'"{{\\"api_key\\": \\"{MARK}\\", \\"n\\": 1}}"'),
        (
            '"{\\"p\\": \\"{\\\\\\"token\\\\\\":\\\\\\"CANARY\\\\\\",\\\\\\"n\\\\\\":1}\\"}"',
            f'"{{\\"p\\": \\"{{\\\\\\"token\\\\\\":\\\\\\"{MARK}\\\\\\",\\\\\\"n\\\\\\":1}}\\"}}"',
        ),
        ('{"api_key": "CANARY', f'{{"api_key": "{MARK}'),
        ('{"token": "CAN\\u0041RY"}', f'{{"token": "{MARK}"}}'),
        ("https://h/v1?key=CANARY&alt=sse", f"https://h/v1?key={MARK}&alt=sse"),
        ("https://h/v1?alt=sse&access_token=CANARY#x", f"https://h/v1?alt=sse&access_token={MARK}"),
        ("https://h/b?sv=1&sig=CANARY%3D&se=2", f"https://h/b?sv=1&sig={MARK}&se=2"),
        ("https://h/b?X-Amz-Signature=CANARY&x=1", f"https://h/b?X-Amz-Signature={MARK}&x=1"),
        ("https:\\/\\/h\\/v1?key=CANARY\\u0026alt=sse", f"https:\\/\\/h\\/v1?key={MARK}\\u0026alt=sse"),
        ("grant_type=x&client_secret=CANARY&scope=y", f"grant_type=x&client_secret={MARK}&scope=y"),
        ("postgres://bob:CANARY@db.internal:5432/app", f"postgres://bob:{MARK}@db.internal:5432/app"),
        ("postgres://bob:CAN/ARY@db/app", f"postgres://bob:{MARK}@db/app"),
        ("amqp://bob:CAN@RY@mq/%2f", f"amqp://bob:{MARK}@mq/%2f"),
        ("redis://:CANARY@cache:6379/0", f"redis://:{MARK}@cache:6379/0"),
        ("mongodb+srv://u:CANARY@c0.x.net/?w=majority", f"mongodb+srv://u:{MARK}@c0.x.net/?w=majority"),
        ("postgres:\\/\\/bob:CANARY@db\\/app", f"postgres:\\/\\/bob:{MARK}@db\\/app"),
        ("a://u:CANARY@h1,b://v:CANARY@h2", f"a://u:{MARK}@h1,b://v:{MARK}@h2"),
        ("https://CANARYCANARYCANARY1234@github.com/x", f"https://{MARK}@github.com/x"),
        ("login bob:CANARY@host failed", f"login bob:{MARK}@host failed"),
        ("Server=db;User Id=sa;Password=CANARY;Encrypt=yes", f"Server=db;User Id=sa;Password={MARK};Encrypt=yes"),
        ("AccountName=x;AccountKey=CANARY==;EndpointSuffix=y", f"AccountName=x;AccountKey={MARK};EndpointSuffix=y"),
        (
            "OPENAI_API_KEY=CANARY AWS_SECRET_ACCESS_KEY=CANARY HOME=/root",
            f"OPENAI_API_KEY={MARK} AWS_SECRET_ACCESS_KEY={MARK} HOME=/root",
        ),
        ("password: CANARY", f"password: {MARK}"),
        ("aws_secret_access_key = /CANARY+abc", f"aws_secret_access_key = {MARK}"),
        ("token=CANARY secret=CANARY", f"token={MARK} secret={MARK}"),
        ("token = CANARY0123456789", f"token = {MARK}"),
        ("curl --api-key CANARY -u bob:CANARY https://h", f"curl --api-key {MARK} -u bob:{MARK} https://h"),
        ("api key = 'CANARY'", f"api key = '{MARK}'"),
        ("dbPassword => CANARY", f"dbPassword => {MARK}"),
        ("api_key: Bearer CANARY", f"api_key: {MARK}"),
        ("Bearer Bearer CANARY01", f"Bearer Bearer {MARK}"),
        ("password%3DCANARY", f"password%3D{MARK}"),
        ('{"name": "X-Api-Key", "value": "CANARY"}', f'{{"name": "X-Api-Key", "value": "{MARK}"}}'),
        ('{"key":"DB_PASSWORD","value":"CANARY","n":1}', f'{{"key":"DB_PASSWORD","value":"{MARK}","n":1}}'),
        ('{"X-Api-Key":["CANARY"],"n":[1]}', f'{{"X-Api-Key":["{MARK}"],"n":[1]}}'),
        ('{"Set-Cookie": ["sid=CANARY; Path=/"]}', f'{{"Set-Cookie": ["{MARK}"]}}'),
        (
            "Command '['curl', '--api-key', 'CANARY', '-u', 'bob:CANARY']' returned non-zero exit status 22.",
            f"Command '['curl', '--api-key', '{MARK}', '-u', 'bob:{MARK}']' returned non-zero exit status 22.",
        ),
        (
            "map[Authorization:[Bearer CANARY] X-Api-Key:[CANARY] Accept:[*/*]]",
            f"map[Authorization:[{MARK}] X-Api-Key:[{MARK}] Accept:[*/*]]",
        ),
        ("Incorrect API key provided: CANARY. See https://h", f"Incorrect API key provided: {MARK}. See https://h"),
        ("`api_key`: CANARY and **password**: CANARY", f"`api_key`: {MARK} and **password**: {MARK}"),
        ("Authorization: Splunk CANARY0123 for gpt-4o", f"Authorization: {MARK} for gpt-4o"),
        ("authorization: `Bearer CANARY0123`", f"authorization: {MARK}"),
        ('{"app_key": "CANARY", "consumerKey": "CANARY"}', f'{{"app_key": "{MARK}", "consumerKey": "{MARK}"}}'),
    ],
)
def test_secrets_go_and_what_stands_around_them_stays(text, expected):
    redacted = redact(text)
    assert "CANARY" not in redacted
    assert "ARY" not in redacted.replace(MARK, "")
    assert expected is None or redacted == expected


PEM = "\n".join(
    ["-----BEGIN RSA PRIVATE KEY-----", *["CANARY" * 10 + "ab+/"] * 3, "CANA==", "-----END RSA PRIVATE KEY-----"]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"before\n{PEM}\nafter", f"before\n{MARK}\nafter"),
        (f"before {PEM[:120]}", f"before {MARK}"),
        (f"note: tail\n{PEM[40:]}\nafter", f"note: tail\n{MARK}\nafter"),
        (json.dumps({"key": PEM, "n": 1}), f'{{"key": "{MARK}", "n": 1}}'),
        (PEM.replace("RSA ", "OPENSSH "), MARK),
        (PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), MARK),
        (f"{PEM} and {PEM}", f"{MARK} and {MARK}"),
    ],
)
def test_private_keys_go_whole_and_cut(text, expected):
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "429 Rate limit reached for gpt-4o-2024-08-06 in organization org-abc on tokens per min (TPM): Limit 30000",
        "claude-sonnet-4-5-20250929 returned status 529, request id req_011CSHoEeqs5C35K2UUqR7Fy",
        "model meta-llama/Llama-3.3-70B-Instruct-Turbo, pplx-70b-online, xai-org/grok-1, sk-learn 1.5",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 123e4567-e89b-12d3-a456-426614174000",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "Bearer token missing; use basic authentication. Basic understanding helps.",
        "Unexpected token: identifier at line 5. Unexpected token } in JSON at position 4",
        '{"max_tokens": 4096, "total_tokens": 12, "token": 5, "type": "tokens", "param": "max_tokens"}',
        '{"required": ["password", "username"], "key": "value"}',
        "password: str = None; token: string; secret: required",
        "see http://localhost:4873/@scope/pkg and git@github.com:org/repo.git and mailto:bob@example.com",
        "https://example.com/a/b?model=gpt-4&page=2 at 10:30@office, vertex:claude-sonnet-4@20250514",
        "repo/image:1.2@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "token = tokens[0]; token = next(stream); token: Token; if token == other: pass",
        'password = getpass("Password: "); api_key=os.environ["OPENAI_API_KEY"]; password: process.env.PASS',
        "curl --token $TOKEN -H Authorization:${AUTH} && secret = self.secret",
        "call fw_update_check_status and jina_embeddings_v3_base of models ['--token', '--json', 'x']",
        '{"name": "max_tokens", "value": "4096"} API keys provided by vendors; Authorization: required from 2026-12-01',
        "PWD=/home/bob hf_hub_download eyJ is how it begins",
        "the prompt is too long: 210000 tokens > 200000 maximum",
        "",
        "\ud800 lone \udfff",
    ],
)
def test_prose_codes_names_and_hashes_survive(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "hostile",
    [
        "a" * 10**6,
        "sk-" * 333_333,
        "eyJ" * 333_333,
        '"token":"' * 110_000,
        "password: '\n" * 80_000,
        "://a:b" * 160_000,
        "a:b@" * 250_000,
        "-----BEGIN PRIVATE KEY-----" * 37_000,
        "-----END PRIVATE KEY-----" * 40_000,
        "\\" * 10**6,
        'token="' + "\\" * 10**6,
        'token=\\"' + '\\\\"x' * 250_000,
        "a." * 500_000,
        "password" + " " * 10**6,
        "Cookie: " + "a=b;" * 250_000,
        ("A" * 70 + "\n") * 14_000 + "-----END PRIVATE KEY-----",
        "-u a " * 200_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_megabyte_of_hostile_input_is_read_in_linear_time(hostile):
    # The ten-second timeout is the check: anything quadratic takes minutes.
    redact(hostile)


def test_an_event_of_the_log_is_redacted_in_every_corner():
    event = redact_event(
        None,
        "error",
        {
            "event": "push failed for Bearer CANARY0001",
            "status": 401,
            "ok": False,
            "api_key": "CANARY",
            "nested": {"headers": [("authorization", "Bearer CANARY0002")], "DB_PASSWORD": "CANARY"},
            "raw": b"token=CANARY",
            "cause": ValueError("postgres://u:CANARY@h/d"),
            "token": None,
            "max_tokens": 5,
        },
    )
    assert "CANARY" not in repr(event)
    assert (event["status"], event["ok"], event["token"], event["max_tokens"]) == (401, False, None, 5)
    assert event["event"] == f"push failed for Bearer {MARK}"


def test_a_value_that_holds_itself_is_cut_off():
    endless: list[object] = ["Bearer CANARY0001"]
    endless.append(endless)
    assert "CANARY" not in repr(redact_value(endless))

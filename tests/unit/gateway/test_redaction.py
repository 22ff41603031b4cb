"""Redaction by itself: what is found, what is left alone, and that it is pure and bounded."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.pipeline.redaction import redactor as redaction
from observatory.pipeline.redaction.kinds import FINDERS, is_secret_name
from observatory.pipeline.redaction.patterns import MAX_COST, BadPattern, cost_of
from observatory.pipeline.redaction.redactor import Redactor, digests_before, redactor
from observatory.protocol.redaction import KINDS, MAX_PAST_VERSIONS, RedactionRule, RedactionRules
from tests.samples import MESSAGE_TYPES, decision_log, envelope

SECRET = "0f" * 32
Json = dict[str, Any]


def rule(type_: Any, name: str, since: int = 1, **more: Any) -> RedactionRule:
    made: Json = {"rule_id": f"red_{name}_{since}", "created_ns": since, "created_by": "usr_a"}
    return RedactionRule(type=type_, name=name, since=since, **made, **more)


def all_kinds(*more: RedactionRule) -> Redactor:
    return Redactor((*(rule("builtin", kind) for kind in KINDS), *more), SECRET)


def kept(rules: Redactor, message: Json) -> Json:
    raw = json.dumps(message).encode()
    applied = rules.apply(raw)
    found: Json = json.loads(raw if applied is None else applied.raw)
    return found


def found(kind: str, text: str) -> list[str]:
    return [text[start:end] for start, end in FINDERS[kind].find(text)]


@pytest.mark.parametrize(
    ("kind", "text", "secret"),
    [
        ("email", "to <ada.b+c@mail.example.org>.", "ada.b+c@mail.example.org"),
        ("email", "müller@example.de", "müller@example.de"),
        ("credit_card", "card 4111 1111 1111 1111!", "4111 1111 1111 1111"),
        ("credit_card", "378282246310005", "378282246310005"),
        ("aws_key", r"a\nAKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("aws_key", 'aws_secret_access_key="' + "aB3/" * 10 + '"', "aB3/" * 10),
        (
            "jwt",
            "t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln end",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        ),
        ("bearer_token", "authorization: BEARER abcdef.0123456789", "abcdef.0123456789"),
        ("bearer_token", "Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
        ("api_key", "(sk-ant-api03-abcdefghijklmnop)", "sk-ant-api03-abcdefghijklmnop"),
        ("api_key", "obs_" + "a1B2" * 12, "obs_" + "a1B2" * 12),
        ("password", "password: hunter2 is", "hunter2"),
        ("password", "https://bob:s3cret@host/x", "s3cret"),
        ("password", '{"client_secret":"abcdefgh"}', "abcdefgh"),
    ],
)
def test_each_kind_is_found_where_it_stands_s441(kind: str, text: str, secret: str) -> None:
    """S441: the secret, and nothing around it; and its hints are in it."""
    assert found(kind, text) == [secret]
    assert any(hint in text.lower() for hint in FINDERS[kind].hints)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("email", "a@ b @c user@localhost @x.org"),
        ("credit_card", "4111 1111 1111 1112, 1771252320000000000, 2026-02-16 14:32:00"),
        ("aws_key", "XAKIAIOSFODNN7EXAMPLE AKIA"),
        ("jwt", "eyJ. eyJabc"),
        ("api_key", "task-force-of-the-whole-house disk-usage-of-every-machine"),
        ("bearer_token", "the bearer of bad news"),
        ("password", "the password was changed; tokens_consumed"),
        ("private_key", "-----BEGIN PUBLIC KEY-----"),
    ],
)
def test_what_only_looks_like_it_is_left_alone_s441(kind: str, text: str) -> None:
    """S441: words of every day are no secrets."""
    assert found(kind, text) == []


def test_a_private_key_goes_to_its_last_line_or_to_the_end_s441() -> None:
    """S441: one that was cut short is one all the same."""
    pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"
    assert found("private_key", f"x {pem} y {pem[:50]}") == [pem, pem[:50]]


@pytest.mark.parametrize(
    "name", ["password", "api_key", "apiKey", "db_password", "Authorization", "access-token"]
)
def test_a_member_that_is_called_a_secret_is_one_s443(name: str) -> None:
    """S443: under such a name any text goes, however short; numbers too."""
    assert is_secret_name(name) and not is_secret_name(name + "_hint")
    tool_input = json.loads(kept(all_kinds(), _log({name: "x", "other": "x"}))["action"]["tool_input"])
    assert tool_input["other"] == "x" and tool_input[name].startswith("[redacted:password:")


def _log(tool_input: Any) -> Json:
    return decision_log(action={"tool_input": json.dumps(tool_input)})


def test_keys_numbers_and_json_inside_json_are_looked_at_s443() -> None:
    """S443: two keys of one look stay two."""
    inner = {"a@example.org": 1, "n": 4111111111111111, "deep": json.dumps({"m": "x\nb@example.org"})}
    made = json.loads(kept(all_kinds(), _log(inner))["action"]["tool_input"])
    assert "example.org" not in json.dumps(made)
    assert made["n"].startswith("[redacted:credit_card:")
    assert json.loads(made["deep"])["m"].startswith("x\n[redacted:email:")
    twins = all_kinds(rule("pattern", "x", pattern="[ab]"))
    message = envelope("system_event", payload={"detail": {"a": 1, "b": 2, "c": "a"}})
    assert len(kept(twins, message)["payload"]["detail"]) == 3


@pytest.mark.parametrize(
    ("path", "message", "place"),
    [
        ("cognition.reasoning_chain", decision_log(), ("cognition", "reasoning_chain", 1)),
        ("$.cognition.*", decision_log(), ("cognition", "intent")),
        ("action.tool_input.query", decision_log(), ("action", "tool_input")),
        ("payload.options.*.label", envelope("decision_request"), ("payload", "options", 0, "label")),
        ("metadata.*", envelope("text", metadata={"who": "ada"}), ("metadata", "who")),
    ],
)
def test_a_field_rule_takes_all_there_is_at_its_path_s443(path: str, message: Json, place: Any) -> None:
    """S443: a list, an object or text; names the record is kept by stay, though the path covers them."""
    value: Any = kept(Redactor((rule("field", "mine", path=path),), SECRET), message)
    for step in place:
        value = value[step]
    assert "[redacted:mine:" in value
    if path == "metadata.*":
        ours = message | {"metadata": {"who": "ada", "session_id": "s1"}}
        assert (
            kept(Redactor((rule("field", "m", path=path),), SECRET), ours)["metadata"]["session_id"] == "s1"
        )


@pytest.mark.parametrize("kind", MESSAGE_TYPES)
def test_what_the_schema_does_not_name_is_text_like_any_s443(kind: str) -> None:
    """S443: a member of a sender's own is not spared because another type has one of that name."""
    message = envelope(kind)
    message["payload"]["severity_"] = "x@example.org"
    message["meta"] = {"session_id": "y@example.org"}
    assert "example.org" not in json.dumps(kept(all_kinds(), message)["meta"])
    assert "x@example.org" not in json.dumps(kept(all_kinds(), message)["payload"])


texts = st.lists(
    st.sampled_from(
        [
            "a@b.org",
            "sk-abcdefghijklmnop1",
            "password=hunter22",
            "{",
            "}",
            '"',
            "\\n",
            "ä",
            " ",
            "4111111111111111",
        ]
    )
    | st.text(max_size=8)
).map("".join)


@settings(max_examples=150, deadline=None)
@given(texts, texts)
def test_redacting_is_pure_and_redacted_text_stays_as_it_is_s447(intent: str, tool: str) -> None:
    """S447: the same bytes twice; nothing is replaced a second time; what is left has none of it."""
    log = decision_log(cognition={"intent": intent}, action={"tool_input": tool})
    raw = json.dumps(log).encode()
    rules = all_kinds()
    once = rules.apply(raw)
    assert once == all_kinds().apply(raw)
    if once is not None:
        assert rules.apply(once.raw) is None
        assert once.total == sum(one.times for one in once.replaced) > 0
    elsewhere = Redactor((rule("builtin", "email"),), "ab" * 32).apply(raw)
    here = Redactor((rule("builtin", "email"),), SECRET).apply(raw)
    assert (elsewhere is None) == (here is None)
    assert here is None or elsewhere is None or here.raw != elsewhere.raw, "each tenant has hashes of its own"


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "-eyJ",
        "a@",
        "4",
        "4 ",
        "-----BEGIN PRIVATE KEY-----",
        "-sk-",
        "token:",
        "://a:",
        "bearer ",
        "a@b.co ",
    ],
)
def test_hostile_text_takes_no_longer_than_its_length_s447(part: str) -> None:
    """S447: a quarter of a megabyte of beginnings, in CPU time; a pattern that tries again takes minutes."""
    raw = json.dumps({"x": part * (250_000 // len(part))}).encode()
    started = time.process_time()
    all_kinds().apply(raw)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("depth", [31, 33, 600, 5_000])
def test_json_in_text_may_nest_as_deep_as_it_likes_s447(depth: int) -> None:
    """S447: read as JSON or, deeper than that, as text; the secret goes either way."""
    for opening, end in (("[", "]"), ('{"a":', "}")):
        text = opening * depth + '"a@example.org"' + end * depth
        assert "example.org" not in json.dumps(kept(all_kinds(), decision_log(action={"tool_input": text})))


def test_text_beyond_the_effort_and_too_many_matches_go_whole_s447(monkeypatch: pytest.MonkeyPatch) -> None:
    """S447: by numbers, so that it is the same every time."""
    monkeypatch.setattr(redaction, "EFFORT", 1_000)
    dear = Redactor((rule("pattern", "x", pattern=r"q\d{1,10}"),), SECRET)
    message = decision_log(cognition={"intent": "nothing " * 20})
    assert kept(dear, message)["cognition"]["intent"].startswith("[redacted:unread:")
    monkeypatch.setattr(redaction, "MAX_IN_ONE", 3)
    many = decision_log(cognition={"intent": "a@b.org " * 4})
    assert kept(all_kinds(), many)["cognition"]["intent"].startswith("[redacted:many:")


@pytest.mark.parametrize(
    ("pattern", "cost"),
    [
        ("ACME-[0-9]{6}", 1),
        ("[a-z]{1,30}", 30),
        ("(?:ab|cd){2}", 4),
        (r"\d{1,3}(?:\.\d{1,3}){3}", 81),
        ("(?i)x$", 1),
    ],
)
def test_a_pattern_is_measured_by_the_ways_it_can_be_tried_s442(pattern: str, cost: int) -> None:
    assert cost_of(pattern) == cost


@pytest.mark.parametrize(
    "pattern",
    ["", "x" * 257, "[", "x*", "(a+)+", "(a|b|ab){1,20}c", "(?=x)x", "(?<!y)x", r"(x)\1", "x{0,3}",
     "(a{1,9}){1,9}", "x{1,600}", r"\w{1,50}-\w{1,50}", "(?:a?){30}a{30}", "x{4294967296}",
     "(" * 120 + ")" * 120, "[[a]b]"],
)  # fmt: skip
def test_a_pattern_that_could_keep_the_corridor_waiting_is_refused_s442(pattern: str) -> None:
    """S442: with a sentence, which does not quote it."""
    with pytest.raises(BadPattern) as refused:
        cost_of(pattern)
    assert len(pattern) < 4 or pattern not in str(refused.value)
    assert MAX_COST >= 1_000


def test_where_a_text_begins_and_ends_is_asked_of_each_text_s441() -> None:
    """S441: and not of all of them at once."""
    ends = Redactor((rule("pattern", "x", pattern="^Prior[a-z]{1,10}"),), SECRET)
    assert kept(ends, decision_log())["cognition"]["reasoning_chain"][2].startswith("[redacted:x:")


def test_a_book_knows_the_rules_of_its_last_versions_s444() -> None:
    """S444: the newest first; of those that ended in time, if that is asked."""
    mail = rule("builtin", "email", 1)
    ended = rule("builtin", "jwt", 2, until=3, ended_ns=3)
    late = rule("builtin", "password", 4)
    book = RedactionRules(version=4, secret=SECRET, rules=(mail, ended, late))
    assert book.in_force == (mail, late)
    assert book.sets_before() == [(mail,), (mail, ended), (mail,), ()]
    assert book.sets_before(4) == [(mail,)]
    far = RedactionRules(version=MAX_PAST_VERSIONS + 5, secret=SECRET, rules=(mail,))
    assert len(far.sets_before()) == MAX_PAST_VERSIONS
    raw = json.dumps(decision_log(cognition={"intent": "a@b.org"})).encode()
    assert len(digests_before(book, raw)) == 2
    assert redactor((mail,), SECRET) is redactor((mail,), SECRET)

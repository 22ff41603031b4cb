"""The first stage: what passes, what does not, and what is said about it."""

import hashlib
import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.pipeline.interceptor import (
    INPUT_NOT_JSON,
    NO_PARENT,
    Intercepted,
    MessageLimits,
    NotJson,
    SchemaViolation,
    TooLarge,
    intercept,
)
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.decoders import patterns_of, strict_decoder
from observatory.protocol.message import Message
from tests.samples import MESSAGE_TYPES, decision_log, envelope, full_decision_log

UPPER = "0F8FAD5B-D9CB-469F-A165-70867728950E"


def _sent(value: Any) -> bytes:
    return json.dumps(value).encode()


def _passed(value: Any) -> Message:
    message = intercept(_sent(value))
    assert isinstance(message, Message), message
    return message


def _paths(outcome: Intercepted) -> list[str]:
    assert isinstance(outcome, SchemaViolation), outcome
    return [fault.path for fault in outcome.faults]


def test_the_seeds_decision_log_passes_without_a_warning() -> None:
    log = decision_log()
    message = _passed(log)
    assert message.warnings == ()
    assert message.raw == _sent(log)
    assert message.digest == hashlib.sha256(_sent(log)).digest()
    assert message.timestamp == "2026-02-16T14:32:00.123456000Z"
    assert message.trace_id == log["meta"]["trace_id"].replace("-", "")
    assert message.parents == (log["meta"]["parent_step_id"],)
    assert (message.form, message.message_type, message.priority) == (
        "decision_log",
        "decision_log",
        "normal",
    )
    assert (message.sender_type, message.sender_id) == ("agent", "researcher-alpha-9")
    assert (message.tool, message.status, message.severity) == ("serp_search", "success", 9)
    assert (message.session_id, message.step_id, message.message_id) == (None, None, None)
    assert message.log is not None
    assert message.log.cognition is not None
    assert message.log.cognition.entropy_score == 0.05


def test_every_optional_field_passes_without_a_warning() -> None:
    log = full_decision_log()
    message = _passed(log)
    assert message.warnings == ()
    assert message.parents == (log["meta"]["parent_step_id"], *log["meta"]["parent_step_ids"])
    assert (message.model, message.provider, message.recipient) == ("a-model", "a-provider", "type:writer")


@pytest.mark.parametrize("message_type", MESSAGE_TYPES)
def test_every_envelope_passes_without_a_warning(message_type: str) -> None:
    sent = envelope(message_type)
    message = _passed(sent)
    assert message.warnings == ()
    assert (message.form, message.message_type) == ("envelope", message_type)
    assert message.message_id == message.step_id == sent["message_id"]
    assert message.session_id == str(uuid.UUID(sent["trace_id"]))
    assert (message.sender_id, message.recipient) == (
        sent["sender"]["entity_id"],
        sent["recipient"]["entity_id"],
    )
    assert message.envelope is not None
    assert message.envelope.message_type == message_type


@pytest.mark.parametrize("missing", ["cognition", "state_delta", "control"])
def test_optional_sections_may_be_absent_or_null(missing: str) -> None:
    without = decision_log()
    del without[missing]
    assert getattr(_passed(without).log, missing) is None
    assert getattr(_passed(decision_log(**{missing: None})).log, missing) is None


@pytest.mark.parametrize(
    ("overrides", "attribute", "expected"),
    [
        ({"meta": {"trace_id": UPPER}}, "trace_id", UPPER.lower().replace("-", "")),
        ({"meta": {"trace_id": UPPER.replace("-", "")}}, "trace_id", UPPER.lower().replace("-", "")),
        ({"meta": {"step_id": UPPER}}, "step_id", UPPER.lower()),
        ({"meta": {"session_id": "Room One"}}, "session_id", "Room One"),
        ({"meta": {"parent_step_id": ""}}, "parents", ()),
        ({"meta": {"parent_step_id": None}}, "parents", ()),
        (
            {"meta": {"parent_step_id": UPPER, "parent_step_ids": [UPPER.lower(), "", "b"]}},
            "parents",
            (UPPER.lower(), "b"),
        ),
        ({"meta": {"timestamp": "2026-02-16T15:32:00+01:00"}}, "timestamp", "2026-02-16T14:32:00.000000000Z"),
        ({"state_delta": {"cumulative_session_cost": 1e20}}, "status", "success"),
        ({"cognition": {"intent": 'a " quote \\ and \u00e9 \U0001f600'}}, "status", "success"),
        ({"control": {"hitl_required": None, "is_terminal": None}}, "status", "success"),
    ],
)
def test_ids_and_times_are_read_into_their_one_spelling(
    overrides: dict[str, Any], attribute: str, expected: object
) -> None:
    message = _passed(decision_log(**overrides))
    assert getattr(message, attribute) == expected
    assert message.warnings == ()


@pytest.mark.parametrize(
    ("message_type", "overrides", "attribute", "expected"),
    [
        ("heartbeat", {}, "severity", 5),
        ("text", {}, "severity", 9),
        ("status_alert", {"payload": {"severity": "critical"}}, "severity", 21),
        ("status_alert", {"payload": {"severity": "error"}, "priority": None}, "priority", "high"),
        ("decision_request", {"priority": None}, "priority", "high"),
        ("heartbeat", {"priority": None}, "priority", "low"),
        ("text", {"priority": None}, "priority", "normal"),
        ("text", {"metadata": {"session_id": UPPER}}, "session_id", UPPER.lower()),
        ("text", {"metadata": {"conversation_id": "conv_1", "n": {"a": [1]}}}, "conversation_id", "conv_1"),
        ("text", {"span_id": "ABCDEF1234567890"}, "span_id", "abcdef1234567890"),
        ("text", {"parent_span_id": "ABCDEF1234567890"}, "parent_span_id", "abcdef1234567890"),
        ("text", {"envelope_version": "1.7"}, "form", "envelope"),
        ("text", {"metadata": None}, "conversation_id", None),
        ("text", {"sender": {"entity_id": "sys_clock", "entity_type": "system"}}, "sender_type", "system"),
    ],
)
def test_an_envelope_is_read_into_the_same_words(
    message_type: str, overrides: dict[str, Any], attribute: str, expected: object
) -> None:
    assert getattr(_passed(envelope(message_type, **overrides)), attribute) == expected


def test_a_log_without_the_parent_key_passes_with_a_warning() -> None:
    log = decision_log()
    del log["meta"]["parent_step_id"]
    message = _passed(log)
    assert message.parents == ()
    assert message.warnings == (NO_PARENT,)


@pytest.mark.parametrize("text", ["", "not json", "{'a': 1}", "NaN", "[" * 100_000])
def test_a_tool_input_that_is_no_json_passes_with_a_warning(text: str) -> None:
    assert _passed(decision_log(action={"tool_input": text})).warnings == (INPUT_NOT_JSON,)


def test_unknown_fields_pass_with_a_warning_that_counts_and_names_none() -> None:
    message = _passed(
        decision_log(
            meta={"zq1": 1, "zq2": {"zq3": 1}}, zq4=1, cognition={"alternatives": [{"option": "a", "zq5": 1}]}
        )
    )
    assert len(message.warnings) == 3
    assert "meta: 2 unknown fields" in " ".join(message.warnings)
    assert "cognition: 1 unknown field" in " ".join(message.warnings)
    assert "zq" not in " ".join(message.warnings)
    assert _passed(envelope("text", payload={"zq": 1})).warnings[0].startswith("payload: 1 unknown field")


def test_a_decision_log_that_only_mentions_an_envelope_is_still_a_decision_log() -> None:
    message = _passed(decision_log(cognition={"intent": "envelope_version"}))
    assert message.form == "decision_log"
    assert message.warnings == ()


@pytest.mark.parametrize(
    "raw",
    [b"", b"hello", b"{", b'{"meta":', b"\xff\xfe", b'{"a":"\xff"}', b'{"a":"\x00"}', b"\xef\xbb\xbf{}"],
)
def test_what_is_no_json_is_answered_as_such(raw: bytes) -> None:
    assert intercept(raw) == NotJson(f"sha256:{hashlib.sha256(raw).hexdigest()}")


def test_invalid_utf_8_in_an_unknown_field_is_no_json() -> None:
    raw = _sent(decision_log(zq="XX")).replace(b"XX", b"\xff")
    assert isinstance(intercept(raw), NotJson)


def test_a_body_beyond_the_limit_is_too_large_and_one_at_the_limit_is_not() -> None:
    raw = _sent(decision_log())
    assert intercept(raw, MessageLimits(message_bytes=len(raw) - 1)) == TooLarge(len(raw) - 1)
    assert isinstance(intercept(raw, MessageLimits(message_bytes=len(raw))), Message)
    assert isinstance(intercept(b" " * (1_048_576 + 1)), TooLarge)


def test_a_violation_keeps_the_hash_and_the_names_that_are_valid() -> None:
    raw = _sent(decision_log(action={"status": "done"}))
    outcome = intercept(raw)
    assert isinstance(outcome, SchemaViolation)
    assert outcome.raw_payload_hash == f"sha256:{hashlib.sha256(raw).hexdigest()}"
    assert (outcome.agent_id, outcome.capability_version) == ("researcher-alpha-9", "v2.1.0-stable")
    assert outcome.violation_reason == "action.status: must be one of failure, pending, skipped, success"


@pytest.mark.parametrize(
    ("identity", "expected"),
    [
        ({"agent_id": "a\u0000"}, (None, "v2.1.0-stable")),
        ({"agent_id": 5}, (None, "v2.1.0-stable")),
        ({"capability_version": "two"}, ("researcher-alpha-9", None)),
        (None, (None, None)),
    ],
)
def test_a_name_that_breaks_its_own_rule_is_not_repeated(
    identity: Any, expected: tuple[object, object]
) -> None:
    outcome = intercept(_sent(decision_log(identity=identity)))
    assert isinstance(outcome, SchemaViolation)
    assert (outcome.agent_id, outcome.capability_version) == expected


def test_of_a_doubled_name_none_is_believed() -> None:
    raw = _sent(decision_log()).replace(b'"agent_id":', b'"agent_id": "other", "agent_id":')
    outcome = intercept(raw)
    assert _paths(outcome) == ["identity"]
    assert isinstance(outcome, SchemaViolation)
    assert outcome.agent_id is None


@pytest.mark.parametrize(
    "key", ["meta", "trace_id", "agent_id", "option", "intent", "tool_call", "hitl_required"]
)
@pytest.mark.parametrize("spelling", ["{0}", "\\u{1:04x}{2}"])
def test_a_key_doubled_at_any_level_never_passes(key: str, spelling: str) -> None:
    twin = spelling.format(key, ord(key[0]), key[1:])
    raw = _sent(full_decision_log()).decode()
    doubled = raw.replace(f'"{key}":', f'"{twin}": null, "{key}":', 1)
    assert doubled != raw
    assert isinstance(intercept(doubled.encode()), SchemaViolation)


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(raw: bytes) -> None:
    intercept(raw)


KEYS = st.sampled_from(
    ["meta", "identity", "action", "payload", "message_type", "envelope_version", "sender"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(JSON)
def test_any_json_gets_an_answer(value: Any) -> None:
    outcome = intercept(json.dumps(value).encode())
    assert isinstance(outcome, SchemaViolation)
    assert outcome.faults


@pytest.mark.parametrize("raw", [b"[" * 1_000_000, b'{"a":' * 200_000, b"[" * 500_000 + b"]" * 500_000])
def test_a_million_levels_do_not_exhaust_the_stack(raw: bytes) -> None:
    assert isinstance(intercept(raw), SchemaViolation | NotJson)


@pytest.mark.parametrize("path", patterns_of(DecisionLog))
@pytest.mark.parametrize("character", ["\x85", "\n", "\x7f"])
def test_the_fast_path_looks_at_every_pattern(path: str, character: str) -> None:
    """Its decoder does not: a field that gets a pattern must be looked at too."""
    section, _, field = path.partition(".")
    bad = f"v1.0.0{character}"
    log = full_decision_log()
    log[section][field] = [bad] if isinstance(log[section][field], list) else bad
    assert all(one.startswith(path) for one in _paths(intercept(_sent(log))))


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))
def test_the_fast_path_judges_text_as_the_decoder_with_patterns_does(text: str) -> None:
    strict = strict_decoder(DecisionLog)
    for path in patterns_of(DecisionLog):
        section, _, field = path.partition(".")
        log = full_decision_log()
        log[section][field] = [text] if isinstance(log[section][field], list) else text
        try:
            strict.decode(_sent(log))
        except msgspec.DecodeError:
            assert isinstance(intercept(_sent(log)), SchemaViolation)
        else:
            assert isinstance(intercept(_sent(log)), Message)

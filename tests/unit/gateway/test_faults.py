"""The slow walk: all faults, exact paths, the same verdict as the decoder, and no leak."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.pipeline import faults
from observatory.pipeline.interceptor import SchemaViolation, intercept
from observatory.pipeline.validation import MAX_FAULTS
from observatory.protocol.document import parse
from observatory.protocol.message import Message
from tests.samples import MESSAGE_TYPES, decision_log, envelope, full_decision_log

SECRET = "s3cr3t-7f1c"


def _faults(raw: bytes) -> dict[str, str]:
    outcome = intercept(raw)
    assert isinstance(outcome, SchemaViolation), outcome
    return {fault.path: fault.problem for fault in outcome.faults}


def _sent(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("overrides", "path", "word"),
    [
        ({"meta": None}, "meta", "must be an object"),
        ({"meta": []}, "meta", "must be an object"),
        ({"meta": {"trace_id": "x"}}, "meta.trace_id", "UUID"),
        ({"meta": {"trace_id": "0" * 32}}, "meta.trace_id", "not all zero"),
        ({"meta": {"trace_id": 5}}, "meta.trace_id", "must be text"),
        ({"meta": {"timestamp": "2026-02-16T14:32:00"}}, "meta.timestamp", "zone"),
        ({"meta": {"timestamp": "2026-02-30T14:32:00Z"}}, "meta.timestamp", "RFC 3339"),
        ({"meta": {"parent_step_id": 1}}, "meta.parent_step_id", "must be text"),
        ({"meta": {"parent_step_ids": ["a", 1]}}, "meta.parent_step_ids[1]", "must be text"),
        ({"meta": {"cluster_id": ""}}, "meta.cluster_id", "1 to 256"),
        ({"identity": {"agent_id": "a" * 257}}, "identity.agent_id", "1 to 256"),
        ({"identity": {"agent_id": "a\n"}}, "identity.agent_id", "control"),
        ({"identity": {"capability_version": "2.1"}}, "identity.capability_version", "semantic version"),
        ({"cognition": {"intent": None}}, "cognition.intent", "must be text"),
        ({"cognition": {"confidence_score": 1.5}}, "cognition.confidence_score", "0 to 1"),
        ({"cognition": {"entropy_score": "0.5"}}, "cognition.entropy_score", "a number"),
        ({"cognition": {"entropy_score": float("nan")}}, "cognition.entropy_score", "finite"),
        ({"cognition": {"reasoning_chain": ["a", None]}}, "cognition.reasoning_chain[1]", "must be text"),
        ({"cognition": {"alternatives": [{"why_not": "b"}]}}, "cognition.alternatives[0].option", "missing"),
        ({"cognition": {"citations": [7]}}, "cognition.citations[0]", "text or an object"),
        ({"cognition": {"citations": [{"label": "x"}]}}, "cognition.citations[0].uri", "missing"),
        ({"action": {"status": "done"}}, "action.status", "success"),
        ({"action": {"status": None}}, "action.status", "one of"),
        ({"action": {"tool_input": {"q": 1}}}, "action.tool_input", "must be text"),
        ({"action": {"duration_ms": 1.5}}, "action.duration_ms", "an integer"),
        ({"action": {"duration_ms": True}}, "action.duration_ms", "an integer"),
        ({"state_delta": {"tokens_consumed": -1}}, "state_delta.tokens_consumed", "0 to 9007199254740991"),
        ({"state_delta": {"tokens_consumed": 2**53}}, "state_delta.tokens_consumed", "2^53"),
        ({"state_delta": {"cost": 2**53}}, "state_delta.cost", "2^53"),
        (
            {"state_delta": {"cumulative_session_cost": float("inf")}},
            "state_delta.cumulative_session_cost",
            "finite",
        ),
        ({"control": {"interrupt_signal": "stop"}}, "control.interrupt_signal", "inject, pause, rewrite"),
        ({"control": {"hitl_required": "yes"}}, "control.hitl_required", "true or false"),
        ({"cognition": {"intent": "a\u0000"}}, "cognition.intent", "U+0000"),
        ({"cognition": {"intent": "\ud800"}}, "cognition.intent", "surrogate"),
        ({"meta": {"zq": "\u0000"}}, "meta", "unknown field"),
        ({"meta": {"\u0000": 1}}, "meta", "a key"),
        ({"zq": [2**60]}, "$", "2^53"),
        ({"zq": {"zq": float("nan")}}, "$", "finite"),
    ],
)
def test_each_fault_of_a_decision_log_has_its_path_and_rule(overrides: Any, path: str, word: str) -> None:
    found = _faults(_sent(decision_log(**overrides)))
    assert list(found) == [path]
    assert word in found[path]


@pytest.mark.parametrize(
    ("message_type", "overrides", "path", "word"),
    [
        ("text", {"envelope_version": "2.0.0"}, "envelope_version", "1.x"),
        ("text", {"message_id": "1"}, "message_id", "msg_"),
        ("text", {"trace_id": "0" * 32}, "trace_id", "not all zero"),
        ("text", {"span_id": "12"}, "span_id", "16 hex"),
        ("text", {"timestamp": "yesterday"}, "timestamp", "RFC 3339"),
        ("text", {"sender": {"entity_type": "robot"}}, "sender.entity_type", "agent"),
        ("text", {"sender": {"entity_id": "usr_1"}}, "sender.entity_id", "agt_"),
        ("text", {"recipient": {"entity_id": "agt_1"}}, "recipient.entity_id", "usr_"),
        ("text", {"priority": "asap"}, "priority", "one of"),
        ("text", {"metadata": {"session_id": 5}}, "metadata.session_id", "1 to 256"),
        ("text", {"metadata": {"n": 2**60}}, "metadata", "2^53"),
        ("text", {"message_type": "gossip"}, "message_type", "decision_request"),
        ("text", {"message_type": 5}, "message_type", "decision_request"),
        ("text", {"payload": "hi"}, "payload", "an object"),
        ("text", {"payload": {"content": None}}, "payload.content", "must be text"),
        (
            "heartbeat",
            {"payload": {"current_task": {"task_id": "tsk_1", "progress_pct": 101}}},
            "payload.current_task.progress_pct",
            "0 to 100",
        ),
        ("decision_request", {"payload": {"options": []}}, "payload.options", "at least 1"),
        (
            "decision_request",
            {"payload": {"options": [{"option_id": "a", "label": "A", "risk_level": "mild"}]}},
            "payload.options[0].risk_level",
            "critical",
        ),
        (
            "decision_request",
            {"payload": {"deadline": "2026-02-30T00:00:00Z"}},
            "payload.deadline",
            "RFC 3339",
        ),
        ("artifact_share", {"payload": {"content": None}}, "payload.uri", "missing"),
        ("artifact_share", {"payload": {"content": "\u00e9" * 40_000}}, "payload.content", "65536 bytes"),
        ("action_confirmation", {"payload": {"before_state": [1]}}, "payload.before_state", "an object"),
        ("system_event", {"payload": {"detail": {"a": {"b": "\u0000"}}}}, "payload.detail", "U+0000"),
    ],
)
def test_each_fault_of_an_envelope_has_its_path_and_rule(
    message_type: str, overrides: Any, path: str, word: str
) -> None:
    found = _faults(_sent(envelope(message_type, **overrides)))
    assert list(found) == [path]
    assert word in found[path]


@pytest.mark.parametrize(
    "key",
    [
        "envelope_version",
        "message_id",
        "trace_id",
        "span_id",
        "parent_span_id",
        "timestamp",
        "sender",
        "recipient",
        "message_type",
        "payload",
    ],
)
def test_every_required_key_of_an_envelope_is_missed(key: str) -> None:
    sent = envelope("text")
    del sent[key]
    assert _faults(_sent(sent)) == {key: "is missing: this field is required"}


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("meta", "trace_id"),
        ("meta", "timestamp"),
        ("identity", "agent_id"),
        ("identity", "agent_type"),
        ("identity", "capability_version"),
        ("cognition", "intent"),
        ("action", "status"),
    ],
)
def test_every_required_field_of_a_decision_log_is_missed(section: str, key: str) -> None:
    log = decision_log()
    del log[section][key]
    assert _faults(_sent(log)) == {f"{section}.{key}": "is missing: this field is required"}


def test_all_faults_are_found_at_once() -> None:
    log = decision_log(
        meta={"trace_id": 1, "timestamp": 2},
        action={"status": 3},
        cognition={"intent": 4, "entropy_score": 5},
    )
    del log["identity"]
    assert list(_faults(_sent(log))) == [
        "meta.trace_id",
        "meta.timestamp",
        "identity",
        "action.status",
        "cognition.intent",
        "cognition.entropy_score",
    ]


def test_at_most_a_hundred_faults_are_told() -> None:
    outcome = intercept(_sent(decision_log(cognition={"reasoning_chain": [1] * 500})))
    assert isinstance(outcome, SchemaViolation)
    assert len(outcome.faults) == MAX_FAULTS


def test_a_free_object_deeper_than_the_limit_is_a_fault_at_its_field() -> None:
    deep: Any = 1
    for _ in range(80):
        deep = {"a": deep}
    assert "64 levels" in _faults(_sent(envelope("system_event", payload={"detail": deep})))["payload.detail"]
    assert "64 levels" in _faults(_sent(decision_log(zq=deep)))["$"]


SAMPLES = [
    full_decision_log(),
    *(envelope(kind, metadata={"session_id": "s", "n": [1]}) for kind in MESSAGE_TYPES),
]


def _places(value: Any) -> Iterator[list[Any]]:
    """Every place in a tree, as the way to it."""
    yield []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from ([key, *rest] for rest in _places(item))


def _planted(value: Any, way: list[Any], plant: Any) -> Any:
    if not way:
        return plant(value)
    made = copy.copy(value)
    made[way[0]] = _planted(value[way[0]], way[1:], plant)
    return made


def _secrets(value: Any) -> list[Any]:
    """Ways to put the secret where `value` stands."""
    plants = [SECRET, [SECRET], {SECRET: SECRET}, [{SECRET: 1}, SECRET + "\0"]]
    if isinstance(value, dict):
        plants += [{**value, SECRET: SECRET}, {**value, SECRET + "\0": [2**60, {SECRET: SECRET}]}]
    return plants


@pytest.mark.parametrize("sample", SAMPLES, ids=["decision_log", *MESSAGE_TYPES])
def test_a_secret_planted_anywhere_is_never_told(sample: Any) -> None:
    invalid = (
        {**sample, "timestamp": 5, "action": 5}
        if "payload" in sample
        else {**sample, "meta": {**sample["meta"], "timestamp": 5}}
    )
    checked = 0
    for base in (sample, invalid):
        for way in _places(base):
            for plant in _secrets(_planted_at(base, way)):
                planted = _planted(base, way, lambda _, plant=plant: plant)
                outcome = intercept(_sent(planted))
                if isinstance(outcome, SchemaViolation):
                    checked += 1
                    received = " ".join(f"{fault.path} {fault.problem}" for fault in outcome.faults)
                    assert SECRET not in received
                    assert SECRET not in outcome.violation_reason
                else:
                    assert isinstance(outcome, Message)
                    assert SECRET not in " ".join(outcome.warnings)
    assert checked > 100


def _planted_at(value: Any, way: list[Any]) -> Any:
    for step in way:
        value = value[step]
    return value


WRONG = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        2**53,
        1e300,
        "",
        "x",
        "a\n",
        "\0",
        "\ud800",
        "2026-02-16T14:32:00Z",
        "agt_1",
        [],
        [1],
        ["a"],
        {},
        {"a": 1},
        {"uri": "u"},
        "info",
        "success",
        "0" * 32,
        "f" * 32,
        "f" * 16,
        "v1.0.0",
        "x" * 300,
    ]
)


@settings(max_examples=400)
@given(st.data())
def test_the_walk_and_the_decoder_give_the_same_verdict(data: st.DataObject) -> None:
    value: Any = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from([way for way in _places(value) if way]))
        if data.draw(st.booleans()) and isinstance(_planted_at(value, way[:-1]), dict):
            value = _planted(
                value, way[:-1], lambda held, way=way: {k: v for k, v in held.items() if k != way[-1]}
            )
        else:
            wrong = data.draw(WRONG)
            value = _planted(value, way, lambda _, wrong=wrong: wrong)
        if not any(way for way in _places(value)):
            break
    raw = _sent(value)
    document = parse(raw)
    assert document is not None
    found = faults.collect(document.value)
    outcome = intercept(raw)
    assert isinstance(outcome, SchemaViolation) == bool(found), (found, outcome)

"""The published schemas are real: they take the seeds' samples and refuse what the gateway refuses."""

from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from observatory.protocol.envelope import BY_TYPE, MessageType
from observatory.protocol.schemas import documents
from tests.samples import MESSAGE_TYPES, decision_log, envelope, full_decision_log

DOCUMENTS = documents()


def _accepts(name: str, value: Any) -> bool:
    return bool(Draft202012Validator(DOCUMENTS[name]).is_valid(value))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_is_a_valid_schema(name: str) -> None:
    Draft202012Validator.check_schema(DOCUMENTS[name])


def test_the_seeds_decision_log_is_accepted() -> None:
    assert _accepts("decision_log", decision_log())
    assert _accepts("decision_log", full_decision_log())
    assert _accepts("decision_log", decision_log(cognition=None, state_delta=None, control=None))


@pytest.mark.parametrize("message_type", MESSAGE_TYPES)
def test_every_envelope_is_accepted(message_type: str) -> None:
    assert _accepts("envelope", envelope(message_type))


@pytest.mark.parametrize(
    "overrides",
    [
        {"meta": None},
        {"meta": {"trace_id": "no-uuid"}},
        {"meta": {"trace_id": "0" * 32}},
        {"meta": {"timestamp": "2026-02-16T14:32:00"}},
        {"identity": {"agent_id": ""}},
        {"identity": {"agent_id": "a\n"}},
        {"identity": {"capability_version": "2"}},
        {"cognition": {"intent": None}},
        {"cognition": {"confidence_score": 1.1}},
        {"action": {"status": "done"}},
        {"state_delta": {"tokens_consumed": -1}},
        {"control": {"interrupt_signal": "stop"}},
    ],
)
def test_a_bad_decision_log_is_refused(overrides: dict[str, Any]) -> None:
    assert not _accepts("decision_log", decision_log(**overrides))


@pytest.mark.parametrize(
    "overrides",
    [
        {"envelope_version": "2.0.0"},
        {"message_id": "1"},
        {"span_id": "0" * 16},
        {"message_type": "gossip"},
        {"payload": {"content": 1}},
        {"sender": {"entity_type": "robot"}},
        {"priority": "whatever"},
    ],
)
def test_a_bad_envelope_is_refused(overrides: dict[str, Any]) -> None:
    assert not _accepts("envelope", envelope("text", **overrides))


@pytest.mark.parametrize("key", ["envelope_version", "parent_span_id", "payload", "message_type"])
def test_an_envelope_without_a_required_key_is_refused(key: str) -> None:
    sent = envelope("text")
    del sent[key]
    assert not _accepts("envelope", sent)


def test_every_message_type_of_the_seed_has_its_envelope() -> None:
    assert list(BY_TYPE) == list(get_args(MessageType))
    assert all(cls.__struct_config__.tag == name for name, cls in BY_TYPE.items())
    assert set(BY_TYPE) == set(MESSAGE_TYPES)

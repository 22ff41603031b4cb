"""Every field of both wire forms through the front door and back; a missing or wrong one by its path."""

from __future__ import annotations

import copy
import json
import uuid
from typing import Any

import pytest

from observatory.protocol.identity import mint
from tests.flows.answered import acceptable
from tests.flows.server import Server
from tests.samples import (
    MESSAGE_TYPES,
    SEED_SAMPLES,
    decision_log,
    envelope,
    full_decision_log,
    just_now,
    shown,
)

Json = dict[str, Any]
MISSING = object()
# S127: the sample of a confirmation refers to a decision nobody asked for here.
LINKS_NOTHING = "payload.triggered_by.decision_id: unknown decision; the confirmation was stored"
AGENT_TYPES = [kind for kind in MESSAGE_TYPES if kind not in ("decision_response", "system_event")]


def sender_role(kind: str) -> str:
    """Who may send it: an agent never sends the two kinds that are a person's or the platform's."""
    return "agent" if kind in AGENT_TYPES else "admin"


def put(message: Json, path: str, value: Any) -> Json:
    """A copy with the value at a dotted path changed, or taken out."""
    changed = copy.deepcopy(message)
    *above, last = path.split(".")
    place: Any = changed
    for name in above:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return changed


def archived(server: Server, message_id: str) -> Json:
    answer = server.http("admin").get(f"/v1/messages/{message_id}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def faults_of(server: Server, message: Json, role: str = "agent") -> dict[str, str]:
    answer = server.send(message, role)
    assert answer.status_code == 422, answer.text
    found = answer.json()
    assert (found["status"], found["reason"]) == ("rejected", "schema_violation")
    assert found["raw_payload_hash"].startswith("sha256:")
    return {fault["path"]: fault["problem"] for fault in found["faults"]}


@pytest.mark.req(107, *range(143, 150))
def test_the_briefs_sample_is_accepted_as_it_stands_s1(server: Server) -> None:
    """S1: six sections under the brief's own names; a version with a leading v and a tag parses."""
    sample = decision_log()
    assert list(sample) == ["meta", "identity", "cognition", "action", "state_delta", "control"]
    answer = server.send(sample)
    assert answer.status_code == 202
    assert archived(server, answer.json()["message_id"])["message"] == shown(sample)
    assert sample["meta"]["cluster_id"] == "aws-eu-central-1-mesh-04"
    assert json.loads(sample["action"]["tool_input"]) == {"query": "NVDA 10-K revenue 2023"}
    assert not [text for text in answer.json()["warnings"] if "tool_input" in text]


@pytest.mark.req(3, *range(8, 32))
def test_every_field_of_the_decision_log_comes_back_as_it_was_sent(server: Server) -> None:
    sent = full_decision_log(control={"hitl_required": False, "interrupt_signal": None, "is_terminal": True})
    answer = server.send(sent)
    assert answer.status_code == 202
    found = archived(server, answer.json()["message_id"])["message"]
    assert set(found) == {"meta", "identity", "cognition", "action", "state_delta", "control"}
    assert found == shown(sent)
    raw = server.http("admin").get(f"/v1/messages/{answer.json()['message_id']}", params={"raw": True})
    assert raw.json() == sent


@pytest.mark.req(7, 8, 109, 123, 136, *range(32, 39))
@pytest.mark.parametrize(
    "path",
    [
        "meta",
        "meta.trace_id",
        "meta.timestamp",
        "identity",
        "identity.agent_id",
        "identity.agent_type",
        "identity.capability_version",
        "cognition.intent",
        "action",
        "action.status",
    ],
)
def test_a_missing_required_field_is_refused_by_its_path(server: Server, path: str) -> None:
    found = faults_of(server, put(decision_log(), path, MISSING))
    assert found == {path: "is missing: this field is required"}


def alarms(server: Server) -> list[str]:
    severe = server.http("admin").get("/v1/audit/tenant", params={"severity_min": 17}).json()["items"]
    return [event["audit_event_id"] for event in severe if event["body"]["event_type"].startswith("entropy")]


@pytest.mark.req(39, 40, 45)
def test_everything_else_may_be_left_out_or_null(server: Server) -> None:
    """S1: without cognition a log is valid and has none; without entropy_score it reports none."""
    bare = {
        "meta": {"trace_id": str(uuid.uuid4()), "timestamp": "2026-02-16T14:32:00Z"},
        "identity": {"agent_id": "minimal", "agent_type": "t", "capability_version": "1.0.0"},
        "action": {"status": "success"},
    }
    nulls = decision_log(cognition=None, state_delta=None, control=None, meta={"parent_step_id": None})
    unscored = put(decision_log(), "cognition.entropy_score", MISSING)
    before = alarms(server)  # others' messages may have raised some
    for sent in (bare, nulls, unscored, put(decision_log(), "cognition.entropy_score", None)):
        answer = server.send(sent)
        assert answer.status_code == 202, answer.text
        found = archived(server, answer.json()["message_id"])["message"]
        assert found == shown(sent)
        assert (found.get("cognition") or {}).get("reported_entropy_score") is None
    assert alarms(server) == before


WRONG: list[tuple[str, Any, str]] = [
    ("meta.trace_id", "not-a-uuid", "UUID"),
    ("meta.trace_id", "00000000-0000-0000-0000-000000000000", "not all zero"),
    ("meta.timestamp", "2026-02-16T14:32:00", "zone"),
    ("meta.timestamp", "2026-02-30T14:32:00Z", "RFC 3339"),
    ("meta.timestamp", 1_771_252_320, "text"),
    ("meta.parent_step_id", 7, "text"),
    ("meta.cluster_id", ["eu"], "text"),
    ("identity.agent_id", "", "1 to 256"),
    ("identity.agent_type", None, "text"),
    ("identity.capability_version", "latest", "semantic version"),
    ("cognition.intent", 3, "text"),
    ("cognition.reasoning_chain", "one thought", "array"),
    ("cognition.reasoning_chain", ["one", 2], "text"),
    ("cognition.confidence_score", 1.01, "from 0 to 1"),
    ("cognition.confidence_score", -0.01, "from 0 to 1"),
    ("cognition.entropy_score", 2, "from 0 to 1"),
    ("cognition.entropy_score", "0.5", "a number"),
    ("cognition.strategy_used", {}, "text"),
    ("action.tool_call", 1, "text"),
    ("action.tool_input", {"query": "NVDA"}, "text"),
    ("action.tool_output_summary", [], "text"),
    ("action.status", "done", "failure, pending, skipped, success"),
    ("action.status", "SUCCESS", "failure, pending, skipped, success"),
    ("state_delta.added_to_memory", {"a": 1}, "array"),
    ("state_delta.tokens_consumed", 1.5, "an integer"),
    ("state_delta.tokens_consumed", -1, "an integer"),
    ("state_delta.cumulative_session_cost", "0.084", "a number"),
    ("control.hitl_required", "false", "true or false"),
    ("control.interrupt_signal", "stop", "inject, pause, rewrite"),
    ("control.is_terminal", 1, "true or false"),
    ("meta", [], "an object"),
    ("cognition", "thoughts", "an object"),
]


@pytest.mark.req(*range(10, 32), 44, 48, 231)
@pytest.mark.parametrize(("path", "value", "says"), WRONG)
def test_a_value_of_the_wrong_kind_or_range_is_refused_by_its_path(
    server: Server, path: str, value: Any, says: str
) -> None:
    found = faults_of(server, put(full_decision_log(), path, value))
    [(where, problem)] = found.items()
    assert where.startswith(path)
    assert says in problem


@pytest.mark.req(25, 29, 30)
@pytest.mark.parametrize("status", ["success", "failure", "pending", "skipped"])
@pytest.mark.parametrize("signal", [None, "pause", "rewrite", "inject"])
def test_each_status_and_signal_of_the_seed_is_taken(server: Server, status: str, signal: str | None) -> None:
    sent = decision_log(action={"status": status}, control={"interrupt_signal": signal})
    assert server.send(sent).status_code == 202


def test_all_faults_of_a_message_are_told_at_once_s2(server: Server) -> None:
    """S2: each a path and a rule, in the order of the schema."""
    sent = decision_log(cognition={"confidence_score": 3}, action={"status": "done"})
    sent = put(put(sent, "identity.agent_type", MISSING), "meta.timestamp", "yesterday")
    assert list(faults_of(server, sent)) == [
        "meta.timestamp",
        "identity.agent_type",
        "action.status",
        "cognition.confidence_score",
    ]


def test_unknown_fields_are_kept_counted_and_never_named_s4(server: Server) -> None:
    """S4: a field the schema does not know stays in the archived bytes."""
    sent = decision_log(meta={"my_secret_name": 1}, brand_new={"a": [1]})
    answer = server.send(sent)
    assert answer.status_code == 202
    assert "my_secret_name" not in answer.text
    assert [text for text in answer.json()["warnings"] if "unknown field" in text] == [
        "$: 1 unknown field kept in the archive and not read",
        "meta: 1 unknown field kept in the archive and not read",
    ]
    assert archived(server, answer.json()["message_id"])["message"] == shown(sent)


# --- the transport envelope and its eight payloads ---


@pytest.mark.req(325, *range(341, 355), *range(364, 407), 524)
@pytest.mark.parametrize("kind", MESSAGE_TYPES)
def test_an_envelope_of_each_type_is_accepted_and_comes_back_s5(server: Server, kind: str) -> None:
    """S5: field by field, in the one archive beside the DecisionLogs."""
    message_id, parent = mint("msg_", 1_771_252_320 * 10**9), uuid.uuid4().hex[:16]
    sent = acceptable(server, kind, message_id=message_id, parent_span_id=parent, timestamp=just_now())
    assert sent["envelope_version"] == "1.0.0"
    assert sent["message_id"][4:][14] == "7"
    answer = server.send(sent, sender_role(kind))
    assert answer.status_code == 202, answer.text
    assert answer.json()["message_id"] == answer.json()["step_id"] == sent["message_id"]
    assert answer.json()["warnings"] == [LINKS_NOTHING] * (kind == "action_confirmation")
    found = archived(server, sent["message_id"])
    assert found["message_type"] == kind
    assert found["message"] == sent


@pytest.mark.parametrize(
    ("kind", "followed_by"),
    [("decision_response", "decision_made"), ("action_confirmation", "action_executed")],
)
def test_what_closes_a_decision_is_told_of_by_an_event_of_its_own_s124_s127(
    server: Server, kind: str, followed_by: str
) -> None:
    """S124, S127: right after the delivery, in the same trace."""
    sent = acceptable(server, kind)
    assert server.send(sent, sender_role(kind)).status_code == 202
    trail = server.http("admin").get(f"/v1/audit/trace/{sent['trace_id']}").json()["items"]
    assert [event["body"]["event_type"] for event in trail] == ["message_delivered", followed_by]


@pytest.mark.parametrize("kind", SEED_SAMPLES)
def test_the_seeds_sample_payloads_are_accepted_without_priority_and_metadata(
    server: Server, kind: str
) -> None:
    sent = put(put(acceptable(server, kind), "priority", MISSING), "metadata", MISSING)
    assert server.send(sent, sender_role(kind)).status_code == 202


@pytest.mark.req(354)
@pytest.mark.parametrize(
    "path",
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
        "sender.entity_id",
        "sender.entity_type",
        "recipient.entity_id",
        "recipient.entity_type",
    ],
)
def test_an_envelope_without_a_required_field_is_refused_by_its_path(server: Server, path: str) -> None:
    assert faults_of(server, put(envelope("text"), path, MISSING))[path] == (
        "is missing: this field is required"
    )


WRONG_ENVELOPES: list[tuple[str, str, Any]] = [
    ("text", "envelope_version", "2.0.0"),
    ("text", "message_id", "7"),
    ("text", "trace_id", "xyz"),
    ("text", "span_id", "0123456789abcdef" * 2),
    ("text", "parent_span_id", "g" * 16),
    ("text", "timestamp", "2026-02-16 14:32"),
    ("text", "sender.entity_type", "robot"),
    ("text", "sender.entity_id", "usr_1"),
    ("text", "recipient.entity_id", "agt_1"),
    ("text", "message_type", "gossip"),
    ("text", "priority", "urgent"),
    ("text", "payload", []),
    ("text", "metadata", "none"),
    ("text", "metadata.session_id", 5),
    ("text", "payload.content", None),
    ("decision_request", "payload.decision_id", "1"),
    ("decision_request", "payload.title", None),
    ("decision_request", "payload.options", []),
    ("decision_request", "payload.options.0.risk_level", "extreme"),
    ("decision_request", "payload.options.0.is_default", "yes"),
    ("decision_request", "payload.context_refs.0.uri", 1),
    ("decision_request", "payload.deadline", "soon"),
    ("decision_request", "payload.auto_action.trigger", "mood"),
    ("decision_response", "payload.decision_id", "alt_1"),
    ("decision_response", "payload.selected_option_id", None),
    ("decision_response", "payload.responded_at", "now"),
    ("status_alert", "payload.alert_id", "dec_1"),
    ("status_alert", "payload.severity", "loud"),
    ("status_alert", "payload.detail.format", "html"),
    ("status_alert", "payload.actionable", "no"),
    ("heartbeat", "payload.agent_status", 1),
    ("heartbeat", "payload.current_task.task_id", "7"),
    ("heartbeat", "payload.current_task.progress_pct", 101),
    ("heartbeat", "payload.resource_usage.api_calls_24h", -1),
    ("action_confirmation", "payload.action_id", "x"),
    ("action_confirmation", "payload.status", "maybe"),
    ("action_confirmation", "payload.detail.duration_ms", 0.5),
    ("action_confirmation", "payload.triggered_by.decision_id", "7"),
    ("action_confirmation", "payload.before_state", []),
    ("artifact_share", "payload.artifact_type", "song"),
    ("artifact_share", "payload.sha256", "abc"),
    ("artifact_share", "payload.content", "x" * 65_537),
    ("system_event", "payload.event_id", "7"),
    ("system_event", "payload.detail", "text"),
]


@pytest.mark.req(364)
@pytest.mark.parametrize(("kind", "path", "value"), WRONG_ENVELOPES)
def test_a_wrong_field_of_an_envelope_is_refused_by_its_path(
    server: Server, kind: str, path: str, value: Any
) -> None:
    found = faults_of(server, put(envelope(kind), path, value), sender_role(kind))
    assert path in {where.replace("[", ".").replace("]", "") for where in found}


@pytest.mark.req(351, *range(365, 373), 427)
def test_a_missing_priority_takes_the_seeds_default_for_its_type(server: Server) -> None:
    defaults = dict.fromkeys(MESSAGE_TYPES, "normal") | {"decision_request": "high", "heartbeat": "low"}
    alerts = {"info": "normal", "warning": "normal", "error": "high", "critical": "critical"}
    cases = [(put(acceptable(server, kind), "priority", MISSING), level) for kind, level in defaults.items()]
    cases += [
        (put(put(envelope("status_alert"), "priority", MISSING), "payload.severity", severity), level)
        for severity, level in alerts.items()
    ]
    for sent, level in cases:
        assert server.send(sent, sender_role(sent["message_type"])).status_code == 202
        trail = server.http("admin").get(f"/v1/audit/trace/{sent['trace_id']}").json()["items"]
        received = [one["attributes"] for one in trail if one["body"]["message_id"] == sent["message_id"]]
        assert received[0]["av.message.priority"] == level


@pytest.mark.req(236, 239, 240)
def test_only_what_is_valid_reaches_a_consumer_and_nothing_can_be_deleted(server: Server) -> None:
    session = str(uuid.uuid4())
    good = decision_log(meta={"session_id": session})
    bad = decision_log(meta={"session_id": session}, action={"status": "done"})
    assert [server.send(one).status_code for one in (good, bad)] == [202, 422]
    http = server.http("admin")
    items = http.get("/v1/messages", params={"session_id": session}).json()["items"]
    assert [item["message"] for item in items] == [shown(good)]
    for method in ("DELETE", "PUT", "PATCH"):
        assert http.request(method, f"/v1/messages/{items[0]['message_id']}").status_code == 405
        assert http.request(method, "/v1/messages").status_code == 405
    assert http.get(f"/v1/messages/{items[0]['message_id']}").json() == items[0]

"""Identities as the seed writes them, the audit event key for key, and its OpenTelemetry form."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from observatory.protocol.clock import to_ns
from observatory.protocol.identity import NAMESPACE
from observatory.protocol.otel import to_log_record
from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
NANOSECONDS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z"
HUB = "claude-coder.alice.agentvault.hub"


def event_of(server: Server, sent: Json, role: str = "agent") -> Json:
    answer = server.send(sent, role)
    assert answer.status_code == 202, answer.text
    trail = server.http("admin").get(f"/v1/audit/trace/{answer.json()['session_id']}").json()["items"]
    found: Json = trail[-1]
    return found


def agent_of(server: Server, name: str) -> Json:
    answer = server.http("admin").get(f"/v1/agents/{name}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


@pytest.mark.req(326, 327, 328, 329, 330, 331, 332, 333, 526)
def test_an_agent_is_registered_to_its_tenant_at_first_sight(server: Server) -> None:
    """S41: under the id made of tenant and name, and told of in an event."""
    name = f"coder-{uuid.uuid4()}"
    server.send(decision_log(identity={"agent_id": name, "agent_type": "code_review"}))
    found = agent_of(server, name)
    assert found["entity_id"] == f"agt_{uuid.uuid5(NAMESPACE, f'tnt_default/{name}')}"
    assert found["entity_type"] == "agent"
    assert found["tenant_id"].startswith("tnt_")
    assert found["display_name"] == name
    assert found["capabilities"] == ["code_review"]
    assert found["trust_level"] == "unverified"
    assert found["cluster_id"] == "aws-eu-central-1-mesh-04"
    again = agent_of(server, found["entity_id"])
    assert again | {"state_reason": ""} == found | {"state_reason": ""}, "but for the seconds it counts"
    server.send(envelope("text", sender={"entity_id": found["entity_id"], "hub_address": HUB}))
    assert agent_of(server, name)["hub_address"] == HUB
    events = server.http("admin").get("/v1/audit/tenant", params={"limit": 20}).json()["items"]
    received = [event["body"] for event in events if event["body"].get("agent_id") == name]
    assert [body["event_type"] for body in received] == ["agent_registered"]
    schema = server.http("nobody").get("/schemas/identity.json").text
    for level in ("tenant_verified", "federation_verified", "unverified"):
        assert f'"{level}"' in schema


@pytest.mark.req(333, 340)
def test_trust_is_the_servers_word_and_never_the_agents(server: Server) -> None:
    """S53: a key bound to the agent makes it verified; what the agent says of itself does not."""
    name = f"bound-{uuid.uuid4()}"
    made = server.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": name}).json()
    boast = decision_log(identity={"agent_id": name, "trust_level": "federation_verified"})
    event = event_of(server, boast)
    assert event["resource"]["av.trust_level"] == "unverified"
    headers = {"authorization": f"Bearer {made['key']}"}
    answer = server.http("nobody").post(
        "/v1/messages", json=decision_log(identity={"agent_id": name}), headers=headers
    )
    trail = server.http("admin").get(f"/v1/audit/trace/{answer.json()['session_id']}").json()["items"]
    assert trail[-1]["resource"]["av.trust_level"] == "tenant_verified"
    assert agent_of(server, name)["trust_level"] == "tenant_verified"


@pytest.mark.req(408, 409, 410, 411, 412, 413, 414, 415, *range(416, 430), 341, 357)
def test_an_audit_event_has_the_seeds_keys_and_no_other_s43(server: Server) -> None:
    """S43: every key of the seed's sample, from an envelope with everything set."""
    sent = envelope(
        "decision_request",
        parent_span_id="00f067aa0ba902b7",
        timestamp="2026-02-16T14:32:00.123Z",
        metadata={"conversation_id": "conv-1"},
    )
    event = event_of(server, sent)
    assert list(event) == sorted(event)
    assert set(event) == {
        *("audit_event_id", "timestamp", "observed_timestamp", "trace_id", "span_id", "parent_span_id"),
        *("trace_flags", "severity_number", "severity_text", "body", "resource", "attributes", "hash_chain"),
    }
    assert re.fullmatch(f"evt_{UUID7}", event["audit_event_id"])
    assert event["timestamp"] == "2026-02-16T14:32:00.123000000Z"
    assert re.fullmatch(NANOSECONDS, event["observed_timestamp"])
    for name in ("trace_id", "span_id", "parent_span_id"):
        assert event[name] == sent[name]
    assert (event["trace_flags"], event["severity_number"], event["severity_text"]) == (1, 9, "INFO")
    assert event["body"] == {
        "event_type": "message_delivered",
        "message_id": sent["message_id"],
        "message_type": "decision_request",
        "summary": f"decision_request from {sent['sender']['entity_id']}",
    }
    attributes = event["attributes"]
    assert attributes["av.sender.entity_id"] == sent["sender"]["entity_id"]
    assert attributes["av.sender.entity_type"] == "agent"
    assert attributes["av.sender.hub_address"] == "cortina.agentvault.hub"
    assert attributes["av.recipient.entity_id"] == sent["recipient"]["entity_id"]
    assert attributes["av.recipient.entity_type"] == "user"
    assert attributes["av.conversation.id"] == "conv-1"
    assert attributes["av.message.type"] == "decision_request"
    assert attributes["av.message.priority"] == "high"
    latency = attributes["av.delivery.latency_ms"]
    observed = to_ns(event["observed_timestamp"]) - to_ns(event["timestamp"])
    assert 0 <= observed // 1_000_000 - latency < 60_000
    assert set(event["hash_chain"]) == {"event_hash", "previous_hash", "sequence_number"}
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", event["hash_chain"]["event_hash"])


def test_a_decision_logs_event_names_type_agent_tool_and_status_only(server: Server) -> None:
    """S43, S30: the summary holds no text of the payload; the agent has a name and an entity id."""
    sent = decision_log()
    event = event_of(server, sent)
    assert event["body"]["summary"] == "decision_log from researcher-alpha-9: serp_search success"
    assert event["attributes"]["av.sender.agent_id"] == "researcher-alpha-9"
    assert event["attributes"]["av.sender.entity_id"].startswith("agt_")
    assert sent["cognition"]["intent"] not in str(event)
    assert sent["action"]["tool_output_summary"] not in str(event)


@pytest.mark.req(334, 335, 336, 337, 338, 339, 340, 416, 417, 418, 419)
def test_the_resource_block_follows_the_seeds_table(tight_server: Server) -> None:
    """S43: service name, version and environment are settings; the rest is the sender's identity."""
    sent = envelope("text", sender={"hub_address": HUB})
    assert event_of(tight_server, sent)["resource"] == {
        "service.name": "agentvault",
        "service.version": "9.9.9",
        "service.instance.id": sent["sender"]["entity_id"],
        "av.tenant.id": "tnt_default",
        "av.entity.type": "agent",
        "av.entity.hub_address": HUB,
        "av.trust_level": "unverified",
        "av.environment": "staging",
    }


@pytest.mark.req(328)
def test_users_agents_and_the_house_itself_are_three_types_of_entity(server: Server) -> None:
    """S57: told apart in every event."""
    me = server.http("operator").get("/v1/whoami").json()["user_id"]
    person = event_of(
        server, envelope("text", sender={"entity_id": me, "entity_type": "user"}), role="operator"
    )
    assert person["resource"]["av.entity.type"] == "user"
    assert event_of(server, envelope("text"))["resource"]["av.entity.type"] == "agent"
    trail = server.http("admin").get("/v1/messages", params={"limit": 1}).json()
    assert trail["items"]
    first = server.http("admin").post("/v1/audit/verify", json={"to_sequence": 1}).json()
    assert first["valid"]
    system = server.http("admin").get("/v1/audit/entity/sys_gateway", params={"limit": 1}).json()["items"]
    assert system[0]["resource"]["av.entity.type"] == "system"


def attributes_of(block: list[Json]) -> dict[str, Any]:
    def plain(value: Json) -> Any:
        [(kind, inner)] = value.items()
        if kind == "kvlistValue":
            return {item["key"]: plain(item["value"]) for item in inner["values"]}
        return int(inner) if kind == "intValue" else inner

    return {item["key"]: plain(item["value"]) for item in block}


@pytest.mark.req(319, 320, 321, 323, 355, 356, 358, *range(430, 440))
@pytest.mark.parametrize("kind", ["log", "text", "heartbeat", "violation"])
def test_every_served_event_maps_to_a_log_record_with_nothing_lost(server: Server, kind: str) -> None:
    """S43: the OTel log data model's ten fields; ids as hex, times as nanoseconds."""
    if kind == "violation":
        server.send(decision_log(action={"status": "done"}))
        event = server.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]
    else:
        event = event_of(server, decision_log() if kind == "log" else envelope(kind))
    mapped = to_log_record(event)
    record = mapped["log_record"]
    assert record["timeUnixNano"] == str(to_ns(event["timestamp"]))
    assert record["observedTimeUnixNano"] == str(to_ns(event["observed_timestamp"]))
    assert int(record["observedTimeUnixNano"]) >= int(record["timeUnixNano"])
    assert re.fullmatch("[0-9a-f]{32}", record["traceId"]) and record["traceId"] == event["trace_id"]
    assert re.fullmatch("[0-9a-f]{16}", record["spanId"]) and record["spanId"] == event["span_id"]
    assert record["flags"] == event["trace_flags"] == 1
    assert 1 <= record["severityNumber"] == event["severity_number"] <= 24
    assert record["severityText"] == event["severity_text"]
    assert record["severityText"] in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")
    body = {name: value for name, value in event["body"].items() if value is not None}
    assert attributes_of(record["body"]["kvlistValue"]["values"]) == body
    assert attributes_of(mapped["resource"]["attributes"]) == event["resource"]
    carried = attributes_of(record["attributes"])
    given = {name: value for name, value in event["attributes"].items() if value is not None}
    assert given.items() <= carried.items()
    assert carried["av.hash_chain.event_hash"] == event["hash_chain"]["event_hash"]
    assert carried["av.audit_event_id"] == event["audit_event_id"]


@pytest.mark.req(496, 497, 323, 359)
def test_a_conversation_of_envelopes_is_one_trace_whose_replies_name_their_spans(server: Server) -> None:
    """S14: a chat between a person and an agent, as the first phase has it."""
    trace = uuid.uuid4().hex
    question = envelope("text", trace_id=trace)
    reply = envelope("text", trace_id=trace, parent_span_id=question["span_id"])
    for one in (question, reply):
        assert server.send(one).status_code == 202
    found = server.http("admin").get(f"/v1/audit/trace/{trace}").json()["items"]
    trail = [event for event in found if event["body"]["message_id"]]
    assert [event["span_id"] for event in trail] == [question["span_id"], reply["span_id"]]
    assert [event["parent_span_id"] for event in trail] == [None, question["span_id"]]

"""The version registry: N and N-1 pass, unknown ones pass with a warning, retired ones do not."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.flows.server import Server, observatory
from tests.samples import decision_log, just_now

Json = dict[str, Any]


def log(kind: str, version: str, **more: Any) -> Json:
    return decision_log(identity={"agent_type": kind, "capability_version": version}, **more)


def register(server: Server, kind: str, **status_of: Any) -> None:
    versions = [{"version": name.replace("_", "."), "status": status} for name, status in status_of.items()]
    answer = server.http("operator").put("/v1/versions", json={"agent_type": kind, "versions": versions})
    assert answer.status_code == 200, answer.text


def about_version(answer: Json) -> list[str]:
    return [text for text in answer["warnings"] if "version" in text]


@pytest.fixture
def kind() -> str:
    return f"type-{uuid.uuid4()}"


@pytest.mark.req(41, 42, 51, 249)
def test_n_and_n_minus_1_pass_and_a_retired_version_does_not_s6(server: Server, kind: str) -> None:
    """S6: during a rolling deploy both versions are spoken; what is left out afterwards is retired."""
    register(server, kind, v2_0_0="current", v1_0_0="previous")
    for version in ("v2.0.0", "2.0.0", "v1.0.0", "v1.0.0+build.7"):
        answer = server.send(log(kind, version))
        assert answer.status_code == 202
        assert about_version(answer.json()) == []
    register(server, kind, v3_0_0="current", v2_0_0="previous")
    assert server.send(log(kind, "v2.0.0")).status_code == 202
    refused = server.send(log(kind, "1.0.0"))
    assert refused.status_code == 422
    [fault] = refused.json()["faults"]
    assert fault["path"] == "identity.capability_version" and "retired" in fault["problem"]
    event = server.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]
    assert event["body"]["event_type"] == "schema_violation"
    assert event["body"]["raw_payload_hash"] == refused.json()["raw_payload_hash"]
    assert event["body"]["capability_version"] == "1.0.0"


@pytest.mark.req(4, 41)
def test_an_unknown_version_passes_with_a_warning_each_time_and_one_event_s6(
    server: Server, kind: str
) -> None:
    """S6: once per agent type and version, also within one batch."""
    lines = [json.dumps(log(kind, "v9.9.9-rc.1")).encode() for _ in range(5)]
    answers = [*server.send_lines(lines), server.send(log(kind, "v9.9.9-rc.1")).json()]
    assert all(len(about_version(answer)) == 1 for answer in answers)
    events = server.http("admin").get("/v1/audit/tenant", params={"limit": 100}).json()["items"]
    received = [event["body"] for event in events if event["body"].get("agent_type") == kind]
    assert [body["event_type"] for body in received] == ["version_unknown"]
    listed = server.http("viewer").get("/v1/versions", params={"agent_type": kind}).json()["items"]
    assert [(item["version"], item["status"]) for item in listed] == [("v9.9.9-rc.1", "unknown")]


@pytest.mark.req(42)
def test_a_version_maps_to_its_accepted_fields(server: Server, kind: str) -> None:
    """S6: what lies outside the set is kept and named in a warning."""
    fields = ["cognition.intent", "meta", "action"]
    row = {"version": "1.0.0", "status": "current", "fields": fields}
    server.http("operator").put("/v1/versions", json={"agent_type": kind, "versions": [row]})
    inside = decision_log(
        meta={"timestamp": just_now()},
        identity={"agent_type": kind, "capability_version": "1.0.0"},
        cognition=None,
        state_delta=None,
        control=None,
    )
    assert server.send(inside).json()["warnings"] == []
    [warning] = about_version(server.send(log(kind, "1.0.0", meta={"timestamp": just_now()})).json())
    assert "cognition.entropy_score" in warning and "state_delta.tokens_consumed" in warning
    assert "cognition.intent" not in warning and "meta." not in warning
    listed = server.http("admin").get("/v1/versions", params={"agent_type": kind}).json()["items"]
    assert listed[0]["fields"] == fields


def test_another_spelling_is_the_same_version_s6(server: Server, kind: str) -> None:
    """S6: registered as v1.0.0, then as 1.0.0: neither spelling was retired by that."""
    register(server, kind, v1_0_0="current")
    register(server, kind, **{"1_0_0": "current"})
    for version in ("v1.0.0", "1.0.0"):
        assert server.send(log(kind, version)).status_code == 202
    register(server, kind, v2_0_0="current", **{"1_0_0": "retired"})
    for version in ("v1.0.0", "1.0.0"):
        assert server.send(log(kind, version)).status_code == 422


def test_a_repeat_of_what_was_accepted_stays_accepted_after_its_version_retires(
    server: Server, kind: str
) -> None:
    """S21, S6."""
    sent = log(kind, "1.0.0", meta={"step_id": str(uuid.uuid4())})
    first = server.send(sent).json()
    register(server, kind, **{"1_0_0": "retired"})
    assert server.send(sent).json() == first
    assert server.send(log(kind, "1.0.0")).status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"versions": [{"version": "1.0.0", "status": "current"}]},
        {"agent_type": "nonsense", "versions": []},
        {"agent_type": "nonsense", "versions": [{"version": "newest", "status": "current"}]},
        {"agent_type": "nonsense", "versions": [{"version": "1.0.0", "status": "seen"}]},
        {
            "agent_type": "nonsense",
            "versions": [{"version": v, "status": "current"} for v in ("1.0.0", "2.0.0")],
        },
        {
            "agent_type": "nonsense",
            "versions": [{"version": v, "status": "previous"} for v in ("1.0.0", "2.0.0")],
        },
        {
            "agent_type": "nonsense",
            "versions": [
                {"version": "1.0.0", "status": "current"},
                {"version": "v1.0.0", "status": "retired"},
            ],
        },
    ],
)
def test_a_registry_that_makes_no_sense_is_refused(server: Server, body: Json) -> None:
    """S6: and nothing was changed."""
    assert server.http("admin").put("/v1/versions", json=body).status_code in (400, 422)
    assert server.http("admin").get("/v1/versions", params={"agent_type": "nonsense"}).json()["items"] == []


@pytest.mark.req(51)
def test_a_change_of_the_registry_is_audited_and_can_be_made_in_the_terminal(
    server: Server, kind: str
) -> None:
    """S57, S6."""
    register(server, kind, v1_0_0="current")
    event = server.http("admin").get("/v1/audit/tenant", params={"limit": 1}).json()["items"][0]
    assert event["body"]["event_type"] == "version_registered"
    assert event["body"]["versions"] == {"v1.0.0": "current"}
    shown = observatory("versions", "list", "--data", str(server.folder), "--agent-type", kind, "--json")
    assert shown.returncode == 0, shown.stderr
    assert kind in shown.stdout and "v1.0.0" in shown.stdout

"""A sender's clock may be wrong, by accident or on purpose: it hides nothing and makes no figure absurd."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from websockets.sync.client import connect

from observatory.pipeline.sender_clock import AHEAD, BEHIND
from tests.flows.tenant import Tenant
from tests.samples import Json, decision_log, envelope


def at(hours: float) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("hours", [-72, 72])
def test_an_alert_with_another_time_is_among_those_of_the_last_day_s1168(
    either_tenant: Tenant, hours: float
) -> None:
    """S1168: by when it was recorded; by its own time it is found too, and nowhere else."""
    sent = envelope("status_alert", payload={"severity": "critical"}, timestamp=at(hours))
    number = either_tenant.send(sent).json()["sequence_number"]

    def found(since: float, until: float) -> list[int]:
        asked: dict[str, str | int] = {"since": at(since), "until": at(until), "severity_min": 21}
        items = either_tenant.http("admin").get("/v1/audit/tenant", params=asked).json()["items"]
        return [one["hash_chain"]["sequence_number"] for one in items]

    assert number in found(-24, 1)
    assert number in found(hours - 1, hours + 1)
    assert number not in found(-30, -24) and number not in found(24, 30)


def test_a_message_from_the_future_took_no_negative_time_s1168(either_tenant: Tenant) -> None:
    """S1168"""
    session = str(uuid.uuid4())
    sent = decision_log(meta={"timestamp": at(2), "session_id": session, "step_id": "1"})
    either_tenant.send(sent)
    items = either_tenant.http("admin").get("/v1/audit/tenant", params={"limit": 50}).json()["items"]
    received = [one["attributes"] for one in items if one["body"]["message_type"] == "decision_log"]
    assert [one["av.delivery.latency_ms"] for one in received] == [0]


def log_at(hours: float) -> Json:
    return decision_log(meta={"timestamp": at(hours)})


def envelope_at(hours: float) -> Json:
    return envelope("text", timestamp=at(hours))


@pytest.mark.parametrize(
    ("made", "form"),
    [(log_at, "decision_log"), (envelope_at, "envelope")],
    ids=["decision log", "envelope"],
)
def test_a_message_far_from_the_gateways_clock_is_answered_with_a_warning_s1300(
    either_tenant: Tenant, made: Callable[[float], Json], form: str
) -> None:
    """S1300: one by one, as lines and as frames; a repeat answers as the first did."""
    tenant = either_tenant
    ahead, behind = AHEAD[form], BEHIND[form]
    cases = [(0.5 / 60, []), (1.5 / 60, [ahead]), (24 * 365, [ahead]), (-0.9, []), (-1.1, [behind])]
    sent = [(made(hours), warned) for hours, warned in cases]

    def about_clocks(answer: Json) -> list[str]:
        assert answer["status"] == "accepted", answer
        return [text for text in answer["warnings"] if "clock" in text]

    for message, warned in sent:
        assert about_clocks(tenant.send(message).json()) == warned
    again = tenant.send_lines([json.dumps(message).encode() for message, _ in sent])
    assert [about_clocks(answer) for answer in again] == [warned for _, warned in sent]
    lines = tenant.send_lines([json.dumps(made(hours)).encode() for hours, _ in cases])
    assert [about_clocks(answer) for answer in lines] == [warned for _, warned in cases]
    bearer = {"Authorization": f"Bearer {tenant.key('agent')}"}
    with connect(f"{tenant.socket_url}/v1/ingest", additional_headers=bearer) as socket:
        for hours, warned in cases:
            socket.send(json.dumps({"id": 1, "message": made(hours)}))
            assert about_clocks(json.loads(socket.recv())) == warned

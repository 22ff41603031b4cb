"""Whom the relay tells that something held goes on: over both databases (S896)."""

from __future__ import annotations

import json
from typing import Any

from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness
from tests.contract.test_relay import approve, new_message, pause, unpause


def asks(step: str, **more: Any) -> dict[str, Any]:
    body = new_message(step, **more)
    body["action"]["status"] = "pending"
    return body


def verdicts(harness: Harness) -> list[tuple[str, str]]:
    rows = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    received = [json.loads(row["body"]) for row in rows if row["kind"] == "verdict"]
    return [(body["step_id"], body["verdict"]) for body in received]


def judged(harness: Harness) -> list[str]:
    """Steps a person looked at; of the others only what had held them is over."""
    rows = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    received = [json.loads(row["body"]) for row in rows if row["kind"] == "verdict"]
    return [body["step_id"] for body in received if body["gated"]]


def test_who_waits_is_told_when_a_pause_ends_and_nobody_else_s896(harness: Harness) -> None:
    harness.send(new_message("0"))
    pause(harness)
    harness.send(asks("asked"), new_message("done"))
    assert verdicts(harness) == []
    unpause(harness)
    assert verdicts(harness) == [("asked", "approved")] and judged(harness) == []
    harness.send(asks("free"))
    assert len(verdicts(harness)) == 1, "what was never held is answered at once"


def test_a_verdict_is_told_once_and_what_follows_from_the_gate_after_it_s896(harness: Harness) -> None:
    harness.send(
        asks("gate", hitl=True), asks("child", parent="gate"), new_message("telemetry", parent="gate")
    )
    pause(harness)
    approve(harness, "gate")
    assert verdicts(harness) == [("gate", "approved")], "the child waits for the pause"
    unpause(harness)
    assert verdicts(harness) == [("gate", "approved"), ("child", "approved")] and judged(harness) == ["gate"]

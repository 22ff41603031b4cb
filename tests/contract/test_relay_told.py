"""Whom the relay tells that something held goes on: over both databases (S896)."""

from __future__ import annotations

import json
from typing import Any

from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House
from tests.contract.test_relay import approve, pause, said, unpause


def asks(step: str, **more: Any) -> dict[str, Any]:
    body = said(step, **more)
    body["action"]["status"] = "pending"
    return body


def verdicts(house: House) -> list[tuple[str, str]]:
    rows = house.read(house.store.rows(HOME_TENANT, "deliveries"))
    told = [json.loads(row["body"]) for row in rows if row["kind"] == "verdict"]
    return [(body["step_id"], body["verdict"]) for body in told]


def judged(house: House) -> list[str]:
    """Steps a person looked at; of the others only what had held them is over."""
    rows = house.read(house.store.rows(HOME_TENANT, "deliveries"))
    told = [json.loads(row["body"]) for row in rows if row["kind"] == "verdict"]
    return [body["step_id"] for body in told if body["gated"]]


def test_who_waits_is_told_when_a_pause_ends_and_nobody_else_s896(house: House) -> None:
    house.send(said("0"))
    pause(house)
    house.send(asks("asked"), said("done"))
    assert verdicts(house) == []
    unpause(house)
    assert verdicts(house) == [("asked", "approved")] and judged(house) == []
    house.send(asks("free"))
    assert len(verdicts(house)) == 1, "what was never held is answered at once"


def test_a_verdict_is_told_once_and_what_follows_from_the_gate_after_it_s896(house: House) -> None:
    house.send(asks("gate", hitl=True), asks("child", parent="gate"), said("telemetry", parent="gate"))
    pause(house)
    approve(house, "gate")
    assert verdicts(house) == [("gate", "approved")], "the child waits for the pause"
    unpause(house)
    assert verdicts(house) == [("gate", "approved"), ("child", "approved")] and judged(house) == ["gate"]

"""kill -9 amid interventions: what is held stays held, nothing leaks, nothing is lost, order is kept.

A few cycles of the long run (`make soak` does two hundred). The auditor is audited too: shown a trail in
which a promise is broken, it must say so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.interrupted import Auditor, Promised, run
from bench.kill import Lost, arena
from tests.flows.forked import Forked
from tests.flows.server import Server
from tests.flows.test_relay import Mesh


@pytest.mark.req(99, 187, 195)
@pytest.mark.parametrize(("kind", "cycles"), [("sqlite", 2), ("postgres", 1)])
def test_s91_what_is_held_survives_kill_9_amid_commands(kind: str, cycles: int, tmp_path: Path) -> None:
    with arena(kind, tmp_path / "data", Forked) as (gateway, evidence):
        outcome = run(gateway, evidence, cycles, seed=20_260_221, say=print, audit_every=2)
    assert outcome.cycles == cycles and outcome.commands > 0
    assert outcome.released > 0 and outcome.rewritten > 0


def test_s91_a_thousand_held_messages_survive_and_go_in_order(either_fresh_server: Server) -> None:
    server = either_fresh_server
    mesh = Mesh(server)
    mesh.say("0")
    mesh.do("pause", 202)
    lines = [json.dumps(mesh.log(str(number))).encode() for number in range(1, 1_101)]
    assert {answer["state"] for answer in server.send_lines(lines)} == {"held"}
    server.restart(kill=True)
    mesh.people = server.http("operator")
    assert mesh.say("1101") == "held", "the pause survived"
    done = mesh.do("unpause", 200)
    assert (done["released"], done["remaining"]) == (1_101, 0), "more than one transaction's worth"
    trail: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = mesh.people.get(
            f"/v1/audit/trace/{mesh.session.replace('-', '')}",
            params={"limit": 1_000} | ({"cursor": cursor} if cursor else {}),
        ).json()
        trail += page["items"]
        if (cursor := page["next_cursor"]) is None:
            break
    gone = [event for event in trail if event["body"]["event_type"] == "message_delivered"]
    assert [event["attributes"]["av.step.id"] for event in gone] == [str(number) for number in range(1_102)]


def event(kind: str, step: str = "s1", **body: Any) -> dict[str, Any]:
    return {
        "body": {"event_type": kind, "message_id": f"msg-{step}", **body},
        "attributes": {"av.step.id": step, "av.sender.agent_id": "a", "av.message.digest": f"digest-{step}"},
    }


def command(word: str, step: str | None = None, **more: Any) -> dict[str, Any]:
    message_id = None if step is None else f"msg-{step}"
    body = {"event_type": "hitl_intervention", "command": word, "agent_id": "a", "message_id": message_id}
    return {"body": body | {"intervention_id": f"int-{word}"} | more, "attributes": {}}


RELEASED: dict[str, Any] = {"held_sequence_number": 1}


@pytest.mark.parametrize(
    "trail",
    [
        [command("pause"), event("message_delivered")],
        [command("pause"), event("message_held"), event("message_delivered", **RELEASED)],
        [event("message_held"), event("gate_opened"), event("message_delivered", **RELEASED)],
        [event("message_held"), event("message_rejected"), event("message_delivered", **RELEASED)],
        [event("message_held"), *[event("message_delivered", **RELEASED)] * 2],
        [
            event("message_held"),
            command("rewrite", "s1", after_hash="digest-new"),
            event("message_delivered", **RELEASED),
        ],
        [
            event("message_held", "s1"),
            event("message_held", "s2"),
            event("message_delivered", "s2", **RELEASED),
            event("message_delivered", "s1", **RELEASED),
        ],
        [command("pause"), command("pause")],
    ],
)
def test_the_auditor_sees_every_broken_promise(trail: list[dict[str, Any]]) -> None:
    def look() -> None:
        auditor = Auditor()
        for one in trail:
            auditor.read(one)
        auditor.judge(Promised(commands=["int-pause"]), is_over=True)

    with pytest.raises(Lost):
        look()


def test_the_auditor_misses_what_was_acknowledged_and_is_not_there() -> None:
    with pytest.raises(Lost, match="not in the trail"):
        Auditor().judge(Promised(steps={"s1": {"sequence_number": 1}}), is_over=True)

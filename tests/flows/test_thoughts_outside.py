"""The decision trail from outside: at the terminal, in an export through the gateway, and by strangers."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import httpx2

from tests.flows import hand as terminal
from tests.flows.answered_thoughts import CONTENT, thought_of
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.flows.test_thoughts import Hand, canonical
from tests.samples import decision_log


def test_the_trail_is_read_at_the_terminal_s345(server: Server) -> None:
    """S345: record by record with its seal; --json is the gateway's answer, --verify recomputes first."""
    hand = Hand(server)
    root = hand.sealed()["root"]
    lines = [line.split("\t") for line in terminal.done(server, "thoughts", hand.session_id).splitlines()]
    assert [line[2] for line in lines[1:]] == ["plan", "analysis", "decision", "reflection"]
    assert lines[3][4] == "ship; nothing speaks against it"
    found = terminal.answer(server, "thoughts", hand.session_id, "--verify")
    assert found["verified"]["valid"] and found["session"]["root"] == root and len(found["items"]) == 4
    assert "no thought session" in terminal.refused(server, "thoughts", str(uuid.uuid4()))


def test_an_export_through_the_gateway_has_the_words_too_s346(server: Server, tmp_path: Path) -> None:
    """S346: a thought byte for byte and a session's intent, each beside its event."""
    own, out = Tenant(server, tmp_path / "own"), tmp_path / "trail.jsonl"
    Hand(own).sealed()
    run = observatory("export", "--url", own.url, "--key", own.key("admin"), "--out", str(out))
    assert run.returncode == 0, run.stderr
    words = {}
    for line in map(json.loads, out.read_text("utf-8").splitlines()):
        body = json.loads(line["record"])["body"]
        if "words" in line:
            words[body.get("type", body["event_type"])] = line["words"].encode()
    assert words.pop("thought_session_started") == b"Ship it"
    assert words == {kind: canonical(content) for kind, content in CONTENT.items()}
    own.stop()


def test_nobody_from_outside_thinks_about_a_session_of_the_mesh_s348(server: Server, tmp_path: Path) -> None:
    """S348: a bound key that never spoke there neither starts nor opens one of that name."""
    own = Tenant(server, tmp_path / "own")
    key = own.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": "stranger"}).json()["key"]
    session = str(uuid.uuid4())
    assert own.send(decision_log(meta={"session_id": session, "step_id": "one"})).status_code == 202
    with httpx2.Client(
        base_url=own.url, headers={"authorization": f"Bearer {key}"}, trust_env=False
    ) as stranger:
        for answer in (
            stranger.post("/v1/thought-sessions", json={"intent": "x", "session_id": session.upper()}),
            stranger.post(f"/v1/sessions/{session}/thoughts", json=thought_of("plan")),
            stranger.post("/v1/thoughts", json=thought_of("plan", session_id=session)),
        ):
            assert answer.status_code == 403 and answer.json()["reason"] == "not_yours", answer.text
    assert own.http("viewer").get(f"/v1/sessions/{session}/thoughts").status_code == 404
    own.stop()

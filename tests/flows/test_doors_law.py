"""What every door keeps to, found by reading the doors as an enemy would."""

from __future__ import annotations

import json
import signal
import sqlite3
import uuid

import httpx2
import pytest

from tests.flows.server import Server
from tests.samples import decision_log


def named(session_id: str, step_id: str, intent: str) -> dict[str, object]:
    log = decision_log()
    log["meta"] |= {"session_id": session_id, "step_id": step_id, "trace_id": str(uuid.uuid4())}
    log["cognition"]["intent"] = intent
    return log


def test_a_step_id_that_looks_like_a_message_id_is_still_of_its_session_s10(server: Server) -> None:
    step = f"msg_{uuid.uuid4()}"
    answers = [server.send(named(str(uuid.uuid4()), step, intent)) for intent in ("one", "two")]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert len({answer.json()["message_id"] for answer in answers}) == 2


def test_a_session_id_with_a_slash_is_a_fault_because_names_would_be_ambiguous_s10(server: Server) -> None:
    answer = server.send(named("a/b", "c", "one"))
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["faults"]] == ["meta.session_id"]


@pytest.mark.parametrize("spelling", ["{}/{}", "{}%2F{}"])
def test_a_step_is_found_by_its_name_s10(server: Server, spelling: str) -> None:
    session = f"night-shift-{uuid.uuid4().hex}"
    sent = server.send(named(session, "read/page-1", "one")).json()
    found = server.http("operator").get("/v1/messages/" + spelling.format(session, "read/page-1"))
    assert found.status_code == 200, found.text
    assert found.json()["message_id"] == sent["message_id"]


def test_two_authorization_headers_are_refused_s50(server: Server) -> None:
    keys = server.credentials
    headers = [(b"Authorization", f"Bearer {keys[name]}".encode()) for name in ("agent_key", "admin_key")]
    answer = httpx2.get(f"{server.url}/v1/messages", headers=headers, trust_env=False)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        ('{"role": "agent", "role": "admin"}', "application/json", 400),
        ('{"role": "agent", "label": "\\u0000"}', "application/json", 400),
        ('{"role": "agent"}', "text/plain", 415),
        ("role=agent", "application/x-www-form-urlencoded", 415),
        ("{", "application/json", 400),
        ('{"role": "emperor"}', "application/json", 422),
    ],
)
def test_a_command_that_parsers_could_read_differently_is_refused_s3(
    server: Server, body: str, kind: str, code: int
) -> None:
    before = len(server.http("admin").get("/v1/keys").json()["items"])
    answer = server.http("admin").post("/v1/keys", content=body, headers={"Content-Type": kind})
    assert answer.status_code == code, answer.text
    assert {"status", "reason", "detail"} <= json.loads(answer.text).keys()
    assert len(server.http("admin").get("/v1/keys").json()["items"]) == before


def test_the_session_of_the_house_cannot_be_joined(server: Server) -> None:
    """S10: a session called system is an agent's own; the house's events are not in it."""
    session = "system"
    answer = server.send(named(session, str(uuid.uuid4()), "hello"))
    assert answer.status_code == 202
    found = server.http("operator").get("/v1/messages", params={"session_id": session}).json()["items"]
    assert answer.json()["message_id"] in {item["message_id"] for item in found}
    shown = server.http("operator").get(f"/v1/sessions/{session}").json()
    trail = server.http("operator").get(f"/v1/audit/trace/{shown['trace_id']}").json()["items"]
    assert {event["body"]["event_type"] for event in trail} == {"message_delivered"}


def test_a_bound_key_answers_for_its_own_agent_even_with_a_broken_body_s31(server: Server) -> None:
    victim, culprit = f"victim-{uuid.uuid4().hex}", f"culprit-{uuid.uuid4().hex}"
    assert server.send(decision_log(identity={"agent_id": victim})).status_code == 202
    created = server.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": culprit}).json()
    broken = decision_log(identity={"agent_id": victim})
    del broken["action"]
    answer = httpx2.post(
        f"{server.url}/v1/messages",
        json=broken,
        headers={"Authorization": f"Bearer {created['key']}"},
        trust_env=False,
    )
    assert answer.status_code == 422
    states = {
        name: server.http("operator").get(f"/v1/agents/{name}").json()["state"] for name in (victim, culprit)
    }
    assert states == {victim: "active", culprit: "schema_violation"}


def test_trust_is_of_the_key_that_sent_and_not_of_the_name_s53(server: Server) -> None:
    agent = f"agent-{uuid.uuid4().hex}"
    created = server.http("admin").post("/v1/keys", json={"role": "agent", "agent_id": agent}).json()
    received = []
    for key in (created["key"], server.credentials["agent_key"]):
        log = decision_log(identity={"agent_id": agent})
        headers = {"Authorization": f"Bearer {key}"}
        httpx2.post(f"{server.url}/v1/messages", json=log, headers=headers, trust_env=False)
        trail = server.http("operator").get(f"/v1/audit/trace/{log['meta']['trace_id']}").json()["items"]
        received.append(trail[-1]["resource"]["av.trust_level"])
    assert received == ["tenant_verified", "unverified"]


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_the_gateway_cleanly_s20(fresh_server: Server, how: str) -> None:
    assert fresh_server.send(decision_log()).status_code == 202
    process = fresh_server.process
    process.send_signal(getattr(signal, how))
    assert process.wait(timeout=30) == 0
    assert "Traceback" not in fresh_server.log


def test_after_a_clean_stop_the_file_alone_is_the_whole_archive_and_its_owners_alone_s74(
    fresh_server: Server,
) -> None:
    assert fresh_server.send(decision_log()).status_code == 202
    folder = fresh_server.folder
    fresh_server.process.send_signal(signal.SIGTERM)
    assert fresh_server.process.wait(timeout=30) == 0
    log = folder / "observatory.db-wal"
    assert not log.exists() or log.stat().st_size == 0
    with sqlite3.connect(f"file:{folder / 'observatory.db'}?mode=ro&immutable=1", uri=True) as database:
        assert database.execute("SELECT count(*) FROM messages").fetchone() == (1,)
    open_to_others = [path.name for path in folder.iterdir() if path.stat().st_mode & 0o077]
    assert open_to_others == []

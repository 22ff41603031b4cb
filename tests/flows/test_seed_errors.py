"""What the seeds ask of errors, of an intent, and of events that tell of a message."""

from __future__ import annotations

import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.flows.databases import ALONE
from tests.flows.server import Server
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


def events(server: Server, kind: str) -> list[Json]:
    found = server.http("admin").get("/v1/audit/tenant", params={"limit": 500}).json()["items"]
    return [one for one in found if one["body"]["event_type"] == kind]


@pytest.mark.req(448)
def test_what_the_database_refuses_is_on_record_as_an_error_s1166(tmp_path: Path) -> None:
    """S1166: severity 17 as the seed says, by hash alone; no agent is blamed for it."""
    with Server(tmp_path / "data", environment=ALONE) as server:
        with sqlite3.connect(server.folder / "observatory.db") as database:
            database.execute(
                "CREATE TRIGGER refuses BEFORE INSERT ON messages WHEN NEW.step_id = 'poison' "
                "BEGIN SELECT RAISE(ABORT, 'a secret of the database'); END"
            )
        sent = decision_log(meta={"step_id": "poison", "session_id": "ses-1"})
        good = decision_log(meta={"step_id": "good", "session_id": "ses-1"})
        answers = server.send_lines([json.dumps(one).encode() for one in (sent, good)])
        assert [one["code"] for one in answers] == [422, 202]
        (error,) = events(server, "error")
        assert (error["severity_text"], error["severity_number"]) == ("ERROR", 17)
        assert error["body"]["raw_payload_hash"] == answers[0]["raw_payload_hash"]
        assert error["body"]["message_type"] == "decision_log"
        text = json.dumps(error)
        assert "secret of the database" not in text and sent["cognition"]["intent"] not in text
        assert events(server, "schema_violation") == []
        assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"] is True


@pytest.mark.req(37)
@pytest.mark.parametrize("intent", ["", "  ", "\n\t"])
def test_an_empty_intent_is_refused_with_its_path_s1167(server: Server, intent: str) -> None:
    """S1167: with every other fault too, alone and as a line."""
    sent = decision_log(cognition={"intent": intent})
    answer = server.send(sent)
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["faults"]] == ["cognition.intent"]
    sent["cognition"]["confidence_score"] = 7
    (line,) = server.send_lines([json.dumps(sent).encode()])
    assert {fault["path"] for fault in line["faults"]} == {"cognition.intent", "cognition.confidence_score"}


@pytest.mark.req(415)
def test_events_of_work_that_nobody_took_name_the_message_s138(server: Server) -> None:
    """S138: parked, and given to whoever comes: both events carry the id of the answer."""
    kind, session = f"kind-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
    sent = decision_log(
        meta={"session_id": session, "step_id": "1", "parent_step_id": None},
        identity={"agent_id": f"sender-{kind}", "recipient": f"type:{kind}"},
    )
    message_id = server.send(sent).json()["message_id"]
    parked = [
        one for one in events(server, "message_undeliverable") if one["body"]["address"] == f"type:{kind}"
    ]
    assert [one["body"]["message_id"] for one in parked] == [message_id]
    agent = {"agent_id": f"taker-{kind}", "agent_type": kind}
    assert server.http("admin").post("/v1/agents", json=agent).status_code == 201

    def given() -> list[Json]:
        return [one for one in events(server, "message_rerouted") if one["body"]["address"] == f"type:{kind}"]

    assert [one["body"]["message_id"] for one in until(given)] == [message_id]

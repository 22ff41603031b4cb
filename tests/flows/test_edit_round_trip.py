"""What is shown of a held message can be sent back as an edit; it reports nothing in its agent's name."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.flows.hand import done
from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]


def looping(server: Server, reported: float | None) -> Json:
    """The last of five like steps, held: the gateway computes 0.2."""
    session, agent = str(uuid.uuid4()), f"looper-{uuid.uuid4().hex[:8]}"
    for number in range(5):
        log = decision_log(
            meta={
                "trace_id": session,
                "session_id": session,
                "step_id": f"s{number}",
                "parent_step_id": None,
            },
            identity={"agent_id": agent},
            control={"hitl_required": number == 4},
        )
        log["cognition"].pop("entropy_score", None)
        if reported is not None:
            log["cognition"]["entropy_score"] = reported
        answer = server.send(log)
        assert answer.status_code == 202, answer.text
    held: Json = answer.json() | {"agent_id": agent}
    assert held["state"] == "held"
    return held


def shown(server: Server, held: Json) -> Json:
    found: Json = server.http("operator").get(f"/v1/messages/{held['message_id']}").json()["message"]
    return found


def scores(message: Json) -> tuple[float, float | None]:
    return message["cognition"]["entropy_score"], message["cognition"]["reported_entropy_score"]


@pytest.mark.parametrize("reported", [None, 0.9])
@pytest.mark.parametrize("way", ["terminal", "api", "without the reported score", "rewrite"])
def test_an_edit_reports_nothing_for_the_agent_s1126(
    either_server: Server, tmp_path: Path, way: str, reported: float | None
) -> None:
    """S1126: by the documented round trip of the terminal, by the API, and whatever the editor leaves out."""
    server = either_server
    held = looping(server, reported)
    before = shown(server, held)
    assert scores(before) == (0.2, reported)
    path = f"/v1/sessions/{held['session_id']}"
    body = {"agent_id": held["agent_id"]}
    if way == "terminal":
        content = json.loads(done(server, "holds", str(held["sequence_number"]), "--content"))
        content["action"]["tool_input"] = '{"edited": true}'
        file = tmp_path / "message.json"
        file.write_text(json.dumps(content))
        done(server, "edit", str(held["sequence_number"]), "--file", str(file), "--note", "mended")
    else:
        before["action"]["tool_input"] = '{"edited": true}'
        if way == "without the reported score":
            del before["cognition"]["reported_entropy_score"]
        command = "rewrite" if way == "rewrite" else "edit"
        body |= {("original_message_id" if way == "rewrite" else "message_id"): held["message_id"]}
        answer = server.http("operator").post(f"{path}/{command}", json=body | {"new_content": before})
        assert answer.status_code == 200, answer.text
    after = shown(server, held)
    assert after["action"]["tool_input"] == '{"edited": true}'
    assert scores(after)[1] == reported

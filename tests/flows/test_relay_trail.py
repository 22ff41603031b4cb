"""A trail with interventions outside the gateway: verified, exported, imported, and gone on with."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.test_relay import Mesh


def lived(server: Server) -> Mesh:
    """Held, rewritten, released; rejected with its child; an open gate; a pause in force."""
    mesh = Mesh(server)
    mesh.say("1")
    mesh.do("pause", 202)
    mesh.say("2")
    new = mesh.log("2")
    new["cognition"]["intent"] = "The mended intent"
    undone = mesh.do("rewrite", 200, original_message_id="2", new_content=new)
    mesh.people.post(f"/v1/interventions/{undone['intervention_id']}/undo").raise_for_status()
    mesh.do("rewrite", 200, original_message_id="2", new_content=new)
    mesh.do("unpause", 200)
    mesh.say("no", hitl_required=True)
    mesh.do("reject", 200, message_id="no", note="never")
    mesh.say("maybe", hitl_required=True)
    mesh.do("pause", 202)
    mesh.say("3")
    return mesh


@pytest.mark.req(194, 195)
@pytest.mark.parametrize("source", ["folder", "gateway"])
def test_an_import_goes_on_where_the_relay_stood_s81(source: str, tmp_path: Path) -> None:
    out = tmp_path / "trail.jsonl"
    with Server(tmp_path / "first", environment=ALONE) as server:
        mesh = lived(server)
        if source == "gateway":
            words = ["--url", server.url, "--key", server.key("admin")]
            done = observatory("export", "--out", str(out), *words)
            assert done.returncode == 0, done.stderr
    if source == "folder":
        done = observatory("export", "--out", str(out), "--data", str(tmp_path / "first"))
        assert done.returncode == 0, done.stderr
    assert observatory("verify", "--data", str(tmp_path / "first")).returncode == 0
    checked = observatory("verify", "--export", str(out))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = observatory("import", "--in", str(out), "--data", str(tmp_path / "second"))
    assert done.returncode == 0, done.stderr
    with Server(tmp_path / "second", environment=ALONE) as server:
        mesh.server, mesh.people = server, server.http("operator")
        held = mesh.people.get("/v1/holds").json()["items"]
        assert [(one["step_id"], one["gate"], one["cause"]) for one in held] == [
            ("maybe", "open", "gate"),
            ("3", "none", "pause"),
        ]
        states = {step: mesh.message(step)["state"] for step in ("1", "2", "no", "maybe", "3")}
        assert states == {"1": "forwarded", "2": "forwarded", "no": "rejected", "maybe": "held", "3": "held"}
        assert mesh.message("2")["message"]["cognition"]["intent"] == "The mended intent"
        did = mesh.people.get(f"/v1/sessions/{mesh.session}/interventions").json()["items"]
        words = [one["command"] for one in did]
        assert words == ["pause", "rewrite", "rewrite", "unpause", "reject", "pause"]
        assert [one["reversed_at"] is not None for one in did] == [True, True, False, False, False, False]
        assert mesh.say("4") == "held", "the pause is in force"
        assert mesh.do("unpause", 200)["released"] == 2
        assert mesh.do("approve", 200, message_id="maybe")["state"] == "forwarded"
        assert mesh.delivered() == ["1", "2", "3", "4", "maybe"]
    assert observatory("verify", "--data", str(tmp_path / "second")).returncode == 0


def test_a_rewrite_bent_in_the_database_is_found_s82(tmp_path: Path) -> None:
    with Server(tmp_path / "data", environment=ALONE) as server:
        lived(server)
    connection = sqlite3.connect(tmp_path / "data" / "observatory.db")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE rewrites SET raw = x'00'")
    with connection:
        connection.execute("DROP TRIGGER rewrites_fixed")  # as someone with the file in hand would
        connection.execute("UPDATE rewrites SET raw = replace(raw, 'mended', 'forged')")
    connection.close()
    done = observatory("verify", "--data", str(tmp_path / "data"))
    assert done.returncode == 2
    assert "rewrite" in done.stdout + done.stderr

"""`observatory import` and `copy`: a trail moves to another house or database, and its chain goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract import postgres
from tests.flows.insight import settled
from tests.flows.server import Server, observatory
from tests.flows.trail.outside import manifest_of, refused, verified
from tests.samples import decision_log


def portrait(server: Server) -> dict[str, Any]:
    """What readers see, but for the times of the house's own clock."""
    settled(server)
    http = server.http()
    agents = http.get("/v1/agents").json()["items"]
    sessions = http.get("/v1/sessions").json()["items"]
    shown = ("agent_id", "agent_type", "capability_version", "cluster_id", "trust_level", "messages", "ghost")
    whole = [http.get(f"/v1/sessions/{session['session_id']}").json() for session in sessions]
    return {
        "messages": http.get("/v1/messages", params={"limit": 1000}).content,
        "agents": sorted(tuple(agent[name] for name in shown) for agent in agents),
        "sessions": [
            {name: value for name, value in one.items() if not name.endswith("_at")} for one in whole
        ],
        "versions": [
            (row["agent_type"], row["version"], row["status"])
            for row in http.get("/v1/versions").json()["items"]
        ],
    }


@pytest.mark.req(324, 460)
def test_an_imported_trail_reads_like_the_first_and_its_chain_goes_on(
    lived: Path, exported: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    run = observatory("import", "--in", str(exported), "--data", str(new))
    assert run.returncode == 0, run.stderr
    again = tmp_path / "again.jsonl"
    assert observatory("export", "--data", str(new), "--out", str(again)).returncode == 0
    assert again.read_bytes() == exported.read_bytes()
    end = json.loads(manifest_of(exported).read_text())["to_sequence"]
    with Server(shutil.copytree(lived, tmp_path / "old")) as first, Server(new) as second:
        assert portrait(second) == portrait(first)
        received = map(json.loads, exported.read_text("utf-8").splitlines()[80:])
        known = next(one for one in received if one["message"] is not None)
        repeat = second.send(known["message"]["raw"].encode())
        assert repeat.json()["sequence_number"] == known["sequence_number"]
        fresh = second.send(decision_log(identity={"agent_id": "worker-0"}))
        assert fresh.status_code == 202 and fresh.json()["sequence_number"] > end
        assert second.http().post("/v1/audit/verify", json={}).json()["valid"]
    assert verified("--data", str(new))[0] == 0


def test_import_refuses_a_tenant_with_events_and_a_folder_in_use(
    exported: Path, data: Path, server: Server
) -> None:
    assert "already has" in refused("import", "--in", str(exported), "--data", str(data))
    assert f"process {server.pid}" in refused("import", "--in", str(exported), "--data", str(server.folder))
    other = ("--tenant", "tnt_elsewhere", "--data", str(data))
    assert "cannot become tnt_elsewhere" in refused("import", "--in", str(exported), *other)


def test_only_a_whole_export_can_be_imported(lived: Path, tmp_path: Path) -> None:
    for name, words, reason in (
        ("late.jsonl", ["--from", "5"], "begins at event 5"),
        ("bare.jsonl", ["--no-payloads"], "--no-payloads"),
    ):
        out = str(tmp_path / name)
        assert observatory("export", "--data", str(lived), "--out", out, *words).returncode == 0
        assert verified("--export", out)[0] == 0
        assert reason in refused("import", "--in", out, "--data", str(tmp_path / "new"))


@pytest.fixture(scope="module")
def databases() -> Iterator[postgres.Server]:
    with postgres.server() as running:
        yield running


def test_a_trail_goes_to_postgresql_and_back_unchanged(
    databases: postgres.Server, exported: Path, tmp_path: Path
) -> None:
    url = databases.fresh()
    run = observatory("import", "--in", str(exported), "--db", url)
    assert run.returncode == 0, run.stderr
    assert verified("--db", url)[0] == 0
    back = tmp_path / "back.jsonl"
    assert observatory("export", "--db", url, "--out", str(back)).returncode == 0
    assert back.read_bytes() == exported.read_bytes()
    assert "already has" in refused("import", "--in", str(exported), "--db", url)


def test_copy_moves_a_house_to_postgresql_and_closes_the_old_one(
    databases: postgres.Server, data: Path
) -> None:
    """S73."""
    url = databases.fresh()
    run = observatory("copy", "--from", f"sqlite:///{data / 'observatory.db'}", "--to", url)
    assert run.returncode == 0, run.stderr
    code, found = verified("--db", url)
    assert code == 0 and {tenant["tenant_id"] for tenant in found["tenants"]} == {"tnt_default", "tnt_other"}
    assert "was moved to" in refused("serve", "--data", str(data), "--port", "0")

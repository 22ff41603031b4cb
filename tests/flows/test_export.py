"""The trail outside the gateway: verified, exported, imported; cut, bent and broken ones are told apart."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract import postgres
from tests.flows.server import COMMAND, Server, clean_environment, observatory
from tests.samples import decision_log, envelope

MANY = 21_000  # enough for verify to share the work


def lines(count: int, agents: int = 7) -> list[bytes]:
    sessions = [str(uuid.uuid4()) for _ in range(5)]
    made = []
    for number in range(count):
        log = decision_log(
            meta={"step_id": str(uuid.uuid4()), "session_id": sessions[number % 5]},
            identity={"agent_id": f"worker-{number % agents}"},
            cognition={"intent": f"Straße {number} 🙂"},
            state_delta={"cumulative_session_cost": number / 100},
        )
        made.append(json.dumps(log, ensure_ascii=False).encode())
    return made


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a gateway has worked and stopped: both forms, violations, versions, another tenant."""
    folder = tmp_path_factory.mktemp("lived") / "data"
    with Server(folder) as server:
        server.send_lines(lines(60))
        server.send(envelope("status_alert"))
        server.send(envelope("heartbeat"))
        server.send(b'{"meta": {}}')
        server.send(decision_log(identity={"capability_version": 7}))
        server.http().put(
            "/v1/versions",
            json={"agent_type": "writer", "versions": [{"version": "1.0.0", "status": "current"}]},
        )
        server.http().post("/v1/tenants", json={"display_name": "Other", "tenant_id": "tnt_other"})
    return folder


@pytest.fixture
def data(lived: Path, tmp_path: Path) -> Path:
    return shutil.copytree(lived, tmp_path / "data")


@pytest.fixture(scope="module")
def exported(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "trail.jsonl"
    run = observatory("export", "--data", str(lived), "--out", str(out))
    assert run.returncode == 0, run.stderr
    return out


def manifest_of(path: Path) -> Path:
    return path.with_name(path.name + ".manifest.json")


def verified(*words: str) -> tuple[int, dict[str, Any]]:
    run = observatory("verify", *words, "--json")
    assert "observatory:" not in run.stderr
    return run.returncode, json.loads(run.stdout)


def refused(*words: str) -> str:
    run = observatory(*words)
    assert run.returncode == 1 and run.stdout == "", run
    (sentence,) = run.stderr.splitlines()
    return sentence


def bend(folder: Path, *statements: str) -> None:
    """What someone with the file in their hands could do: no trigger stops them."""
    connection = sqlite3.connect(folder / "observatory.db", isolation_level=None)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        assert connection.execute(statement).rowcount == 1, statement
    connection.close()


# --- verify ---


@pytest.mark.req(324, 450, 459, 460, 498)
def test_verify_says_what_held_of_every_tenant_while_the_gateway_runs(server: Server) -> None:
    """S82."""
    server.send_lines(lines(20))
    code, found = verified("--data", str(server.folder))
    assert code == 0 and found["valid"]
    home = next(tenant for tenant in found["tenants"] if tenant["tenant_id"] == "tnt_default")
    assert home["checks"] == dict.fromkeys(("density", "chain", "record", "leaf", "payloads", "head"), True)
    assert home["payloads_checked"] >= 20 and home["events_verified"] == home["to_sequence"]


def test_verify_takes_a_range_a_tenant_and_leaves_payloads_out(data: Path) -> None:
    code, found = verified(
        "--data", str(data), "--tenant", "tnt_default", "--from", "5", "--to", "9", "--no-payloads"
    )
    (tenant,) = found["tenants"]
    assert code == 0 and tenant["events_verified"] == 5
    assert tenant["checks"]["payloads"] is None and tenant["checks"]["head"] is None
    assert "no such tenant" in refused("verify", "--data", str(data), "--tenant", "tnt_none")
    assert "past the head" in refused("verify", "--data", str(data), "--tenant", "tnt_other", "--from", "999")


def test_verify_can_ask_the_gateway(server: Server) -> None:
    code, found = verified("--url", server.url, "--key", server.key("operator"))
    assert code == 0 and found["tenants"][0]["checks"]["chain"] is True


LOG, HOME = (
    "UPDATE audit_log SET",
    "(SELECT tenant_no << 40 FROM chain_heads WHERE tenant_id = 'tnt_default')",
)
ROW = f"WHERE key = {HOME} + 90"
TAIL = f"DELETE FROM audit_log WHERE key = (SELECT max(key) FROM audit_log WHERE key < 2 * {HOME})"
BENT: list[tuple[str, str, int | None, list[str]]] = [
    ("a record", "record", 90, [f"{LOG} record = replace(CAST(record AS TEXT), 'INFO', 'WARN') {ROW}"]),
    ("its leaf", "leaf", 90, [f"{LOG} leaf_hash = zeroblob(32) {ROW}"]),
    ("a row is gone", "density", 90, [f"DELETE FROM audit_log {ROW}"]),
    ("the last row is gone", "head", None, [TAIL]),
    (
        "the head",
        "head",
        None,
        ["UPDATE chain_heads SET event_hash = 'sha256:0' WHERE tenant_id = 'tnt_default'"],
    ),
    ("the archived bytes", "payload", 90, [f"UPDATE payloads SET raw = raw || ' ' {ROW}"]),
    ("bytes vanish unordered", "payload", 90, [f"UPDATE payloads SET raw = NULL {ROW}"]),
    ("a message is gone", "payload", 90, [f"DELETE FROM payloads {ROW}", f"DELETE FROM messages {ROW}"]),
]


@pytest.mark.req(324, 457, 458)
@pytest.mark.parametrize(
    ("what", "number", "statements"), [case[1:] for case in BENT], ids=[c[0] for c in BENT]
)
def test_what_was_bent_is_named(data: Path, what: str, number: int | None, statements: list[str]) -> None:
    bend(data, *statements)
    code, found = verified("--data", str(data), "--tenant", "tnt_default")
    broken = found["tenants"][0]["first_break"]
    assert code == 2 and not found["valid"]
    # A changed record is no longer the one in its leaf; which of the two is told first is not the point.
    assert broken["what"] == what or (what, broken["what"]) == ("record", "leaf")
    assert number is None or broken["sequence_number"] == number
    assert found["tenants"][0]["checks"]["payloads" if what == "payload" else broken["what"]] is False


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "data"
    with Server(folder) as server:
        made = lines(MANY)
        for start in range(0, MANY, 3_000):
            server.send_lines(made[start : start + 3_000])
    return folder


def test_two_processes_share_a_long_trail_and_find_a_break_in_the_second_half(
    long: Path, tmp_path: Path
) -> None:
    run = observatory("verify", "--data", str(long), "--workers", "2")
    assert run.returncode == 0 and "valid" in run.stdout
    assert "verifying tnt_default: " in run.stderr  # progress, in plain lines, not among the results
    data = shutil.copytree(long, tmp_path / "data")
    bend(data, f"DELETE FROM audit_log WHERE key = {HOME} + {MANY - 7}")
    run = observatory("verify", "--data", str(data), "--no-payloads")
    assert run.returncode == 2
    assert f"BROKEN at event {MANY - 7:,}" in run.stdout and "density   BROKEN" in run.stdout


# --- export ---


def test_an_export_brings_back_every_byte(lived: Path, exported: Path) -> None:
    entries = [json.loads(line) for line in exported.read_text("utf-8").splitlines()]
    manifest = json.loads(manifest_of(exported).read_text())
    assert [entry["sequence_number"] for entry in entries] == list(range(1, manifest["events"] + 1))
    connection = sqlite3.connect(lived / "observatory.db")
    rows = connection.execute(
        "SELECT a.record, p.raw FROM audit_log a LEFT JOIN payloads p USING (key) WHERE tenant_no = "
        "(SELECT tenant_no FROM chain_heads WHERE tenant_id = 'tnt_default') ORDER BY key"
    ).fetchall()
    connection.close()
    assert [entry["record"].encode() for entry in entries] == [bytes(record) for record, _ in rows]
    raws = [entry["message"]["raw"].encode() if entry["message"] else None for entry in entries]
    assert raws == [raw for _, raw in rows]
    assert manifest["messages"] == 62 and manifest["head"]["event_hash"] == manifest["last_hash"]


def test_an_export_verifies_and_says_so(exported: Path) -> None:
    code, found = verified("--export", str(exported))
    (tenant,) = found["tenants"]
    assert code == 0 and all(tenant["checks"].values()) and tenant["payloads_checked"] == 62


def test_an_auditor_exports_through_the_gateway_and_an_operator_may_not(
    server: Server, tmp_path: Path
) -> None:
    server.send(b"  " + lines(1)[0] + b" \n")  # archived with its blanks, shown without
    server.send_lines(lines(20))
    out = tmp_path / "part.jsonl.gz"
    source = ("--url", server.url, "--key", server.key("auditor"))
    run = observatory("export", *source, "--from", "3", "--out", str(out))
    assert run.returncode == 0, run.stderr
    assert verified("--export", str(out))[0] == 0
    first = json.loads(gzip.decompress(out.read_bytes()).splitlines()[0])
    assert first["sequence_number"] == 3
    stored = observatory(
        "export", "--data", str(server.folder), "--from", "3", "--out", str(tmp_path / "b.jsonl")
    )
    assert stored.returncode == 0
    assert json.loads((tmp_path / "b.jsonl").read_text().splitlines()[0])["record"] == first["record"]
    other = ("--url", server.url, "--key", server.key("operator"), "--out", str(tmp_path / "no.jsonl"))
    assert "may not export" in refused("export", *other)


def test_an_export_is_never_overwritten_and_never_left_half(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "trail.jsonl"
    words = ("export", "--data", str(data), "--out", str(out))
    assert "does not exist" in refused(*words)
    out.parent.mkdir()
    bend(data, f"DELETE FROM audit_log {ROW}")
    assert "event 91 stands where event 90 must be" in refused(*words)
    assert list(out.parent.iterdir()) == []
    out.write_text("precious")
    assert "exists already" in refused(*words)
    assert out.read_text() == "precious"


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-400])


def _flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))


def _forge(path: Path) -> None:
    """Last line and manifest's digest taken away together: only the counts and the chain's end still tell."""
    from hashlib import sha256

    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:-1])
    path.write_bytes(kept)
    manifest = json.loads(manifest_of(path).read_text())
    manifest |= {"bytes": len(kept), "sha256": "sha256:" + sha256(kept).hexdigest()}
    manifest_of(path).write_text(json.dumps(manifest))


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (_cut, "cut short"),
    (_flip, "SHA-256 differs"),
    (_forge, "the manifest says"),
    (lambda path: manifest_of(path).unlink(), "an export is two files"),
    (lambda path: manifest_of(path).write_text("{}"), "not one of an export"),
]


@pytest.mark.parametrize(("spoil", "word"), SPOILT, ids=[word for _, word in SPOILT])
def test_a_spoilt_export_is_refused_before_anything_is_written(
    exported: Path, tmp_path: Path, spoil: Callable[[Path], object], word: str
) -> None:
    """S81."""
    path = Path(shutil.copy(exported, tmp_path))
    shutil.copy(manifest_of(exported), tmp_path)
    spoil(path)
    assert word in refused("verify", "--export", str(path))
    assert word in refused("import", "--in", str(path), "--data", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


# --- import ---


def portrait(server: Server) -> dict[str, Any]:
    """What readers see, but for the times of the house's own clock."""
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
        known = json.loads(exported.read_text("utf-8").splitlines()[89])
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


def test_an_import_that_was_killed_left_nothing_and_can_be_repeated(long: Path, tmp_path: Path) -> None:
    out, new = tmp_path / "trail.jsonl", tmp_path / "new"
    assert observatory("export", "--data", str(long), "--out", str(out)).returncode == 0
    command = [*COMMAND, "import", "--in", str(out), "--data", str(new)]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean_environment())
    assert run.stderr is not None
    while not (line := run.stderr.readline()).startswith("importing"):
        assert line, "the import ended before it began"
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stderr.close()
    assert "no such tenant" in refused("verify", "--data", str(new))
    assert observatory("import", "--in", str(out), "--data", str(new)).returncode == 0
    assert verified("--data", str(new), "--workers", "1", "--no-payloads")[1]["valid"]


# --- PostgreSQL ---


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

"""The signed log through its doors: proofs strangers can check, tiles, roles, tenants, restarts."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from observatory.ledger import merkle, note, tiles, tlog_proof
from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


@pytest.fixture
def own(either_server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(either_server, tmp_path / "own")
    yield made
    made.stop()


def ask(server: Server, path: str, **query: Any) -> Json:
    answer = server.http("viewer").get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def say(server: Server, count: int = 1) -> None:
    lines = [json.dumps(decision_log()).encode() for _ in range(count)]
    assert {line["code"] for line in server.send_lines(lines)} == {202}


def newest(server: Server) -> Json:
    found: Json = ask(server, "/v1/audit/tenant", limit=1)["items"][0]
    return found


def signed(server: Server) -> Json:
    """The log once everything is under a checkpoint."""

    def look() -> Json:
        found = ask(server, "/v1/audit/log")
        return found if found["state"] == "signed" else {}

    return until(look)


def checked(server: Server, proof: Json) -> None:
    """As a stranger would: by the record's text, the proof and the verification key alone."""
    record, leaf = proof["record"].encode(), proof["leaf"].encode()
    event = json.loads(record)
    assert event["audit_event_id"] == proof["audit_event_id"]
    assert leaf.decode().splitlines() == [
        "observatory-audit-leaf/v1",
        proof["tenant_id"],
        str(proof["sequence_number"]),
        event["hash_chain"]["event_hash"],
        "sha256:" + sha256(record).hexdigest(),
    ]
    text, names = note.open(proof["checkpoint"].encode(), [note.Verifier.from_vkey(proof["vkey"])])
    origin, size, root = note.parse_checkpoint(text)
    assert (names, origin, size) == ([proof["origin"]], proof["origin"], proof["size"])
    hashes = [b64decode(one) for one in proof["hashes"]]
    leaf_hash = merkle.leaf_hash(leaf)
    assert b64decode(proof["leaf_hash"]) == leaf_hash
    assert merkle.verify_inclusion(leaf_hash, proof["index"], size, hashes, root)


@pytest.mark.req(461, 512)
def test_an_event_of_just_now_is_proven_within_two_seconds_s367(own: Tenant) -> None:
    """S367, S356: the door waits for the checkpoint that covers it."""
    say(own, 3)
    event, began = newest(own), time.monotonic()
    proof = ask(own, f"/v1/audit/proof/{event['audit_event_id']}")
    assert time.monotonic() - began < 3
    assert proof["sequence_number"] == event["hash_chain"]["sequence_number"] <= proof["size"]
    checked(own, proof)
    first = ask(own, "/v1/audit/tenant", limit=1000)["items"][-1]
    checked(own, ask(own, f"/v1/audit/proof/{first['audit_event_id']}"))


def test_the_tlog_proof_file_holds_the_same_s366(own: Tenant) -> None:
    """S366: by its name, or by what is accepted; the checkpoint byte for byte."""
    say(own)
    event = newest(own)
    path = f"/v1/audit/proof/{event['audit_event_id']}"
    proof = ask(own, path)
    for answer in (
        own.http("viewer").get(path, params={"format": "tlog-proof"}),
        own.http("viewer").get(path, headers={"accept": "text/plain"}),
    ):
        assert answer.headers["content-type"].startswith("text/plain")
        assert ".tlog-proof" in answer.headers["content-disposition"]
        index, hashes, checkpoint = tlog_proof.read(answer.content)
        text, _ = note.open(checkpoint, [note.Verifier.from_vkey(proof["vkey"])])
        _, size, root = note.parse_checkpoint(text)
        assert index == proof["index"]
        assert merkle.verify_inclusion(b64decode(proof["leaf_hash"]), index, size, hashes, root)


def test_an_id_that_is_none_is_proven_by_nobody_s367(own: Tenant, either_server: Server) -> None:
    """S367: 404; also for another's event and for an id whose number is taken by another event."""
    say(own)
    event_id = newest(own)["audit_event_id"]
    other = event_id[:-11] + ("0" if event_id[-11] != "0" else "1") + event_id[-10:]
    for wrong in (
        "none",
        "evt_",
        other,
        newest(either_server)["audit_event_id"],
        event_id.replace("evt_", "msg_"),
    ):
        answer = own.http("viewer").get(f"/v1/audit/proof/{wrong}")
        assert (answer.status_code, answer.json()["reason"]) == (404, "not_found"), wrong
    assert own.http("viewer").get(f"/v1/audit/proof/{event_id}?format=xml").status_code == 400


def test_one_size_goes_on_from_another_s368(own: Tenant) -> None:
    """S368: between any two, up to the signed one; a range that is none is refused."""
    say(own, 4)
    before = signed(own)
    say(own, 3)
    after = signed(own)
    roots = [note.parse_checkpoint(note.split(one["checkpoint"].encode())[0])[2] for one in (before, after)]
    found = ask(own, "/v1/audit/consistency", **{"from": before["size"], "to": after["size"]})
    assert (found["from"], found["to"], found["checkpoint"]) == (
        *(before["size"], after["size"]),
        after["checkpoint"],
    )
    proof = [b64decode(one) for one in found["hashes"]]
    assert merkle.verify_consistency(found["from"], found["to"], roots[0], roots[1], proof)
    assert ask(own, "/v1/audit/consistency", **{"from": 1})["to"] == after["size"]
    middle = ask(own, "/v1/audit/consistency", **{"from": 1, "to": 2})
    proof = [b64decode(one) for one in middle["hashes"]]
    ends = [b64decode(middle[f"{end}_root"]) for end in ("from", "to")]
    assert merkle.verify_consistency(1, 2, ends[0], ends[1], proof)
    for query, code in (
        ("from=5&to=4", 422),
        ("from=0", 400),
        ("from=1&to=0", 400),
        ("from=x", 400),
        ("", 400),
        ("from=1&to=999999", 422),
        ("from=999999", 422),
        ("from=99999999999999999999", 400),
    ):
        answer = own.http("viewer").get(f"/v1/audit/consistency?{query}")
        assert answer.status_code == code, (query, answer.text)


def test_the_log_says_how_far_it_is_signed_and_by_whom_s369(own: Tenant) -> None:
    """S369, S351: at rest nothing is unsigned; the origin names the tenant."""
    say(own)
    found = signed(own)
    assert found["origin"].endswith(f"/{own.tenant_id}")
    assert (found["size"], found["unsigned"], found["unsigned_age_s"]) == (found["head"], 0, 0)
    assert found["vkey"].startswith(found["origin"] + "+") and [one["current"] for one in found["vkeys"]] == [
        True
    ]
    assert found["vkeys"][0]["since_sequence"] == 0 and found["max_unsigned_age_s"] == 1
    note.open(found["checkpoint"].encode(), [note.Verifier.from_vkey(found["vkey"])])
    health = ask(own, "/v1/fleet/health")["log"]
    assert (health["status"], health["size"]) == ("ok", found["size"])


def fetch(server: Server, path: str) -> httpx2.Response:
    return server.http("viewer").get(path)


@pytest.mark.req(461)
def test_a_stranger_rebuilds_the_log_from_its_tiles_s365(own: Tenant) -> None:
    """S365, S370: hashes, entries and checkpoint under C2SP's paths, with their types and ages."""
    say(own, 300)
    tenant, base = signed(own), f"/v1/log/{own.tenant_id}"
    answer = fetch(own, f"{base}/checkpoint")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "private, max-age=2"
    text, _ = note.open(answer.content, [note.Verifier.from_vkey(tenant["vkey"])])
    _, size, root = note.parse_checkpoint(text)
    leaves: list[bytes] = []
    for tile in tiles.of_size(size):
        found = fetch(own, f"{base}/{tiles.path(tile.level, tile.index, tile.width)}")
        assert found.status_code == 200, found.text
        assert found.headers["content-type"] == "application/octet-stream"
        assert found.headers["cache-control"] == "private, max-age=31536000, immutable"
        assert len(found.content) == 32 * tile.width
        if tile.level:
            assert found.content == b"".join(merkle.root(leaves[i : i + 256]) for i in range(0, 256, 256))
            continue
        leaves += tiles.cut(found.content)
        bundle = fetch(own, f"{base}/{tiles.path('entries', tile.index, tile.width)}").content
        hashed = []
        while bundle:
            length = int.from_bytes(bundle[:2], "big")
            hashed.append(merkle.leaf_hash(bundle[2 : 2 + length]))
            bundle = bundle[2 + length :]
        assert hashed == tiles.cut(found.content)
    assert merkle.root(leaves) == root and len(leaves) == size
    part = fetch(own, f"{base}/tile/0/000.p/5")
    assert part.content == b"".join(leaves[:5]), "a beginning of a tile that has grown since"


@pytest.mark.parametrize(
    "name",
    [
        *(
            "tile/0/001",
            "tile/0/000.p/255",
            "tile/1/000",
            "tile/1/000.p/1",
            "tile/entries/001",
            "tile/-1/000",
        ),
        *("tile/00/000", "tile/0/0", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/x000/000", "tile/7/000"),
        *("tile/0/000.p/a", "tile/x/000", "tile/entries/000.p/200", "tile/64/000.p/1"),
    ],
)
def test_what_the_log_has_not_is_not_there_s365(own: Tenant, name: str) -> None:
    """S365: an empty tile is never served, nor one in another spelling, nor more than is signed."""
    signed(own)
    answer = fetch(own, f"/v1/log/{own.tenant_id}/{name}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "not_found")


def test_a_log_is_its_tenants_alone_s370(own: Tenant, either_server: Server) -> None:
    """S370: another tenant's is answered as one that is nowhere; without a key nobody sees any."""
    server = either_server
    signed(own)
    for path in ("checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"):
        answers = [
            server.http("admin").get(f"/v1/log/{tenant}/{path}") for tenant in (own.tenant_id, "tnt_nowhere")
        ]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
        assert fetch(own, f"/v1/log/{own.tenant_id}/{path}").status_code == 200
        assert server.http("nobody").get(f"/v1/log/{own.tenant_id}/{path}").status_code == 401
        assert own.http("agent").get(f"/v1/log/{own.tenant_id}/{path}").status_code == 403


def test_verification_says_whether_root_and_signature_held_s371(own: Tenant) -> None:
    """S371: over everything, over a part that a checkpoint ends in, and nothing where none does."""
    say(own, 5)
    size = signed(own)["size"]
    say(own, 2)
    signed(own)
    http = own.http("auditor")

    def checks(**body: int) -> list[bool | None]:
        answer = http.post("/v1/audit/verify", json=body).json()
        assert answer["valid"] is True, answer
        return [answer["checks"][name] for name in ("log_root", "signature")]

    assert checks() == checks(from_sequence=2) == checks(from_sequence=3, to_sequence=size) == [True, True]
    assert checks(to_sequence=1) in ([True, True], [None, None])


def test_figures_tell_how_far_the_logs_are_behind_s373(server: Server) -> None:
    """S373: no name in it."""
    signed(server)
    text = server.http("viewer").get("/metrics").text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(found["observatory_log_size"]) > 0
    assert 0 <= float(found["observatory_log_unsigned_age_seconds"]) < 5
    assert float(found["observatory_log_refused"]) == 0


def test_only_the_home_tenants_admin_lets_a_new_key_follow_s372(own: Tenant, either_server: Server) -> None:
    """S372."""
    assert own.http("admin").post("/v1/audit/log/rotate").status_code == 403
    assert either_server.http("operator").post("/v1/audit/log/rotate").status_code == 403


@pytest.mark.req(461)
def test_a_key_is_followed_by_another_from_the_terminal_s364(fresh_server: Server) -> None:
    """S364, S372: both under one checkpoint; proofs of before still open with the old key."""
    server = fresh_server
    say(server, 2)
    before = signed(server)
    received = observatory("log-key", "rotate", "--yes", "--data", str(server.folder))
    assert received.returncode == 0, received.stderr
    new = received.stdout.strip()
    after = signed(server)
    assert [one["vkey"] for one in after["vkeys"]] == [before["vkey"], new] and after["vkey"] == new
    events = ask(server, "/v1/audit/tenant", limit=50)["items"]
    (event,) = [one for one in events if one["body"]["event_type"] == "log_key_rotated"]
    assert event["body"]["vkey"] == new and event["body"]["previous_vkeys"] == [before["vkey"]]
    shown = observatory("log-key", "show", "--data", str(server.folder))
    assert new in shown.stdout.replace("\n", "") or "current" in shown.stdout
    say(server)
    checked(server, ask(server, f"/v1/audit/proof/{newest(server)['audit_event_id']}"))
    # One asked for right behind another is too early; the sealer needs a quarter of a second for its own.
    answers = (server.http("admin").post("/v1/audit/log/rotate") for _ in range(20))
    early = next(answer for answer in answers if answer.status_code != 200)
    assert (early.status_code, early.json()["reason"]) == (409, "rotation_under_way")
    assert "wait for its checkpoint" in early.json()["detail"]
    signed(server)


def test_it_goes_on_after_a_kill_and_the_key_is_its_owners_s358(fresh_server: Server) -> None:
    """S358, S361: killed under load; each start goes on from what was signed."""
    server, sizes = fresh_server, [signed(fresh_server)["size"]]
    for _ in range(2):
        say(server, 600)
        server.restart(kill=True)
        sizes.append(signed(server)["size"])
    assert sizes == sorted(set(sizes)) and sizes[-1] > 1_200
    found = server.http("admin").post("/v1/audit/verify", json={}).json()
    assert found["valid"] and found["checks"]["log_root"] and found["checks"]["signature"]
    server.stop()
    for name in ("log.key", "log.key.signed"):
        assert (server.folder / name).stat().st_mode & 0o777 == 0o600
    (server.folder / "log.key").chmod(0o644)
    with pytest.raises(AssertionError, match="chmod 600"):
        server.start()


def test_a_restored_backup_is_told_of_and_accepted_only_by_word_s360(tmp_path: Path) -> None:
    """S359, S360: messages go on being stored, every door tells what is not signed, the flag is recorded."""
    folder, backup = tmp_path / "data", tmp_path / "backup.db"
    with Server(folder, environment=ALONE) as server:
        say(server, 3)
        signed(server)
        source, copy = (sqlite3.connect(path) for path in (folder / "observatory.db", backup))
        source.backup(copy)
        source.close()
        copy.close()
        say(server, 40)
        signed(server)
    shutil.copyfile(backup, folder / "observatory.db")
    with Server(folder, environment=ALONE) as server:
        until(lambda: ask(server, "/v1/audit/log")["state"] == "refused")
        ready = server.http("nobody").get("/readyz")
        assert ready.status_code == 200 and "not signed" in ready.json()["detail"]
        assert "tnt_" not in ready.text
        health = ask(server, "/v1/fleet/health")
        assert health["status"] == health["log"]["status"] == "down" and "restored" in health["log"]["text"]
        say(server)
        proof = server.http("viewer").get(f"/v1/audit/proof/{newest(server)['audit_event_id']}")
        assert (proof.status_code, proof.json()["reason"]) == (409, "not_sealed")
        found = server.http("admin").post("/v1/audit/verify", json={}).json()
        assert not found["valid"] and found["first_break"]["what"] == "log"
        assert server.http("admin").post("/v1/audit/log/rotate").status_code == 409
    with Server(folder, "--accept-rollback", environment=ALONE) as server:
        signed(server)
        received = ask(server, "/v1/audit/tenant", severity_min=21)["items"]
        assert [event["body"]["event_type"] for event in received] == ["rollback_accepted", "chain_broken"]
        assert server.http("admin").post("/v1/audit/verify", json={}).json()["valid"]
        checked(server, ask(server, f"/v1/audit/proof/{newest(server)['audit_event_id']}"))


def test_a_public_log_needs_no_key_and_nothing_else_is_public_s370(tmp_path: Path) -> None:
    """S370, S351: checkpoint and tiles; under the name that was set."""
    settings = {"OBSERVATORY_LOG_PUBLIC": "true", "OBSERVATORY_LOG_NAME": "log.example/v1/log"}
    with Server(tmp_path / "data", environment=ALONE | settings) as server:
        assert signed(server)["origin"] == "log.example/v1/log/tnt_default"
        nobody = server.http("nobody")
        answer = nobody.get("/v1/log/tnt_default/checkpoint")
        assert answer.text.startswith("log.example/v1/log/tnt_default\n")
        assert answer.headers["cache-control"] == "public, max-age=2"
        assert nobody.get("/v1/log/tnt_default/tile/0/000.p/1").status_code == 200
        assert nobody.get("/v1/log/tnt_nowhere/checkpoint").status_code == 404
        for path in ("log", "tenant", "consistency?from=1", "proof/none"):
            assert nobody.get(f"/v1/audit/{path}").status_code == 401


@pytest.mark.parametrize("name", ["a b", "x" * 300])
def test_a_name_that_no_key_can_have_ends_the_start_with_a_sentence_s351(tmp_path: Path, name: str) -> None:
    """S351."""
    server = Server(tmp_path / "data", environment=ALONE | {"OBSERVATORY_LOG_NAME": name})
    with pytest.raises(AssertionError, match="log_name is not usable"):
        server.start()

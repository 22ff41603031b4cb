"""What the second seed says of edits and corrections, tried through the endpoints on an edited database.

The gateway is stopped, a row is changed with a plain SQLite client that removes the triggers first, and the
gateway is started again: what it answers then is what an auditor would see.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.flows.server import Server
from tests.flows.test_thoughts import Hand, canonical, raw, sha

Json = dict[str, Any]
HASHED = (
    *("record_id", "session_id", "task_id", "index", "type", "content", "author", "created_at"),
    *("references", "audit_event_ids", "predecessor_chain_hash"),
)


def edited(server: Server, sql: str, *values: Any) -> None:
    """Stop, change the database with its triggers gone, start again."""
    server.stop()
    database = sqlite3.connect(next(Path(server.folder).glob("*.db")))
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    assert database.execute(sql, values).rowcount == 1
    database.commit()
    database.close()
    server.start()


def chain_hashes(genesis: str, items: list[Json]) -> list[bytes]:
    """The chain as a reader computes it from what is served."""
    found, parent = [], raw(genesis)
    for item in items:
        content = sha(canonical({name: item[name] for name in HASHED}))
        parent = sha(content, parent)
        found.append(parent)
    return found


@pytest.mark.req(309, 311, 312)
def test_an_edited_record_breaks_every_hash_from_there_on_and_the_first_is_named(
    fresh_server: Server,
) -> None:
    """Also of a session that ended long ago: it can be proved again at any time."""
    hand = Hand(fresh_server)
    hand.sealed()
    assert hand.end().status_code == 200
    assert hand.verify() == {"valid": True, "records": 4, "first_broken_index": None}
    content = json.dumps({"observation": "tests are red"}).encode()
    edited(
        fresh_server,
        "UPDATE thought_records SET content = ? WHERE session_id = ? AND record_index = 1",
        content,
        hand.session_id,
    )
    again = Hand(fresh_server, session_id=hand.session_id)
    assert again.verify() == {"valid": False, "records": 4, "first_broken_index": 1}
    page = again.http.get(f"{again.path}/thoughts").json()
    computed = chain_hashes(page["session"]["genesis"], page["items"])
    stored = [raw(item["chain_hash"]) for item in page["items"]]
    assert [one == other for one, other in zip(computed, stored, strict=True)] == [True, False, False, False]


@pytest.mark.req(314, 315)
def test_nothing_edits_a_record_and_a_correction_is_a_new_record_that_names_it(server: Server) -> None:
    hand = Hand(server)
    assert hand.start().status_code == 201
    wrong = hand.think("decision", record_id=f"rec_{hand.session_id}").json()
    again = hand.think("analysis", record_id=wrong["record_id"])
    assert again.status_code == 409, "a name is used once"
    for method in ("PUT", "PATCH", "DELETE"):
        for path in (f"{hand.path}/thoughts", f"{hand.path}/thoughts/{wrong['record_id']}"):
            assert hand.http.request(method, path, json={"content": {}}).status_code in (404, 405)
    document = server.http("nobody").get("/schemas/openapi.json").json()
    changing = [
        path
        for path, methods in document["paths"].items()
        if "thoughts" in path and {"put", "patch", "delete"} & methods.keys()
    ]
    assert changing == []
    for kind in ("analysis", "decision"):
        made = hand.think(kind, references=[wrong["record_id"]])
        assert made.status_code == 201, made.text
    items = hand.http.get(f"{hand.path}/thoughts").json()["items"]
    assert [item["references"] for item in items] == [[], [wrong["record_id"]], [wrong["record_id"]]]
    assert items[0]["content_hash"] == wrong["content_hash"], "the one corrected stays as it was"


@pytest.mark.req(318)
def test_a_chain_alone_proves_nothing_to_a_stranger_until_a_root_stands_over_it(server: Server) -> None:
    """Whoever holds the rows can compute another chain that is as sound; only the sealed root, which is an
    event of the tenant's chain, tells the two apart."""
    hand = Hand(server)
    hand.start()
    for kind in ("plan", "reflection"):
        hand.think(kind)
    open_page = hand.http.get(f"{hand.path}/thoughts").json()
    record_id = open_page["items"][0]["record_id"]
    assert hand.http.get(f"{hand.path}/thoughts/{record_id}/proof").status_code in (404, 409)
    hand.think("plan", "tsk_2")
    hand.verify()
    hand.think("reflection", "tsk_2")
    seal = hand.seal().json()
    page = hand.http.get(f"{hand.path}/thoughts").json()
    forged = [item | {"author": "agt_else"} for item in page["items"]]
    genesis = page["session"]["genesis"]
    assert len(set(chain_hashes(genesis, forged)) & set(chain_hashes(genesis, page["items"]))) == 0
    leaves = [
        hashlib.sha256(b"\x00" + raw(item["content_hash"]) + raw(item["chain_hash"])).digest()
        for item in page["items"]
    ]
    (a, b, c, d) = leaves
    node = hashlib.sha256(b"\x01" + sha(b"\x01", a, b) + sha(b"\x01", c, d)).digest()
    assert node == raw(seal["root"])
    trail = server.http("auditor").get("/v1/audit/tenant", params={"limit": 50}).json()["items"]
    sealed = [one["body"] for one in trail if one["body"]["event_type"] == "thought_session_sealed"]
    assert seal["root"] in [one["root"] for one in sealed if one["session_id"] == hand.session_id]

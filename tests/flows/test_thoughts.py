"""The decision trail through its doors: the seed's sequence, every way out of order, proofs to check."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.flows.answered_thoughts import CONTENT, thought_of
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log

Json = dict[str, Any]


class Hand:
    """An agent at the doors, with a session of its own."""

    def __init__(self, server: Server, role: str = "agent", session_id: str | None = None) -> None:
        self.http = server.http(role)
        self.session_id = session_id or f"ses_{uuid.uuid4()}"
        self.path = f"/v1/sessions/{self.session_id}"

    def start(self, **more: Any) -> httpx2.Response:
        body = {"intent": "Ship it", "task_id": "tsk_1", "session_id": self.session_id} | more
        return self.http.post("/v1/thought-sessions", json=body)

    def think(self, kind: str, task_id: str = "tsk_1", **more: Any) -> httpx2.Response:
        return self.http.post(f"{self.path}/thoughts", json=thought_of(kind, task_id, **more))

    def verify(self) -> Json:
        found: Json = self.http.post(f"{self.path}/thoughts/verify").json()
        return found

    def seal(self) -> httpx2.Response:
        return self.http.post(f"{self.path}/seal")

    def end(self) -> httpx2.Response:
        return self.http.post(f"{self.path}/thoughts/end")

    def sealed(self) -> Json:
        """One record of each type and the seal."""
        assert self.start().status_code == 201
        for kind in ("plan", "analysis", "decision"):
            assert self.think(kind).status_code == 201
        assert self.verify()["valid"]
        assert self.think("reflection").status_code == 201
        answer = self.seal()
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "own")
    yield made
    made.stop()


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def raw(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("sha256:"))


def canonical(value: Any) -> bytes:
    """RFC 8785 of what is sent here: short numbers, and keys in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def climbed(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root by RFC 9162 §2.1.3.2, written down once more."""
    node, last = leaf, size - 1
    for sibling in path:
        if index % 2 or index == last:
            node = sha(b"\x01", sibling, node)
            while index and not index % 2:
                index, last = index // 2, last // 2
        else:
            node = sha(b"\x01", node, sibling)
        index, last = index // 2, last // 2
    assert last == 0
    return node


@pytest.mark.req(101, 261, 262, 263, 266, 267, 268, 269, 287, 289, 316)
@pytest.mark.req(272, 273, 274, 275, 276, 278, 279, 291, *range(292, 299))
def test_the_whole_writeback_and_every_hash_by_hand_s322_s337(own: Tenant) -> None:
    """S322, S325, S336, S337, S341: with what the doors serve a stranger computes it all again."""
    hand = Hand(own)
    started = hand.start().json()
    first = hand.think("plan").json()
    hand.think("decision", references=[first["record_id"]], audit_event_ids=[first["audit_event_id"]])
    assert hand.verify() == {"valid": True, "records": 2, "first_broken_index": None}
    hand.think("reflection")
    before = hand.http.get(f"{hand.path}/seal")
    assert before.status_code == 404 and before.json()["reason"] == "not_sealed"
    seal = hand.seal().json()
    assert hand.seal().json() == seal
    root = hand.http.get(f"{hand.path}/seal").json()
    assert root == seal | {"genesis": started["genesis"], "last_chain_hash": root["last_chain_hash"]}
    ended = hand.end()
    assert ended.json()["root"] == seal["root"] and hand.end().json() == ended.json()

    page = hand.http.get(f"{hand.path}/thoughts").json()
    session, items = page["session"], page["items"]
    begun = {"caller": session["caller"], "session_id": hand.session_id, "started_at": session["started_at"]}
    parent = sha(canonical(begun))
    assert session["genesis"] == started["genesis"] == f"sha256:{parent.hex()}"
    hashed = ["record_id", "session_id", "task_id", "index", "type", "content", "author", "created_at"]
    hashed += ["references", "audit_event_ids", "predecessor_chain_hash"]
    for index, item in enumerate(items):
        content = sha(canonical({name: item[name] for name in hashed}))
        assert item["content"] == CONTENT[item["type"]]
        assert raw(item["content_hash"]) == content
        assert raw(item["parent_chain_hash"]) == parent
        parent = sha(content, parent)
        assert raw(item["chain_hash"]) == parent
        proof = hand.http.get(f"{hand.path}/thoughts/{item['record_id']}/proof").json()
        assert raw(proof["leaf"]) == sha(b"\x00", content, parent)
        assert (proof["index"], proof["size"], proof["root"]) == (index, 3, seal["root"])
        path = [raw(one) for one in proof["hashes"]]
        assert climbed(raw(proof["leaf"]), index, 3, path) == raw(seal["root"])
    assert raw(root["last_chain_hash"]) == parent

    events = own.http("auditor").get("/v1/audit/tenant", params={"limit": 1000}).json()["items"]
    bodies = [event["body"] for event in reversed(events)]
    received = [one for one in bodies if one.get("session_id") == hand.session_id]
    assert [one["event_type"] for one in received] == [
        "thought_session_started",
        "thought_recorded",
        "thought_recorded",
        "thought_chain_verified",
        "thought_recorded",
        "thought_session_sealed",
        "thought_session_ended",
    ]
    assert received[0]["genesis"] == started["genesis"] and received[-2]["root"] == seal["root"]
    assert [one["chain_hash"] for one in received if "record_id" in one] == [
        one["chain_hash"] for one in items
    ]
    # No message of that session was ever sent, so these events are in no trace: its address finds them.
    where = {"entity_id": f"thoughts:{hand.session_id}", "event_type": "thought_session_sealed"}
    found = own.http("auditor").get("/v1/audit/tenant", params=where).json()["items"]
    assert [one["body"]["root"] for one in found] == [seal["root"]]
    for words in ("nothing speaks", "load at night", "Ship it"):
        assert words not in str(events), "the record holds hashes, never the words"
    assert own.http("auditor").post("/v1/audit/verify", json={}).json()["valid"]


@pytest.mark.req(291, 299, 308, 310)
def test_each_violation_of_the_order_is_refused_and_says_what_to_do_s334_s338(server: Server) -> None:
    """S334, S335, S338: and leaves everything as it was."""
    hand = Hand(server)

    def refused(answer: httpx2.Response) -> str:
        assert answer.status_code == 409, answer.text
        assert answer.json()["status"] == "refused" and len(answer.json()["detail"]) > 30
        reason: str = answer.json()["reason"]
        return reason

    assert hand.seal().status_code == hand.end().status_code == 404
    hand.start()
    assert refused(hand.seal()) == "empty_session"
    assert refused(hand.end()) == "not_sealed"
    hand.think("plan")
    assert refused(hand.seal()) == "no_reflection"
    hand.think("reflection")
    assert refused(hand.seal()) == "not_verified"
    hand.verify()
    assert refused(hand.seal()) == "not_verified", "the closing reflection comes after"
    assert refused(hand.think("analysis")) == "task_closed"
    hand.think("plan", "tsk_2")
    hand.verify()
    assert refused(hand.seal()) == "no_reflection"
    hand.think("reflection", "tsk_2")
    assert refused(hand.end()) == "not_sealed"
    assert hand.seal().status_code == 200
    assert refused(hand.think("analysis", "tsk_3")) == "sealed"
    assert hand.verify()["valid"], "a sealed session can be proved again"
    assert hand.end().status_code == 200
    assert refused(hand.start(intent="again")) == "already_started"


@pytest.mark.req(265, 271)
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"type": "informational"}, 422, "plan, analysis, decision, reflection"),
        ({"type": "PLAN"}, 422, "plan, analysis, decision, reflection"),
        ({"content": {}}, 422, "content.trajectory"),
        ({"content": {"trajectory": ""}}, 422, "content.trajectory"),
        ({"type": "decision", "content": {"choice": "a"}}, 422, "content.alternatives"),
        ({"type": "reflection", "content": {"happened": "a"}}, 422, "content.uncertain"),
        ({"content": {"trajectory": "x", "score": 10**300}}, 400, ""),
        ({"content": "text"}, 422, ""),
        ({"content": {"trajectory": "x" * 65_536}}, 413, "65,536 bytes"),
        ({"content": {"trajectory": 2**53}}, 400, ""),
        ({"content": {"trajectory": "a\0b"}}, 400, ""),
        ({"references": ["rec_none"]}, 404, "references"),
        ({"references": ["rec_none"] * 65}, 422, ""),
        ({"audit_event_ids": ["evt_none"]}, 404, "audit_event_ids"),
        ({"audit_event_ids": ["evt_01a0e5bf-6bc8-7000-8000-000000000001"]}, 404, "audit_event_ids"),
        ({"audit_event_ids": ["msg_1"]}, 422, ""),
        ({"task_id": ""}, 422, ""),
        ({"task_id": "a\nb"}, 422, ""),
        ({"record_id": "a/b"}, 422, ""),
        ({"mood": "good"}, 422, ""),
    ],
)
def test_what_is_no_thought_is_refused_with_a_sentence_s320_s321(
    server: Server, change: Json, code: int, words: str
) -> None:
    """S320, S321, S328: nothing of it is kept, and no session is opened for it."""
    hand = Hand(server)
    body = thought_of("plan") | change
    for answer in (
        hand.http.post(f"{hand.path}/thoughts", json=body),
        hand.http.post("/v1/thoughts", json=body | {"session_id": hand.session_id}),
    ):
        assert answer.status_code == code, answer.text
        assert words in answer.json()["detail"]
    assert hand.http.get(f"{hand.path}/thoughts").status_code == 404


@pytest.mark.req(277, 279, 299)
def test_sessions_open_by_a_record_and_follow_one_another_s326_s327(server: Server) -> None:
    """S326, S327: a record alone opens a session of its caller and task; a successor embeds its last hash."""
    http, task = server.http("agent"), f"tsk_{uuid.uuid4()}"
    first = http.post("/v1/thoughts", json=thought_of("plan", task)).json()
    second = http.post("/v1/thoughts", json=thought_of("reflection", task)).json()
    assert (first["session_id"], second["index"]) == (second["session_id"], 1)
    late = http.post("/v1/thoughts", json=thought_of("plan", task))
    assert late.status_code == 409 and late.json()["reason"] == "task_closed"
    shown = http.get(f"/v1/sessions/{first['session_id']}/thoughts").json()["session"]
    assert shown["proof_grade"] is False and shown["records"] == 2
    hand = Hand(server)
    assert hand.start(predecessor_session_id="nowhere").status_code == 404
    assert hand.start(predecessor_session_id=first["session_id"]).status_code == 201
    hand.think("plan")
    (item,) = http.get(f"{hand.path}/thoughts").json()["items"]
    assert item["predecessor_chain_hash"] == second["chain_hash"]
    # One that was started takes the records that name only its task.
    named = f"tsk_{uuid.uuid4()}"
    other = Hand(server)
    other.start(task_id=named)
    found = http.post("/v1/thoughts", json=thought_of("plan", named)).json()
    assert found["session_id"] == other.session_id


def test_a_repeat_gets_the_first_answer_s324_s329(server: Server) -> None:
    """S324, S329: other words under the same id are a conflict."""
    hand, name = Hand(server), f"mine-{uuid.uuid4()}"
    assert hand.start().json() == hand.start().json()
    assert hand.start(intent="Other").status_code == 409
    first = hand.think("plan", record_id=name)
    assert first.status_code == 201 and hand.think("plan", record_id=name).json() == first.json()
    again = hand.think("analysis", record_id=name)
    assert again.status_code == 409 and again.json()["reason"] == "id_conflict"
    assert hand.verify()["records"] == 1


def test_racers_at_the_doors_all_get_a_true_answer_s339(server: Server) -> None:
    """S339: no index twice, no gap, one root."""
    hand = Hand(server)
    hand.start()
    with ThreadPoolExecutor(8) as pool:
        thoughts = list(pool.map(lambda _: hand.think("analysis"), range(16)))
        assert sorted(one.json()["index"] for one in thoughts) == list(range(16))
        hand.verify()
        closings = list(pool.map(lambda _: hand.think("reflection").status_code, range(4)))
        assert sorted(closings) == [201, 409, 409, 409]
        seals = list(pool.map(lambda _: hand.seal(), range(6)))
    assert len({one.json()["root"] for one in seals}) == 1


def test_who_may_think_read_and_close_s331_s340(own: Tenant) -> None:
    """S331, S340: an agent reads its own sessions; others' are closed by operators."""
    admin = own.http("admin")
    keys = {
        name: admin.post("/v1/keys", json={"role": "agent", "agent_id": name}).json()["key"]
        for name in ("alpha", "beta")
    }
    alpha, beta = (
        httpx2.Client(base_url=own.url, headers={"authorization": f"Bearer {key}"}, trust_env=False)
        for key in keys.values()
    )
    session = f"ses_{uuid.uuid4()}"
    path = f"/v1/sessions/{session}"
    body = {"intent": "Ship it", "session_id": session, "task_id": "tsk_1"}
    assert alpha.post("/v1/thought-sessions", json=body | {"agent_id": "beta"}).status_code == 403
    assert alpha.post("/v1/thought-sessions", json=body | {"agent_id": "alpha"}).status_code == 201
    assert alpha.post(f"{path}/thoughts", json=thought_of("plan")).status_code == 201
    for kind in ("analysis", "reflection"):
        strange = beta.post(f"{path}/thoughts", json=thought_of(kind))
        assert strange.status_code == 403 and strange.json()["reason"] == "not_yours"
    assert own.http("operator").post(f"{path}/thoughts", json=thought_of("analysis")).status_code == 201
    assert alpha.post(f"{path}/thoughts/verify").json()["valid"]
    assert alpha.post(f"{path}/thoughts", json=thought_of("reflection")).status_code == 201
    assert beta.post(f"{path}/seal").status_code == 403
    assert own.http("viewer").post(f"{path}/seal").status_code == 403
    assert own.http("operator").post(f"{path}/seal").status_code == 200
    assert beta.post(f"{path}/seal").status_code == beta.post(f"{path}/thoughts/end").status_code == 403
    for place in ("/thoughts", "/seal"):
        assert alpha.get(path + place).status_code == own.http("viewer").get(path + place).status_code == 200
        assert beta.get(path + place).status_code == 404
    items = alpha.get(f"{path}/thoughts").json()["items"]
    entity = admin.get("/v1/keys").json()["items"]
    assert entity and len({item["author"] for item in items}) == 2
    assert [item["author"].startswith("agt_") for item in items] == [True, False, True]
    assert own.http("auditor").post(f"{path}/thoughts/verify").json()["valid"]
    assert own.http("viewer").post(f"{path}/thoughts/verify").status_code == 403
    for client in (alpha, beta):
        client.close()


def test_thoughts_come_in_pages_by_index_and_sessions_newest_first_s341(own: Tenant) -> None:
    """S341: `next` is the start of the next page; null at the end."""
    hands = [Hand(own) for _ in range(3)]
    for hand in hands:
        hand.start()
    hand = hands[0]
    for _ in range(5):
        hand.think("analysis")
    seen, start = [], 0
    while start is not None:
        page = hand.http.get(f"{hand.path}/thoughts", params={"start": start, "limit": 2}).json()
        seen += [item["index"] for item in page["items"]]
        start = page["next"]
    assert seen == list(range(5))
    viewer, names, cursor = own.http("viewer"), [], None
    while True:
        query: Json = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = viewer.get("/v1/thought-sessions", params=query).json()
        names += [item["session_id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == [hand.session_id for hand in reversed(hands)]


def test_a_page_of_many_words_ends_early_and_leads_on_s341(server: Server) -> None:
    """S341: what is answered at once is bounded, however much is asked for."""
    hand, content = Hand(server), {"observation": "x" * 65_000}
    for _ in range(101):
        assert hand.think("analysis", content=content).status_code == 201
    first = hand.http.get(f"{hand.path}/thoughts", params={"limit": 1000}).json()
    assert (len(first["items"]), first["next"]) == (100, 100)
    rest = hand.http.get(f"{hand.path}/thoughts", params={"start": 100}).json()
    assert ([item["index"] for item in rest["items"]], rest["next"]) == ([100], None)
    assert hand.http.get(f"{hand.path}/thoughts", params={"start": 101}).json()["items"] == []


def test_a_session_of_the_mesh_is_thought_about_in_its_own_trace_s342(own: Tenant) -> None:
    """S342: by any spelling of its id; the events of both stand in one trace."""
    session = str(uuid.uuid4())
    sent = own.send(decision_log(meta={"session_id": session, "step_id": "one"}))
    assert sent.status_code == 202
    hand = Hand(own, session_id=session)
    viewer, places = own.http("viewer"), (f"/v1/sessions/{session}", f"/v1/sessions/{session}/steps/one")
    assert [viewer.get(path).json()["sealed"] for path in places] == [False, False]
    hand.sealed()
    assert [viewer.get(path).json()["sealed"] for path in places] == [True, True], "the badge of its steps"
    assert [item["sealed"] for item in viewer.get("/v1/sessions").json()["items"]] == [True]
    assert own.send(decision_log(meta={"session_id": session, "step_id": "two"})).status_code == 202
    assert viewer.get(f"/v1/sessions/{session}/steps/two").json()["sealed"] is False, "it came after"
    loud = viewer.get(f"/v1/sessions/{session.upper().replace('-', '')}/seal")
    assert loud.status_code == 200
    events = viewer.get(f"/v1/audit/trace/{session}", params={"limit": 1000}).json()["items"]
    kinds = [event["body"]["event_type"] for event in events]
    assert kinds.count("thought_recorded") == 4
    assert kinds[-2:] == ["thought_session_sealed", "message_delivered"]


@pytest.mark.req(316)
def test_thoughts_outlive_kill_9_s325(fresh_server: Server) -> None:
    """S325: what was answered is there, and the chain goes on from it."""
    hand = Hand(fresh_server)
    hand.start()
    kept = [hand.think("analysis").json()["chain_hash"] for _ in range(3)]
    fresh_server.restart(kill=True)
    hand.http = fresh_server.http("agent")
    assert hand.verify() == {"valid": True, "records": 3, "first_broken_index": None}
    assert hand.think("reflection").json()["parent_chain_hash"] == kept[-1]
    assert hand.seal().status_code == 200

"""Redaction and shredding through public doors: what is not to be kept is nowhere, and all is proven."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.hand import done
from tests.flows.insight import settled
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.flows.trail.outside import bend, verified
from tests.samples import decision_log, envelope

Json = dict[str, Any]
OWN = "ACME-[0-9a-f]{12}"


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "own")
    yield made
    made.stop()


def card(word: str) -> str:
    """Sixteen digits of a word, the last of which makes the sum right."""
    digits = "4" + str(int(word, 16))[:14].zfill(14)
    doubled = [int(d) * 2 - 9 * (int(d) > 4) if i % 2 == 0 else int(d) for i, d in enumerate(digits)]
    return digits + str(-sum(doubled) % 10)


def canaries() -> dict[str, str]:
    """Twenty kinds of secrets, each with a word of its own that can be looked for."""
    word = [uuid.uuid4().hex for _ in range(20)]
    upper = [one.upper() for one in word]
    return {
        word[0]: f"sk-proj-{word[0]}",
        word[1]: f"sk-ant-api03-{word[1]}",
        word[2]: f"ghp_{word[2]}abcd",
        word[3]: f"github_pat_{word[3]}",
        word[4]: f"glpat-{word[4]}",
        word[5]: f"xoxb-{word[5]}",
        word[6]: f"sk_live_{word[6]}",
        word[7]: f"AIza{word[7]}abc",
        word[8]: f"npm_{word[8]}abcd",
        word[9]: f"pypi-{word[9]}",
        upper[10][:16]: f"AKIA{upper[10][:16]}",
        word[11]: f"aws_secret_access_key = {word[11]}abcd1234",
        word[12]: f"Authorization: Bearer {word[12]}",
        word[13]: f"eyJhbGciOiJIUzI1NiJ9.{word[13]}.{word[13][:20]}",
        word[14]: f"-----BEGIN RSA PRIVATE KEY-----\n{word[14]}\n-----END RSA PRIVATE KEY-----",
        word[15]: f"password={word[15]}",
        word[16]: f"postgres://app:{word[16]}@db.internal/x",
        word[17]: f"{word[17]}@example.org",
        card(word[18])[1:]: card(word[18]),
        word[19][:12]: f"ACME-{word[19][:12]}",
    }


def places(secret: str) -> list[Json]:
    """The same secret in ten places of a message."""
    inner = json.dumps({"q": f"line\n{secret}", "nested": json.dumps([secret])})
    extra = decision_log()
    extra["unforeseen"] = {f"key {secret}": {"deep": [secret]}}
    logs = [
        decision_log(
            cognition={"intent": f"use {secret} now", "reasoning_chain": ["x", f"because {secret}"]}
        ),
        decision_log(action={"tool_input": inner, "tool_output_summary": f"got {secret}."}),
        decision_log(state_delta={"added_to_memory": [f"The key is {secret} today"]}),
        decision_log(cognition={"intent": "x", "alternatives": [{"option": secret, "why_not": secret}]}),
        decision_log(control={"hitl_required": True}, cognition={"intent": f"held {secret}"}),
        extra,
    ]
    texts = [
        envelope("text", payload={"content": f"see {secret}\n"}),
        envelope("status_alert", payload={"title": f"lost {secret}", "summary": secret}),
        envelope("action_confirmation", payload={"summary": secret, "after_state": {"v": {"w": secret}}}),
        envelope("artifact_share", payload={"title": secret, "content": f"x = '{secret}'"}),
    ]
    return [*logs, *texts]


def test_of_two_hundred_secrets_of_twenty_kinds_none_is_found_anywhere_s446(tmp_path: Path) -> None:
    """S446: database, log, derived store, exports, answers, live feed's source and the gateway's own log."""
    words: set[str] = set()
    with Server(tmp_path / "data") as server:
        http = server.http("admin")
        listed = http.get("/v1/redaction").json()
        assert listed["version"] == 0 and not listed["items"], "off by default"
        for kind in listed["kinds"]:
            assert http.post("/v1/redaction", json={"type": "builtin", "name": kind}).status_code == 201
        rule = {"type": "pattern", "name": "acme_no", "pattern": OWN}
        assert http.post("/v1/redaction", json=rule).status_code == 201
        lines: list[bytes] = []
        for word, secret in canaries().items():
            words.add(word)
            lines += [json.dumps(message).encode() for message in places(secret)]
        assert len(lines) == 200
        answers = server.send_lines(lines)
        assert {answer["code"] for answer in answers} == {202}
        again = server.send_lines(lines)
        assert [one["sequence_number"] for one in again] == [one["sequence_number"] for one in answers]
        settled(server)
        shown = http.get("/v1/messages", params={"limit": 1000}).text
        assert shown.count("[redacted:") >= 18 * 20
        found = http.get("/v1/search", params={"q": "use"}).text
        events = http.get("/v1/audit/tenant", params={"limit": 1000}).text
        assert '"av.redaction.version":9' in events
        assert not [word for word in words if word in shown + found + events]
        out = tmp_path / "live.jsonl"
        run = observatory("export", "--url", server.url, "--key", server.key("admin"), "--out", str(out))
        assert run.returncode == 0, run.stderr
        # While it runs: what is in the write-ahead logs counts too.
        _find_none(tmp_path, words)
    out = tmp_path / "offline.jsonl"
    assert observatory("export", "--data", str(tmp_path / "data"), "--out", str(out)).returncode == 0
    assert verified("--data", str(tmp_path / "data"))[0] == 0
    looked_at = _find_none(tmp_path, words)
    assert {"observatory.db", "derived.db", "data.log", "live.jsonl", "offline.jsonl"} <= looked_at


def _find_none(folder: Path, words: set[str]) -> set[str]:
    looked_at = set()
    for path in folder.rglob("*"):
        if path.is_file():
            looked_at.add(path.name)
            content = path.read_bytes().lower()
            assert not [word for word in words if word.lower().encode() in content], path.name
    return looked_at


def test_shredded_words_leave_the_files_and_every_proof_stays_s455(tmp_path: Path) -> None:
    """S450, S453, S455: gone from database, derived store and answers; chain, export and import hold."""
    word, kept = f"zanzibar{uuid.uuid4().hex}", f"helsinki{uuid.uuid4().hex}"
    data, out = tmp_path / "data", tmp_path / "trail.jsonl"
    with Server(data) as server:
        http, session_id = server.http("admin"), str(uuid.uuid4())
        for number, said in enumerate((word, word, kept)):
            meta = {"session_id": session_id if said == word else str(uuid.uuid4()), "step_id": f"s{number}"}
            memory = {"added_to_memory": [f"The {said} project is secret"]}
            sent = decision_log(meta=meta, cognition={"intent": f"about {said} " * 300}, state_delta=memory)
            assert server.send(sent).status_code == 202
        settled(server)
        assert len(http.get("/v1/search", params={"q": word, "mode": "text"}).json()["items"]) == 2
        thought = {"task_id": "t", "type": "plan", "content": {"trajectory": f"about {word} " * 300}}
        begun = http.post("/v1/thought-sessions", json={"intent": f"on {word}", "session_id": session_id})
        assert begun.status_code == 201, begun.text
        place = f"/v1/sessions/{session_id}/thoughts"
        assert http.post(place, json=thought).status_code == 201
        order = {"reason": "asked for by its subject", "confirm": session_id}
        assert http.post(f"{place}/shred", json=order | {"confirm": "yes"}).status_code == 409
        assert http.post(f"{place}/shred", json=order).json()["shredded"] == 1
        shown = http.get(place).json()
        assert (shown["items"][0]["content"], shown["session"]["intent"]) == (None, "")
        assert shown["items"][0]["shredded_by"] == shown["session"]["intent_shredded_by"]
        assert http.post(f"{place}/verify").json()["shredded"] == 1
        assert "(shredded by event" in done(server, "thoughts", session_id)
        refused = http.post(f"/v1/sessions/{session_id}/shred", json=order | {"confirm": "yes"})
        assert (refused.status_code, refused.json()["reason"]) == (409, "not_confirmed")
        went = http.post(f"/v1/sessions/{session_id}/shred", json=order).json()
        assert went["shredded"] == 2
        settled(server)
        gone = http.get("/v1/messages", params={"session_id": session_id}).json()["items"]
        assert [one["message"] for one in gone] == [None, None]
        admin = http.get("/v1/whoami").json()["user_id"]
        for one in gone:
            received = one["shredded"]
            assert (received["event"], received["by"], received["reason"]) == (
                went["event"],
                admin,
                order["reason"],
            )
            assert received["at"].endswith("Z")
            assert http.get(f"/v1/messages/{one['message_id']}?raw=true").status_code == 410
        assert http.get("/v1/search", params={"q": word, "mode": "text"}).json()["items"] == []
        assert len(http.get("/v1/search", params={"q": kept, "mode": "text"}).json()["items"]) == 1
        assert word not in http.get("/v1/facts").text and kept in http.get("/v1/facts").text
        assert word not in http.get("/v1/sessions").text
        assert word not in http.get(f"/v1/sessions/{session_id}/dag").text
        bundle = tmp_path / "session.zip"
        bundle.write_bytes(http.get(f"/v1/sessions/{session_id}/evidence").content)
        verdict = http.post("/v1/audit/verify", json={}).json()
        assert verdict["valid"] and verdict["checks"]["payloads"] is True
        live = observatory(
            "export", "--url", server.url, "--key", server.key("admin"), "--out", str(tmp_path / "live.jsonl")
        )
        assert live.returncode == 0, live.stderr
    assert observatory("verify", str(bundle)).returncode == 0
    code, received = verified("--data", str(data))
    assert code == 0 and received["tenants"][0]["payloads_shredded"] == 2
    assert observatory("export", "--data", str(data), "--out", str(out)).returncode == 0
    for path in (*data.rglob("*"), out):
        if path.is_file():
            assert word.encode() not in path.read_bytes(), path.name
    assert kept.encode() in (data / "observatory.db").read_bytes()
    for export in (out, tmp_path / "live.jsonl"):
        assert verified("--export", str(export))[0] == 0
        new = tmp_path / f"new-{export.stem}"
        run = observatory("import", "--in", str(export), "--data", str(new))
        assert run.returncode == 0, run.stderr
        again = tmp_path / f"again-{export.stem}.jsonl"
        assert observatory("export", "--data", str(new), "--out", str(again)).returncode == 0
        orders = [json.loads(line)["message"] for line in again.read_text().splitlines()]
        assert [one["shredded_by"] for one in orders if one and "raw" not in one] == [went["event"]] * 2
    assert (tmp_path / "again-trail.jsonl").read_bytes() == out.read_bytes()
    # Bytes that somebody destroyed in the order's name are missed: it does not name them.
    bend(data, f"UPDATE payloads SET raw = NULL, shredded_by = {went['event']} WHERE raw IS NOT NULL")
    code, received = verified("--data", str(data))
    assert code == 2 and "no event ordered it" in json.dumps(received)
    assert observatory("export", "--data", str(data), "--out", str(tmp_path / "bent.jsonl")).returncode == 0
    assert verified("--export", str(tmp_path / "bent.jsonl"))[0] == 2


def test_an_admin_rules_tries_and_shreds_from_the_terminal_s456(own: Tenant) -> None:
    """S456: each word of the command line, its answer and its refusals."""

    def run(*words: str, code: int = 0, **more: Any) -> str:
        done = observatory(*words, "--data", str(own.folder), **more)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stderr

    sample = own.folder / "sample.json"
    sample.write_text(json.dumps(decision_log(cognition={"intent": "write to ada@example.org"})))
    assert "cognition.intent" in run("redaction", "try", "email", "--file", str(sample))
    assert len(run("redaction", "list").splitlines()) == 1
    assert "email added" in run("redaction", "add", "email")
    assert "unknown kind" in run("redaction", "add", "shoe_size", code=1)
    assert "repeat" in run("redaction", "add", "mine", "--pattern", "(a+)+", code=1)
    run("redaction", "add", "tool", "--path", "action.tool_input", "--note", "may hold keys")
    assert "may hold keys" in run("redaction", "list")
    sent = own.send(json.loads(sample.read_text())).json()
    kept = own.http("admin").get(f"/v1/messages/{sent['message_id']}").json()["message"]
    assert "ada@" not in json.dumps(kept)
    assert kept["action"]["tool_input"].startswith('"[redacted:tool:'), "what was JSON stays JSON"
    run("redaction", "remove", "email", "--yes")
    assert "tool" in run("redaction", "list") and "email" not in run("redaction", "list").split("kinds")[0]
    assert "--yes" in run("shred", sent["message_id"], "--reason", "test", code=2)
    assert "1 payload shredded" in run("shred", sent["message_id"], "--reason", "test", "--yes")
    assert "0 payloads" in run("shred", "--session", sent["session_id"], "--reason", "test", "--yes")
    gone = run("shred", "--thoughts", "none", "--reason", "test", "--yes", code=1)
    assert "no thought session" in gone
    assert "give exactly one of" in run("shred", "x", "--thoughts", "y", "--reason", "z", code=2)
    assert "forever" in run("retention")
    assert "payloads and thoughts are kept for 30 days" in run("retention", "30", "--thoughts", "--yes")
    assert "for 30 days" in run("retention", "30", "--yes")
    assert "forever" in run("retention", "forever")
    assert "1 to 36500" in run("retention", "soon", code=2)


def test_secrets_of_the_house_are_never_served_and_only_an_admin_rules_s440(own: Tenant) -> None:
    """S440, S448: the key of the hashes is in no answer; an operator has no say; a trial leaves no trace."""
    admin, operator = own.http("admin"), own.http("operator")
    made = admin.post("/v1/redaction", json={"type": "builtin", "name": "email"})
    assert made.status_code == 201
    for answer in (
        operator.get("/v1/redaction"),
        operator.post("/v1/redaction", json={"type": "builtin", "name": "jwt"}),
        operator.delete(f"/v1/redaction/{made.json()['rule_id']}"),
        operator.put("/v1/retention", json={"days": 1}),
        operator.post("/v1/messages/shred", json={"message_id": "x", "reason": "x", "confirm": "x"}),
    ):
        assert answer.status_code == 403, answer.text
    received = admin.get("/v1/redaction").text + admin.get("/v1/audit/tenant").text + made.text
    assert '"secret":' not in received
    one = own.send(decision_log(cognition={"intent": "ask a@example.org"})).json()
    trial = {"message": decision_log(cognition={"intent": "ask a@example.org"})}
    before = admin.get("/v1/audit/tenant?limit=1").json()["items"]
    tried = admin.post("/v1/redaction/dry-run", json=trial).json()
    assert tried["fits"] and tried["replaced"] == 1
    assert tried["places"] == [{"path": "cognition.intent", "kind": "email", "times": 1}]
    spoilt = {"message": {"x": "a@example.org"}}
    assert not admin.post("/v1/redaction/dry-run", json=spoilt).json()["fits"]
    assert admin.get("/v1/audit/tenant?limit=1").json()["items"] == before
    kept = admin.get(f"/v1/messages/{one['message_id']}").json()["message"]
    assert tried["message"]["cognition"]["intent"] == kept["cognition"]["intent"], "equal text, equal look"


def test_what_is_sent_again_is_known_whatever_the_rules_did_between_s444(own: Tenant) -> None:
    """S444: through the front door, with and without a step id; a rule counts for the very next message."""
    http = own.http("admin")
    meta = {"step_id": "s1", "session_id": str(uuid.uuid4())}
    sent = [decision_log(meta=more, cognition={"intent": "ask a@example.org"}) for more in ({}, meta)]
    sent.append(sent[0] | {"cognition": {"intent": "another step, for b@example.org"}})

    def answers() -> list[Any]:
        return [own.send(message).json() for message in sent]

    first = answers()
    rule = {"type": "builtin", "name": "email"}
    made = http.post("/v1/redaction", json=rule).json()
    assert answers() == first
    assert own.send_lines([json.dumps(message).encode() for message in sent]) == [
        one | {"code": 202} for one in first
    ]
    sent[1]["meta"]["step_id"] = "s2"
    sent[0]["meta"]["trace_id"] = sent[2]["meta"]["trace_id"] = str(uuid.uuid4())
    second = answers()
    assert [one["sequence_number"] for one in second] != [one["sequence_number"] for one in first]
    shown = http.get("/v1/messages").text
    assert shown.count("@example.org") == 3 and shown.count("[redacted:email:") == 3
    assert http.delete(f"/v1/redaction/{made['rule_id']}").json()["version"] == 2
    assert answers() == second
    assert len(http.get("/v1/messages").json()["items"]) == 6

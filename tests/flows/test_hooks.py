"""Webhooks in through public doors: opened by an admin, called by a stranger, seen in the log, by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.calling import signed
from tests.flows.hand import answer, done, refused
from tests.flows.server import Server, clean_environment
from tests.flows.tenant import Tenant

Json = dict[str, Any]
MAPPING = {
    "intent": {"expression": "join(' ', ['review', pull_request.title])"},
    "target": {"cluster": "reviewers"},
    "payload": "{number: number, url: pull_request.html_url}",
    "session": "pull_request.html_url",
    "when": "pull_request && contains(['opened', 'synchronize'], action)",
}
PULL: Json = {
    "action": "opened",
    "number": 7,
    "pull_request": {"title": "mend it", "html_url": "https://github.example/atlas/pull/7"},
}


@pytest.fixture(scope="module")
def own(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path_factory.mktemp("hooks") / "own")
    yield made
    made.stop()


def opened(own: Tenant, name: str, **more: Any) -> Json:
    body = {"name": name, "scheme": "github", "mapping": MAPPING} | more
    made = own.http("admin").post("/v1/webhooks/in", json=body)
    assert made.status_code == 201, made.text
    return dict(made.json())


def call(own: Tenant, hook: Json, body: bytes, delivery: str = "dlv_1", **more: str) -> httpx2.Response:
    headers = signed(hook["scheme"], hook["secret"], body, int(time.time()), delivery) | more
    return own.http("nobody").post(f"/v1/webhooks/{hook['hook_id']}", content=body, headers=headers)


@pytest.mark.req(113, 128, 223, 224)
def test_a_pull_request_reaches_the_reviewers_inbox_s525(own: Tenant) -> None:
    """S520, S525, S526, S529: signed, mapped, routed by the corridor; logged with payload and signature."""
    agent = own.http("agent")
    me = {"agent_id": "reviewer-1", "agent_type": "reviewer", "cluster_id": "reviewers"}
    assert agent.post("/v1/agents", json=me).status_code in (200, 201)
    hook = opened(own, "pull requests")
    raw = json.dumps(PULL).encode()
    received = call(own, hook, raw)
    assert received.status_code == 202 and received.json()["outcome"] == "forwarded", received.text
    items = agent.get("/v1/agents/reviewer-1/inbox", params={"wait": 5}).json()["items"]
    (found,) = [item["message"] for item in items]
    assert found["message_id"] == received.json()["message_id"]
    assert found["payload"]["content"] == "review mend it"
    assert found["metadata"]["payload"] == {"number": 7, "url": PULL["pull_request"]["html_url"]}
    again = call(own, hook, raw).json()
    assert again == received.json() | {"repeated": True}
    sent = call(own, hook, json.dumps(PULL | {"action": "synchronize"}).encode(), "dlv_2").json()
    assert sent["session_id"] == received.json()["session_id"], "one pull request is one session"
    viewer = own.http("viewer")
    (second, first) = viewer.get("/v1/webhooks/in/calls", params={"hook_id": hook["hook_id"]}).json()["items"]
    assert (first["signature"], first["outcome"], first["repeats"]) == ("valid", "forwarded", 1)
    whole = viewer.get(f"/v1/webhooks/in/calls/{first['call_id']}").json()
    assert json.loads(whole["body"]) == PULL and whole["message_id"] == found["message_id"]
    assert second["delivery_id"] == "dlv_2"
    shown = viewer.get("/v1/webhooks/in").text + viewer.get(f"/v1/webhooks/in/{hook['hook_id']}").text
    trail = viewer.get("/v1/audit/tenant", params={"limit": 1000}).text
    assert hook["secret"] not in shown + trail and "webhook_received" in trail and "mend it" not in trail
    figures = own.http("admin").get("/metrics").text
    assert 'observatory_hooks_calls_total{signature="valid",outcome="forwarded"}' in figures


def test_who_is_not_valid_learns_little_and_a_closed_hook_is_none_s530(own: Tenant) -> None:
    """S523, S528, S530: unsigned, badly signed, too large, packed, unknown, disabled; no default secret."""
    hook = opened(own, "strangers", window_s=60)
    raw, url = json.dumps(PULL).encode(), f"/v1/webhooks/{hook['hook_id']}"
    stranger = own.http("nobody")
    plain = stranger.post(url, content=raw)
    assert (plain.status_code, plain.json()["reason"]) == (401, "signature_missing")
    wrong = call(own, hook | {"secret": "another secret of some length"}, raw)
    assert (wrong.status_code, wrong.json()["reason"]) == (401, "signature_invalid")
    twice = [(name, text) for name, text in signed("github", hook["secret"], raw, 0).items()] * 2
    assert stranger.post(url, content=raw, headers=twice).status_code == 401
    assert call(own, hook, b"x" * ((1 << 20) + 1)).status_code == 413
    assert call(own, hook, raw, **{"Content-Encoding": "gzip"}).status_code == 415
    unread = stranger.post(url, content=iter([b"x" * (1 << 20), b"y"]), headers={"X-Hub-Signature-256": "x"})
    assert unread.status_code == 413, "counted as it comes, when nobody says how much"
    logged = own.http("viewer").get("/v1/webhooks/in/calls", params={"hook_id": hook["hook_id"]}).json()
    kinds = [item["signature"] for item in reversed(logged["items"])]
    assert kinds == ["missing", "invalid", "invalid"]
    assert all(item["body_hash"] and item["outcome"] == "turned_away" for item in logged["items"])
    status = own.http("viewer").get(f"/v1/webhooks/in/{hook['hook_id']}").json()["signatures"]
    assert status == {"valid": 0, "invalid": 2, "missing": 1, "last": "invalid"}
    assert (
        own.http("viewer").get(f"/v1/webhooks/in/calls/{logged['items'][0]['call_id']}").json()["body"]
        is None
    )
    disabled = own.http("admin").patch(f"/v1/webhooks/in/{hook['hook_id']}", json={"state": "disabled"})
    assert disabled.status_code == 200
    closed, nowhere = call(own, hook, raw), stranger.post("/v1/webhooks/whk_nowhere", content=raw)
    for other in ("none", "tnt_default", "'; DROP TABLE hooks; --", "%F0%9F%92%A9"):
        assert stranger.post(f"/v1/webhooks/{other}", content=raw).status_code == 404
    assert (
        (closed.status_code, closed.content)
        == (nowhere.status_code, nowhere.content)
        == (404, closed.content)
    )


def test_many_who_bring_one_delivery_at_once_bring_one_message_s526(own: Tenant) -> None:
    """S526: whoever comes first is taken, the others are told the same."""
    hook = opened(own, "at once", scheme="standard")
    raw, received = json.dumps(PULL | {"number": 8}).encode(), list[Json]()
    headers = signed("standard", hook["secret"], raw, int(time.time()), "dlv_race")

    def bring() -> None:
        with httpx2.Client(base_url=own.url, trust_env=False, timeout=30) as client:
            path = f"/v1/webhooks/{hook['hook_id']}"
            received.extend(client.post(path, content=raw, headers=headers).json() for _ in range(3))

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(received) == 12 and len({one["message_id"] for one in received}) == 1, received
    assert sum(not one["repeated"] for one in received) == 1
    path, of_it = "/v1/webhooks/in/calls", {"hook_id": hook["hook_id"]}
    (logged,) = own.http("viewer").get(path, params=of_it).json()["items"]
    assert logged["repeats"] == 11


def test_a_hook_is_kept_from_the_terminal_s531(own: Tenant, tmp_path: Path) -> None:
    """S522, S531: tried, opened, listed, rotated, disabled, enabled, changed, called, closed by hand."""
    body, mapping = tmp_path / "body.json", tmp_path / "mapping.json"
    body.write_text(json.dumps(PULL))
    mapping.write_text(json.dumps(MAPPING))
    tried = done(own, "hooks", "try", "--mapping", str(mapping), "--file", str(body))
    assert tried.startswith("'review mend it' for cluster reviewers\n") and '"number": 7' in tried
    mapping.write_text(json.dumps(MAPPING | {"payload": "abs(action)"}))
    assert "it would be refused: payload passes a function" in done(
        own, "hooks", "try", "--mapping", str(mapping), "--file", str(body)
    )
    before = own.http("viewer").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
    secret = tmp_path / "secret"
    secret.write_text("the sender's own long secret\n")
    words = ("--scheme", "github", "--intent", "=action", "--agent", "reviewer-1", "--when", "number")
    made = answer(own, "hooks", "add", "by hand", *words, "--secret-file", str(secret))
    assert made["secret"] == "the sender's own long secret"
    assert made["mapping"]["intent"] == {"expression": "action"}
    assert before != own.http("viewer").get("/v1/audit/tenant", params={"limit": 1}).json()["items"]
    assert "by hand\tgithub\tactive\tagent reviewer-1" in done(own, "hooks", "list")
    new = done(own, "hooks", "rotate", "by hand").strip()
    raw = json.dumps(PULL | {"number": 9}).encode()
    assert call(own, made | {"secret": new}, raw).status_code == 202
    assert "disabled" in done(own, "hooks", "disable", "by hand")
    assert call(own, made, raw).status_code == 404
    assert "enabled" in done(own, "hooks", "enable", "by hand")
    assert call(own, made, raw, "dlv_old").json()["repeated"], "the secret before is taken for a while"
    assert "changed" in done(own, "hooks", "change", "by hand", "--window", "20")
    (row,) = answer(own, "hooks", "calls", "by hand", "--signature", "valid")
    assert json.loads(done(own, "hooks", "call", row["call_id"])) == PULL | {"number": 9}
    assert "immediately" in refused(own, "hooks", "rotate", "by hand", "--overlap", "0", code=2)
    received = refused(own, "hooks", "add", "bad", *words, "--payload", "a[")
    assert "mapping.payload: is not JMESPath" in received
    assert "give --intent" in refused(own, "hooks", "add", "bad", "--scheme", "slack", code=2)
    assert "by hand removed" in done(own, "hooks", "remove", "by hand", "--yes")
    assert "by hand not found" in refused(own, "hooks", "enable", "by hand")


@pytest.mark.req(128)
def test_the_example_brings_a_pull_request_to_the_code_reviewers_s525(own: Tenant) -> None:
    """S525: `examples/github_pull_request`, with the SDK's agent as a process of its own."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "examples/github_pull_request/run.py"],
        env=clean_environment(OBSERVATORY_DATA=str(own.folder)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines() == [
        "admin     opened pull requests for the cluster code-reviewer",
        "github    is answered 202 forwarded",
        "reviewer  is asked: Review acme/atlas #42 (Retry the import when the feed is late)",
        "reviewer  has answered in the session of the pull request: True",
        "log       signature valid, outcome forwarded",
    ]
    assert time.monotonic() - began < 30

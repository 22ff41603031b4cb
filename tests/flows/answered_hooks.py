"""One of each answer of the doors of webhooks in: (operation, answer) for whoever compares them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from tests.calling import signed
from tests.flows.tenant import Tenant

Answers = Iterator[tuple[str, Any]]
MAPPING = {"intent": "look", "target": {"agent": "watcher"}, "when": "number", "payload": "{n: abs(number)}"}


def hooked(own: Tenant) -> Answers:
    """A hook opened, called in every way, changed, followed by another secret, and removed."""
    http, stranger = own.http("admin"), own.http("nobody")
    body = {"name": "chat", "scheme": "slack", "mapping": MAPPING}
    made = http.post("/v1/webhooks/in", json=body)
    hook, path = made.json(), f"/v1/webhooks/in/{made.json()['hook_id']}"
    yield "create_hook", made
    yield "create_hook", http.post("/v1/webhooks/in", json=body)  # 409
    yield "create_hook", http.post("/v1/webhooks/in", json=body | {"secret": "short"})  # 422
    yield "list_hooks", http.get("/v1/webhooks/in")
    yield "get_hook", http.get(path)
    yield "get_hook", http.get("/v1/webhooks/in/none")
    yield "change_hook", http.patch(path, json={"window_s": 60})
    yield "change_hook", http.patch(path, json={"window_s": 1})  # 422
    yield "rotate_hook", http.post(f"{path}/rotate", json={"secret": hook["secret"]})
    yield "rotate_hook", http.post("/v1/webhooks/in/none/rotate", json={})

    def call(value: Any, hook_id: str = hook["hook_id"], **headers: str) -> tuple[str, Any]:
        raw = json.dumps(value).encode()
        given = signed("slack", hook["secret"], raw, int(time.time())) | headers
        return "receive_webhook", stranger.post(f"/v1/webhooks/{hook_id}", content=raw, headers=given)

    yield call({"number": 7})
    yield call({"number": 0, "event_id": "Ev2"})
    yield call({})  # ignored
    yield call({"type": "url_verification", "challenge": "c1"})
    yield call({"number": "seven"})  # 422
    yield call({"number": 7}, **{"X-Slack-Signature": "v0=00"})  # 401
    yield call({"number": 7}, "whk_none")  # 404
    yield call("x" * (1 << 20))  # 413
    yield call({"number": 7}, **{"Content-Encoding": "gzip"})  # 415
    calls = http.get("/v1/webhooks/in/calls", params={"limit": 2})
    yield "list_hook_calls", calls
    cursor = calls.json()["next_cursor"]
    yield (
        "list_hook_calls",
        http.get("/v1/webhooks/in/calls", params={"cursor": cursor, "signature": "valid"}),
    )
    yield "list_hook_calls", http.get("/v1/webhooks/in/calls", params={"cursor": "none"})
    for item in calls.json()["items"]:
        yield "get_hook_call", http.get(f"/v1/webhooks/in/calls/{item['call_id']}")
    yield "get_hook_call", http.get("/v1/webhooks/in/calls/none")
    for value in ({"number": 7}, {}, {"number": "seven"}):
        yield "try_hook", http.post("/v1/webhooks/in/test", json={"body": value, "mapping": MAPPING})
    yield "try_hook", http.post("/v1/webhooks/in/test", json={"body": {}, "hook_id": hook["hook_id"]})
    yield "try_hook", http.post("/v1/webhooks/in/test", json={"body": {}, "hook_id": "none"})
    yield "try_hook", http.post("/v1/webhooks/in/test", json={"body": {}})  # 422
    yield "remove_hook", http.delete(path)
    yield "remove_hook", http.delete(path)

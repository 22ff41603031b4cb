"""One of each answer of the doors of webhooks out: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.flows.tenant import Tenant

Answers = Iterator[tuple[str, Any]]
OUT = "/v1/webhooks/out"


def told_outside(own: Tenant) -> Answers:
    """Made, refused for every reason, tested in vain (nobody has that name), replayed, stopped, removed."""
    http = own.http("admin")
    body: dict[str, Any] = {"name": "there", "url": "https://nobody.invalid/in", "events": ["gate_opened"]}
    made = http.post(OUT, json=body)
    yield "create_webhook", made
    yield "create_webhook", http.post(OUT, json=body)
    yield "create_webhook", http.post(OUT, json=body | {"url": "http://127.0.0.1/"})
    mail = http.post(OUT, json={"name": "mail", "kind": "email", "url": "mailto:a@nobody.invalid"})
    yield "create_webhook", mail
    path, other = f"{OUT}/{made.json()['endpoint_id']}", f"{OUT}/{mail.json()['endpoint_id']}"
    yield "list_webhooks", http.get(OUT)
    yield "get_webhook", own.http("viewer").get(path)
    yield "get_webhook", http.get(f"{OUT}/none")
    yield "change_webhook", http.put(path, json=body | {"filters": {"severity": ["WARN"]}})
    yield "change_webhook", http.put(path, json=body | {"name": "mail"})
    yield "change_webhook", http.put(path, json=body | {"events": ["no_such"]})
    yield "rotate_webhook_secret", http.post(f"{path}/rotate", json={})
    yield "rotate_webhook_secret", http.post(f"{other}/rotate", json={})
    yield "rotate_webhook_secret", http.post(f"{OUT}/none/rotate", json={})
    tested = http.post(f"{path}/test")
    yield "test_webhook", tested
    yield "test_webhook", http.post(f"{OUT}/none/test")
    yield "list_webhook_deliveries", http.get(f"{path}/deliveries", params={"state": "dead"})
    yield "list_webhook_deliveries", http.get(f"{OUT}/none/deliveries")
    one = tested.json()["delivery_id"]
    yield "list_deliveries", http.get(f"{OUT}/deliveries", params={"limit": 1})
    yield "list_deliveries", http.get(f"{OUT}/deliveries", params={"cursor": "none"})
    yield "get_webhook_delivery", http.get(f"{path}/deliveries/{one}")
    yield "get_webhook_delivery", http.get(f"{path}/deliveries/none")
    yield "replay_webhook", http.post(f"{path}/replay", json={"delivery_id": one})
    yield "replay_webhook", http.post(f"{path}/replay", json={"since": "2020-01-01T00:00:00Z"})
    yield "replay_webhook", http.post(f"{path}/replay", json={"since": "once"})
    yield "replay_webhook", http.post(f"{path}/replay", json={})
    yield "disable_webhook", http.post(f"{path}/disable")
    yield "disable_webhook", http.post(f"{OUT}/none/disable")
    yield "replay_webhook", http.post(f"{path}/replay", json={"delivery_id": one})
    yield "enable_webhook", http.post(f"{path}/enable")
    yield "enable_webhook", http.post(f"{OUT}/none/enable")
    yield "remove_webhook", http.delete(path)
    yield "remove_webhook", http.delete(path)
    yield "remove_webhook", http.delete(other)

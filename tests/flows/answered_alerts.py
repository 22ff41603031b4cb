"""One of each answer of the doors of alert rules and scaling triggers: (operation, answer) to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.flows.tenant import Tenant

Answers = Iterator[tuple[str, Any]]
RULES, TRIGGERS = "/v1/alert-rules", "/v1/scaling-triggers"


def watched(own: Tenant) -> Answers:
    """Rules made, refused, changed, muted, tried by mail that nobody carries, and removed."""
    http = own.http("admin")
    out = {"name": "nobody", "kind": "email", "url": "mailto:nobody@example.com", "events": []}
    to = http.post("/v1/webhooks/out", json=out).json()["endpoint_id"]
    rule = {"name": "loops", "condition": "entropy", "endpoint_ids": [to]}
    trigger = {"name": "more", "condition": "queue_depth", "direction": "up", "amount": 2, "threshold": 5}
    for path, word, body in ((RULES, "alert_rule", rule), (TRIGGERS, "scaling_trigger", trigger)):
        made = http.post(path, json=body)
        one = f"{path}/{made.json()['rule_id']}"
        yield f"create_{word}", made
        yield f"create_{word}", http.post(path, json=body)  # 409
        yield f"create_{word}", http.post(path, json=body | {"scope": "log"})  # 422
        yield f"list_{word}s", http.get(path)
        yield f"get_{word}", http.get(one)
        if word == "scaling_trigger":
            yield "scaling_levels", http.get(f"{path}/levels")
        yield f"change_{word}", http.put(one, json=body | {"cooldown_s": 60})
        yield f"change_{word}", http.put(f"{path}/none", json=body | {"name": "none"})
        yield f"mute_{word}", http.post(f"{one}/mute", json={"minutes": 5})
        yield f"mute_{word}", http.post(f"{path}/none/mute", json={"minutes": 5})
        yield f"test_{word}", http.post(f"{one}/test")
        yield f"test_{word}", http.post(f"{path}/none/test")
        yield f"remove_{word}", http.delete(one)
        yield f"remove_{word}", http.delete(one)
        yield f"get_{word}", http.get(one)
    yield "create_default_alert_rules", http.post(f"{RULES}/defaults", json={})
    yield "create_default_alert_rules", http.post(f"{RULES}/defaults", json={"endpoint_ids": ["none"]})
    http.post(RULES, json={"name": "gate", "condition": "gate_age", "threshold": 0, "compare": "above"})
    yield "open_alerts", http.get("/v1/alerts/open")
    yield "open_alerts", http.get("/v1/alerts/open", params={"cursor": "none"})

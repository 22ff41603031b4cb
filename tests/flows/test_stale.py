"""Two people change one thing: who was first wins, and the other is told before anything is lost."""

from __future__ import annotations

import uuid
from typing import Any

from tests.flows.server import Server

Json = dict[str, Any]
URL = "https://nobody.invalid/in"


def things() -> list[tuple[str, str, str, Json, Json]]:
    """What, verb, the name of its time, how it is made, and what is changed of it."""
    name = f"stale-{uuid.uuid4().hex[:8]}"
    rule = {"name": name, "condition": "queue_depth"}
    mapping = {"intent": "Look", "target": {"agent": "bob"}}
    return [
        ("alert-rules", "put", "updated_at", rule, rule | {"threshold": 7}),
        ("scaling-triggers", "put", "updated_at", rule | {"direction": "up"}, rule | {"direction": "down"}),
        ("webhooks/out", "put", "changed_at", {"name": name, "url": URL}, {"name": f"{name}!", "url": URL}),
        (
            "webhooks/in",
            "patch",
            "updated_at",
            {"name": name, "scheme": "standard", "mapping": mapping},
            {"window_s": 60},
        ),
        ("exporters", "patch", "updated_at", {"name": name, "url": URL}, {"name": f"{name}!"}),
    ]


def test_a_change_that_did_not_see_the_last_one_is_refused_s770(server: Server) -> None:
    """S770: `was` is the time of the change that was seen; without it nothing is asked."""
    http = server.http("admin")
    for path, verb, at, body, change in things():
        made = http.post(f"/v1/{path}", json=body).json()
        one = f"/v1/{path}/{next(made[key] for key in made if key.endswith('_id'))}"
        first = http.request(verb, one, json=change | {"was": made[at]})
        assert first.status_code == 200, (path, first.text)
        late = http.request(verb, one, json=body_of(verb, body) | {"was": made[at]})
        assert (late.status_code, late.json()["reason"]) == (409, "stale"), path
        assert http.get(one).json()[at] == first.json()[at], path
        seen = http.request(verb, one, json=change | {"was": first.json()[at]})
        assert seen.status_code == 200, (path, seen.text)
        assert http.request(verb, one, json=body_of(verb, body)).status_code == 200, path
    places: Json = {"clusters": {"nowhere-1": {}}}
    first = http.put("/v1/fleet/regions", json=places)
    late = http.put("/v1/fleet/regions", json={"clusters": {}, "was": "2026-01-01T00:00:00.000000000Z"})
    assert (late.status_code, late.json()["reason"]) == (409, "stale")
    now = first.json()["updated_at"]
    assert http.put("/v1/fleet/regions", json={"clusters": {}, "was": now}).status_code == 200


def body_of(verb: str, body: Json) -> Json:
    """As it was made; a change in part says only what is to be otherwise."""
    return body if verb == "put" else {"name": body["name"]}

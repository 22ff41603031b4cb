"""Two operators at one registry, and names with a slash: what the Registry's window stands on."""

from __future__ import annotations

import pytest

from tests.flows.fleet import ack, inbox, named, received, say
from tests.flows.server import Server


@pytest.mark.req(213)
def test_who_was_first_wins_over_weights_that_were_not_read_s620(server: Server) -> None:
    """S620: `was` is what one saw; another's change is not overwritten, and the attempt leaves no trace."""
    kind = named("kind")
    http, path = server.http("operator"), "/v1/routes"
    first = {"capability": kind, "weights": {"cluster:a": 70, "cluster:b": 30}}
    assert http.put(path, json=first | {"was": {"cluster:a": 1}}).status_code == 409
    assert http.put(path, json=first | {"was": {}}).status_code == 200
    refused = http.put(path, json=first | {"weights": {"cluster:a": 1}, "was": {}})
    assert (refused.status_code, refused.json()["reason"]) == (409, "stale_weights")
    assert "meanwhile" in refused.json()["detail"]
    seen = next(one for one in http.get(path).json()["items"] if one["capability"] == kind)
    assert seen["weights"] == first["weights"]
    assert (
        http.put(path, json=first | {"weights": {"cluster:a": 1}, "was": seen["weights"]}).status_code == 200
    )
    assert http.put(path, json=first).status_code == 200  # who says nothing of it is asked nothing
    assert len(received(server, "route_changed", capability=kind)) == 3


def test_who_was_first_wins_over_versions_that_were_not_read_s620(server: Server) -> None:
    """S620"""
    kind = named("kind")
    http, path = server.http("operator"), "/v1/versions"
    row = {"version": "2.0.0", "status": "current"}
    assert http.put(path, json={"agent_type": kind, "versions": [row], "was": {}}).status_code == 200
    other = {"agent_type": kind, "versions": [row | {"version": "3.0.0"}]}
    refused = http.put(path, json=other | {"was": {}})
    assert (refused.status_code, refused.json()["reason"]) == (409, "stale_versions")
    assert http.put(path, json=other | {"was": {"2.0.0": "current"}}).status_code == 200
    items = http.get(path, params={"agent_type": kind}).json()["items"]
    assert {one["version"]: one["status"] for one in items} == {"3.0.0": "current", "2.0.0": "retired"}


def test_a_name_with_a_slash_is_one_name_at_every_door_s621(server: Server) -> None:
    """S621: escaped it belongs to the name, not to the path; unescaped it is a path that leads nowhere."""
    name = f"team/{named('blue')}"
    path = f"/v1/agents/{name.replace('/', '%2F')}"
    say(server, name, kind=f"kind/{name}", session=named("ses"))
    http = server.http("operator")
    found = http.get(path).json()
    assert found["agent_id"] == name
    assert http.get(f"/v1/agents/{found['entity_id']}").json()["agent_id"] == name
    assert http.get(f"/v1/agents/{name}").status_code == 404
    assert http.get(f"{path}/sessions").json()["items"][0]["messages"] == 1
    assert http.get(f"/v1/audit/entity/{name.replace('/', '%2f')}").json()["items"]
    say(server, named(), name)
    (item,) = inbox(server, name.replace("/", "%2F"))
    ack(server, name.replace("/", "%2F"), item)
    circuit = http.post(f"/v1/breakers/kind%2F{name.replace('/', '%2F')}", json={"state": "open"})
    assert circuit.json()["capability"] == f"kind/{name}"
    assert http.post(f"{path}/evict", json={}).json()["agent_id"] == name
    # A dot-dot or a door inside a name is a name too.
    assert http.get("/v1/agents/..%2F..%2Fv1%2Fusers").status_code == 404
    assert http.get("/v1/agents%2Fwhoami").status_code == 404

"""Instructions on a running gateway: issued, received, acknowledged, rolled back, and who has taken them."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.flows.server import Server
from tests.samples import decision_log

Json = dict[str, Any]


@pytest.fixture
def server(either_server: Server) -> Server:
    """On both databases; the agent types of a test are nobody else's."""
    return either_server


def appear(server: Server, agent: str, kind: str, cluster: str = "north") -> None:
    meta = {"cluster_id": cluster, "parent_step_id": None}
    sent = server.send(decision_log(meta=meta, identity={"agent_id": agent, "agent_type": kind}))
    assert sent.status_code == 202, sent.text


def put(server: Server, kind: str, text: str, note: str = "") -> Json:
    answer = server.http("admin").put(f"/v1/instructions/{kind}", json={"text": text, "note": note})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


def inbox(server: Server, agent: str) -> list[Json]:
    items: list[Json] = server.http("agent").get(f"/v1/agents/{agent}/inbox").json()["items"]
    return [item for item in items if item["kind"] == "instruction"]


def acknowledge(server: Server, agent: str, items: list[Json]) -> None:
    ids = [item["delivery_id"] for item in items]
    answer = server.http("agent").post(f"/v1/agents/{agent}/inbox/ack", json={"ids": ids})
    assert (answer.status_code, answer.json()["acked"]) == (200, ids), answer.text


def taken(server: Server, kind: str) -> dict[str, tuple[int | None, bool]]:
    agents = server.http("viewer").get(f"/v1/instructions/{kind}").json()["agents"]
    return {row["agent_id"]: (row["acknowledged_version"], row["pending"]) for row in agents}


@pytest.mark.req(227)
def test_a_whole_class_gets_new_instructions_across_clusters_and_each_agent_acknowledges(
    server: Server,
) -> None:
    """S168, S169: issued, taken by one, superseded, rolled back; the operator sees who has taken what."""
    kind, other = f"writer-{uuid.uuid4()}", f"reader-{uuid.uuid4()}"
    names = [f"{kind}-{number}" for number in (1, 2)]
    for name, cluster in zip(names, ("north", "south"), strict=True):
        appear(server, name, kind, cluster)
    appear(server, f"{other}-1", other)
    text = f"be kind {uuid.uuid4()}"
    first = put(server, kind, text, "the first words")
    assert (first["version"], first["told"]) == (1, 2)
    assert inbox(server, f"{other}-1") == []
    for name in names:
        (item,) = inbox(server, name)
        assert item["body"] == {"agent_type": kind, "version": 1, "text": text, "note": "the first words"}
    acknowledge(server, names[0], inbox(server, names[0]))
    assert taken(server, kind) == {names[0]: (1, False), names[1]: (None, True)}
    assert put(server, kind, "be terse")["version"] == 2
    assert taken(server, kind)[names[0]] == (1, True)
    path = f"/v1/instructions/{kind}/rollback"
    back = server.http("admin").post(path, json={"version": 1})
    assert (back.status_code, back.json()["version"], back.json()["text"]) == (201, 3, text)
    assert [item["body"]["version"] for item in inbox(server, names[1])] == [1, 2, 3]
    for name in names:
        acknowledge(server, name, inbox(server, name))
    assert taken(server, kind) == dict.fromkeys(names, (3, False))
    shown = server.http("viewer").get(f"/v1/instructions/{kind}").json()
    assert [(row["version"], row["text"]) for row in shown["history"]] == [
        (3, text),
        (2, "be terse"),
        (1, text),
    ]
    listed = server.http("viewer").get("/v1/instructions").json()["items"]
    (mine,) = [item for item in listed if item["agent_type"] == kind]
    assert (mine["version"], mine["agents"], mine["acknowledged"]) == (3, 2, 2)
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 200}).json()["items"]
    issued = [event for event in page if event["body"].get("agent_type") == kind]
    received = [event["body"] for event in issued if event["body"]["event_type"] == "instruction_issued"]
    assert [body["version"] for body in received] == [3, 2, 1]
    assert received[0]["text_hash"] == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert text not in json.dumps(page)


@pytest.mark.req(227)
def test_an_agent_that_connects_later_is_told_then_s169(server: Server) -> None:
    """S169: the channel's greeting tells what is in force, the delivery asks for its acknowledgement."""
    kind = f"late-{uuid.uuid4()}"
    assert put(server, kind, "come and read")["told"] == 0
    appear(server, f"{kind}-1", kind)
    assert taken(server, kind) == {f"{kind}-1": (None, True)}
    headers = {"Authorization": f"Bearer {server.key('agent')}"}
    address = f"{server.socket_url}/v1/agents/{kind}-1/channel"
    with connect(address, additional_headers=headers) as channel:
        hello = json.loads(channel.recv(20))
        in_force = {"version": 1, "text": "come and read"}
        assert (hello["type"], hello["instructions"], hello["stopped"]) == ("hello", in_force, False)
        item = json.loads(channel.recv(20))
        assert (item["kind"], item["body"]["text"]) == ("instruction", "come and read")
        channel.send(json.dumps({"op": "ack", "ids": [item["delivery_id"]]}))
        assert json.loads(channel.recv(20))["ids"] == [item["delivery_id"]]
    assert taken(server, kind) == {f"{kind}-1": (1, False)}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, 422),
        ({"text": ""}, 422),
        ({"text": "x" * ((64 << 10) + 1)}, 422),
        ({"text": "é" * (32 << 10) + "é"}, 413),
        ({"text": "nul \u0000"}, 400),
        ({"text": "fine", "note": "x" * 1001}, 422),
        ({"text": 7}, 422),
    ],
)
def test_instructions_that_are_none_are_refused_s168(server: Server, body: Json, code: int) -> None:
    """S168: with a sentence, and no version is spent."""
    answer = server.http("admin").put("/v1/instructions/nobody", json=body)
    assert (answer.status_code, bool(answer.json()["detail"])) == (code, True), answer.text
    assert server.http("admin").get("/v1/instructions/nobody").status_code == 404


def test_only_an_admin_issues_and_only_what_was_issued_is_rolled_back_to_s168(server: Server) -> None:
    """S168."""
    kind = f"ruled-{uuid.uuid4()}"
    for role in ("viewer", "operator", "agent"):
        answer = server.http(role).put(f"/v1/instructions/{kind}", json={"text": "mine"})
        assert answer.status_code == 403
    path = f"/v1/instructions/{kind}/rollback"
    assert server.http("admin").post(path, json={"version": 1}).status_code == 404
    put(server, kind, "x" * (64 << 10))
    for version, code in ((1, 409), (2, 404), (0, 422), (-1, 422)):
        assert server.http("admin").post(path, json={"version": version}).status_code == code


def test_instructions_of_another_tenant_are_not_there_s168(server: Server) -> None:
    """S168, S54: the same agent type may have words of its own in each."""
    kind = f"shared-{uuid.uuid4()}"
    tenant = server.http("admin").post("/v1/tenants", json={"display_name": "Others"}).json()
    headers = {"authorization": f"Bearer {tenant['key']}"}
    put(server, kind, "ours")
    nobody = server.http("nobody")
    assert nobody.get(f"/v1/instructions/{kind}", headers=headers).status_code == 404
    path = f"/v1/instructions/{kind}/rollback"
    assert nobody.post(path, json={"version": 1}, headers=headers).status_code == 404
    theirs = nobody.put(f"/v1/instructions/{kind}", json={"text": "theirs"}, headers=headers)
    assert theirs.json()["version"] == 1
    assert server.http("admin").get(f"/v1/instructions/{kind}").json()["text"] == "ours"


def test_of_many_versions_the_fifty_newest_are_told_and_older_ones_rolled_back_to_s748(
    server: Server,
) -> None:
    """S748: the page asks for the history every few seconds, so it is bounded; nothing of it is lost."""
    kind = f"kind-{uuid.uuid4().hex[:8]}"
    for number in range(52):
        put(server, kind, f"words {number}")
    http = server.http("admin")
    history = http.get(f"/v1/instructions/{kind}").json()["history"]
    assert [row["version"] for row in history] == list(range(52, 2, -1))
    back = http.post(f"/v1/instructions/{kind}/rollback", json={"version": 1})
    assert (back.status_code, back.json()["text"]) == (201, "words 0")

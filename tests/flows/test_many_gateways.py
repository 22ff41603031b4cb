"""Several gateways on one PostgreSQL are one house: whatever one of them is told, all of them know.

No gateway decides by what it alone remembers. Each test speaks to one gateway and looks at the other.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.flows.databases import new_database
from tests.flows.mesh import Elsewhere, gateways, hears_the_end
from tests.flows.receiver import Receiver
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.test_live import live, numbers, take
from tests.flows.worker import Agent, bound_key, hello, ids, say
from tests.flows.worker import take as deliveries
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


class Pair(NamedTuple):
    """One tenant, seen through two gateways."""

    a: Server
    b: Server

    def both(self, act: Callable[[Server], Any]) -> list[Any]:
        """At both as nearly at once as two threads can."""
        start = threading.Barrier(2)

        def run(side: Server) -> Any:
            start.wait()
            return act(side)

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(run, self))


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def deployment(
    postgres_url: str, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> Iterator[list[Server]]:
    """Two gateways that met an empty database at the same moment."""
    allowed = {"OBSERVATORY_EGRESS_ALLOW": f"127.0.0.1:{receiver.port}", "OBSERVATORY_REDELIVERY_S": "600"}
    with gateways(new_database(postgres_url), tmp_path_factory.mktemp("house"), allowed) as made:
        yield made


@pytest.fixture
def pair(deployment: list[Server], tmp_path: Path) -> Iterator[Pair]:
    made = Tenant(deployment[0], tmp_path / "tenant")
    twin = Elsewhere(made, deployment[1])
    yield Pair(made, twin)
    made.stop()
    twin.stop()


def step(session: str, agent: str = "worker", **sections: Any) -> Json:
    meta = {"step_id": str(uuid.uuid4()), "session_id": session, "parent_step_id": None}
    return decision_log(meta=meta, identity={"agent_id": agent, "agent_type": "working"}, **sections)


def some(count: int) -> list[bytes]:
    return [json.dumps(step(str(uuid.uuid4()))).encode() for _ in range(count)]


def trail(server: Server, *kinds: str) -> list[Json]:
    """Events of these kinds, oldest first."""
    page = server.http("admin").get("/v1/audit/tenant", params={"limit": 1_000}).json()["items"]
    return [event for event in reversed(page) if event["body"]["event_type"] in kinds]


def verified(server: Server) -> Json:
    found: Json = server.http("admin").post("/v1/audit/verify", json={}).json()
    assert found["valid"] is True, found
    return found


def interleaved(left: list[int], right: list[int]) -> bool:
    return left[0] < right[-1] and right[0] < left[-1]


def test_gateways_that_start_at_once_on_an_empty_database_make_one_house_s840(
    deployment: list[Server],
) -> None:
    """S840: one home tenant, one admin, one key of the log; each folder has keys that hold at all."""
    first, second = deployment
    users = first.http("admin").get("/v1/users").json()["items"]
    assert sorted(user["name"] for user in users) == ["admin", "operator"], users
    assert len(trail(first, "tenant_created")) == 1
    assert Elsewhere(first, second).http("admin").get("/v1/users").json()["items"] == users
    assert first.credentials["admin_key"] != second.credentials["admin_key"]
    until(lambda: all(_is_signed(one) for one in deployment))
    verified(first)


def _is_signed(gateway: Server) -> bool:
    """Whether this gateway finds the log signed and refuses nothing: the key is that of both."""
    health = gateway.http("admin").get("/v1/fleet/health").json()["log"]
    return bool(health["size"] > 0 and health["text"] == "Signed within 1 s.")


@pytest.mark.req(97)
def test_two_gateways_write_one_dense_chain_s841(pair: Pair) -> None:
    """S841: each number once, none left out, whoever gave it; both verify the same record."""

    def write(side: Server) -> list[int]:
        sent = []
        for _ in range(12):
            sent += [answer["sequence_number"] for answer in side.send_lines(some(20))]
        return sent

    left, right = pair.both(write)
    assert left == sorted(left) and right == sorted(right)
    assert not set(left) & set(right)
    assert interleaved(left, right), "one wrote after the other: nothing was proved"
    received = trail(pair.b, "message_delivered")
    assert [event["hash_chain"]["sequence_number"] for event in received] == sorted(left + right)
    events = pair.a.http("admin").get("/v1/audit/tenant", params={"limit": 1_000}).json()["items"]
    given = [event["hash_chain"]["sequence_number"] for event in reversed(events)]
    assert given == list(range(1, len(given) + 1))
    for side in pair:
        verified(side)


def test_a_loop_is_found_whichever_gateway_a_step_went_to_s842(pair: Pair) -> None:
    """S842: the score of a session whose steps go to and fro is that of one whose steps do not."""

    def walk(session: str, sides: tuple[Server, ...]) -> list[float]:
        shown = []
        for number in range(6):
            body = step(session, cognition={"intent": "Open the ledger", "entropy_score": None})
            assert sides[number % len(sides)].send(body).status_code == 202
            item = pair.a.http("admin").get(f"/v1/messages/{body['meta']['step_id']}").json()
            shown.append(item["message"]["cognition"]["entropy_score"])
        return shown

    alone, by_turns = walk("alone", (pair.a,)), walk("by-turns", (pair.b, pair.a))
    assert alone == by_turns and by_turns[-1] == 0.2
    alerts = trail(pair.b, "entropy_alert")
    assert len(alerts) == 2, [event["body"] for event in alerts]
    said = ("severity", "score", "occurrence_count", "detector")
    first, second = ({name: one["body"].get(name) for name in said} for one in alerts)
    assert first == second


@pytest.mark.req(97)
def test_a_pause_at_one_is_obeyed_by_the_next_message_at_the_other_s843(pair: Pair) -> None:
    """S843: the very next, again and again; what was held at both is let go in the order it came."""
    for number in range(5):
        session, agent = str(uuid.uuid4()), f"worker-{number}"
        here, there = (pair.a, pair.b) if number % 2 else (pair.b, pair.a)
        assert there.send(step(session, agent)).json()["state"] == "forwarded"
        path = f"/v1/sessions/{session}"
        assert here.http("operator").post(f"{path}/pause", json={"agent_id": agent}).status_code == 202
        held = [step(session, agent) for _ in range(4)]
        states = [side.send(body).json()["state"] for side, body in zip((there, here) * 2, held, strict=True)]
        assert states == ["held"] * 4
        freed = there.http("operator").post(f"{path}/unpause", json={"agent_id": agent})
        assert freed.status_code in (200, 202), freed.text
        assert here.send(step(session, agent)).json()["state"] == "forwarded"
        events = here.http("admin").get(f"/v1/audit/trace/{session}").json()["items"]
        done = [event for event in events if event["body"]["event_type"] == "message_delivered"]
        received = [event["attributes"]["av.step.id"] for event in done]
        assert received[1:5] == [body["meta"]["step_id"] for body in held]


def test_a_cap_holds_when_both_spend_at_once_s844(pair: Pair) -> None:
    """S844: of what two gateways are asked to spend together, not more than the cap is spent."""
    made = pair.a.http("operator").put("/v1/budgets", json={"scope": "tenant", "target": None, "hard": 2.0})
    assert made.status_code == 200, made.text

    def spend(side: Server) -> list[int]:
        bodies = [
            step(str(uuid.uuid4()), state_delta={"cumulative_session_cost": None, "cost": 0.25})
            for _ in range(16)
        ]
        return [side.send(body).status_code for body in bodies]

    codes = [code for part in pair.both(spend) for code in part]
    assert (codes.count(202), codes.count(402)) == (8, 24), codes
    (shown,) = pair.b.http("operator").get("/v1/budgets").json()["items"]
    assert (shown["spent"], shown["remaining"]) == (2.0, 0.0)


def test_the_same_message_at_both_at_once_is_one_row_s845(pair: Pair) -> None:
    """S845: one of them is first; both answer as it did. Other content under that name is refused at both."""
    session = str(uuid.uuid4())
    bodies = [step(session) for _ in range(30)]
    answers = pair.both(lambda side: [side.send(body) for body in bodies])
    for one, two in zip(*answers, strict=True):
        assert (one.status_code, two.status_code) == (202, 202)
        assert one.json() == two.json()
    other = bodies[0] | {"action": bodies[0]["action"] | {"tool_output_summary": "another"}}
    assert [side.send(other).status_code for side in pair] == [409, 409]
    names = [event["attributes"]["av.step.id"] for event in trail(pair.a, "message_delivered")]
    assert sorted(names) == sorted(body["meta"]["step_id"] for body in bodies)


def test_rules_made_at_one_hold_for_the_next_message_at_the_other_s846(pair: Pair) -> None:
    """S846: a rule, its removal, an instruction, a version: whatever a gateway keeps in memory is asked
    about under the lock."""
    http = pair.a.http("operator")
    assert pair.b.send(step("s")).status_code == 202  # it knows this tenant's rules now
    for _ in range(3):
        rule = {"effect": "deny", "match": {"sender": ["worker"]}}
        made = http.post("/v1/policies", json=rule)
        assert made.status_code == 201, made.text
        refused = pair.b.send(step("s"))
        assert (refused.status_code, refused.json()["reason"]) == (403, "policy_denied")
        assert http.delete(f"/v1/policies/{made.json()['rule_id']}").status_code == 200
        assert pair.b.send(step("s")).status_code == 202
    issued = pair.a.http("admin").put("/v1/instructions/working", json={"text": "be terse", "note": ""})
    assert issued.status_code == 201, issued.text
    inbox = pair.b.http("agent").get("/v1/agents/worker/inbox").json()["items"]
    assert [item["kind"] for item in inbox] == ["instruction"]


def test_a_key_revoked_at_one_is_worth_nothing_at_the_other_s847(pair: Pair) -> None:
    """S847: at once at every door of it, also where it was used a moment ago; open sockets end."""
    key, key_id = bound_key(pair.a, "worker")
    made = pair.a.http("admin").post("/v1/keys", json={"role": "viewer", "label": "reads at b"}).json()
    agent = Agent(pair.b, key)
    agent.name = "worker"

    def send() -> int:
        headers = {"authorization": f"Bearer {key}"}
        return pair.b.http("nobody").post("/v1/messages", json=step("s"), headers=headers).status_code

    def read() -> int:
        headers = {"authorization": f"Bearer {made['key']}"}
        return pair.b.http("nobody").get("/v1/messages", headers=headers).status_code

    assert (send(), read()) == (202, 200)
    with agent.channel() as channel, live(pair.b, "messages", key=made["key"]) as reader:
        hello(channel)
        for one in (key_id, made["key_id"]):
            assert pair.a.http("admin").delete(f"/v1/keys/{one}").status_code in (200, 204)
        assert send() in (401, 403)
        assert read() == 401
        for socket in (channel, reader):
            hears_the_end(socket)


def test_a_gate_approved_at_one_reaches_the_channel_at_the_other_s848(pair: Pair) -> None:
    """S848: held through one, approved through the other; told to an agent that is connected to the first."""
    pair.a.send(step("s"))
    agent = Agent(pair.a)
    agent.name, agent.session = "worker", "s"
    with agent.channel() as channel:
        hello(channel)
        body = step("s", control={"hitl_required": True})
        assert pair.a.send(body).json()["state"] == "held"
        (hold,) = pair.b.http("operator").get("/v1/holds").json()["items"]
        wanted = {name: hold[name] for name in ("agent_id", "message_id")} | {"digest": hold["action_digest"]}
        done = pair.b.http("operator").post("/v1/sessions/s/approve", json=wanted)
        assert done.status_code == 200, done.text
        again = pair.a.http("operator").post("/v1/sessions/s/approve", json=wanted)
        assert again.status_code == 409, again.text
        (verdict,) = deliveries(channel)
        assert (verdict["kind"], verdict["body"]["verdict"]) == ("verdict", "approved")
        received = pair.b.http("operator").post(
            "/v1/sessions/s/inject", json={"agent_id": "worker", "prompt": "look again"}
        )
        assert received.status_code in (200, 202), received.text
        (frame,) = deliveries(channel)
        assert frame["kind"] == "inject"
        assert say(channel, op="ack", ids=ids([frame]))["type"] == "acked"


def test_both_live_feeds_are_whole_and_in_order_s849(pair: Pair) -> None:
    """S849: two readers at two gateways hear the same, each number once."""
    with live(pair.a, "events") as one, live(pair.b, "events") as two:
        sent = pair.both(
            lambda side: [answer["sequence_number"] for _ in range(6) for answer in side.send_lines(some(25))]
        )
        last = max(max(part) for part in sent)
        heard = []
        for reader in (one, two):
            got: list[int] = []
            while not got or got[-1] < last:
                items, _ = take(reader, 1)
                got += numbers(items)
            heard.append(got)
    for got in heard:
        assert got == list(range(got[0], got[0] + len(got)))
        assert {*sent[0], *sent[1]} <= set(got)
    assert heard[0][: len(heard[1])] == heard[1][: len(heard[0])]


@pytest.mark.req(113, 233, 245)
def test_somebody_outside_is_told_once_and_cron_fires_once_s850(pair: Pair, receiver: Receiver) -> None:
    """S850: two gateways with the same endpoints and jobs do each thing once."""
    path = f"/{uuid.uuid4().hex}"
    hook = {"name": "once", "url": receiver.url + path, "events": ["message_delivered"], "schedule_s": [0.2]}
    assert pair.b.http("admin").post("/v1/webhooks/out", json=hook).status_code == 201
    pair.a.send(step("s"))
    job = {
        "name": "tick",
        "cron": "* * * * * *",
        "target": {"kind": "agent", "name": "worker"},
        "intent": "tick",
        "payload": {},
    }
    made = pair.b.http("operator").post("/v1/jobs", json=job)
    assert made.status_code == 201, made.text
    runs = f"/v1/jobs/{made.json()['job_id']}/runs"
    for side in (pair.a, pair.b) * 4:
        side.send(step(str(uuid.uuid4())))

    def fired() -> list[Json]:
        items: list[Json] = pair.a.http("operator").get(runs).json()["items"]
        return items if len(items) > 2 else []

    found = until(fired)
    times = [one["scheduled_for"] for one in found]
    assert len(set(times)) == len(times)
    until(lambda: len(receiver.at(path)) >= 9)
    names = [one.headers["webhook-id"] for one in receiver.at(path)]
    assert len(set(names)) == len(names)

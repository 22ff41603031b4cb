"""One of several gateways is killed, their database crashes or stands still: nothing promised is lost.

Two gateways, a PostgreSQL and a NATS of their own, because all of them are taken away.
"""

from __future__ import annotations

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from bench.postgres import Cluster, ask, cluster
from tests import nats_server
from tests.flows.databases import new_database
from tests.flows.mesh import Elsewhere, gateways, hears_the_end
from tests.flows.server import Server
from tests.flows.test_live import live, numbers, take
from tests.flows.worker import Agent, hello, ids, say
from tests.flows.worker import take as deliveries
from tests.nats_server import Nats
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    with cluster(in_memory=True) as made:
        yield made


@pytest.fixture(scope="module")
def nats() -> Iterator[Nats]:
    with nats_server.running() as made:
        yield made


@pytest.fixture(scope="module")
def deployment(
    postgres: Cluster, nats: Nats, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Server]]:
    folder = tmp_path_factory.mktemp("faults")
    settings = {"OBSERVATORY_REDELIVERY_S": "600", "OBSERVATORY_BUS": nats.url}
    with gateways(new_database(postgres.url), folder, settings) as made:
        yield made


class Writer(threading.Thread):
    """Sends step after step through one gateway; what is not answered is sent again, to the next one."""

    def __init__(self, key: str, *urls: str) -> None:
        super().__init__(daemon=True)
        self._urls, self._headers = list(urls), {"Authorization": f"Bearer {key}"}
        self._over = threading.Event()
        self.acks: dict[str, int] = {}
        self.told_to_wait = 0
        self.again = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        session = str(uuid.uuid4())
        with httpx2.Client(headers=self._headers, trust_env=False, timeout=60) as client:
            while not self._over.is_set():
                step = str(uuid.uuid4())
                meta = {"step_id": step, "session_id": session, "parent_step_id": None}
                body = decision_log(meta=meta, identity={"agent_id": "writer"})
                while (number := self._sent(client, body)) is None:
                    self._over.wait(0.02)
                self.acks[step] = number

    def _sent(self, client: httpx2.Client, body: Json) -> int | None:
        try:
            answer = client.post(f"{self._urls[0]}/v1/messages", json=body)
        except httpx2.TransportError:
            self._urls.append(self._urls.pop(0))
            self.again += 1
            return None
        if answer.status_code == 503 and answer.headers.get("retry-after"):
            self.told_to_wait += 1
            return None
        if answer.status_code != 202:
            self.wrong.append(answer.text)
        number: int = answer.json()["sequence_number"]
        return number

    def finish(self) -> dict[str, int]:
        self._over.set()
        self.join(60)
        assert not self.is_alive() and not self.wrong, self.wrong
        return self.acks


def is_there_once(server: Server, acks: dict[str, int]) -> None:
    """Every acknowledged step under its number, none twice, and the chain verifies."""
    http, found, cursor = server.http("admin"), list[tuple[str, int]](), None
    while True:
        params = {"limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = http.get("/v1/messages", params=params).json()
        found += [(item["step_id"], item["sequence_number"]) for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len({step for step, _ in found}) == len(found)
    stored = dict(found)
    assert {step: stored.get(step) for step in acks} == acks
    assert http.post("/v1/audit/verify", json={}).json()["valid"] is True


@pytest.mark.req(97, 110, 230)
def test_what_a_killed_gateway_had_open_goes_on_at_another_s851(deployment: list[Server], nats: Nats) -> None:
    """S851: channels with deliveries, live readers and messages under way, all moved; NATS dies too."""
    first, second = deployment
    here = Elsewhere(first, second)  # the same keys, through the other gateway
    agent = Agent(first)
    agent.step()
    sent: list[str] = []

    def tell(many: int) -> None:
        elsewhere = Agent(here)
        elsewhere.name, elsewhere.session = agent.name, agent.session
        sent.extend(elsewhere.hear_from("speaker")["meta"]["step_id"] for _ in range(many))

    writer = Writer(first.key("agent"), first.url, second.url)
    with agent.channel() as channel, live(first, "events", after=0) as reader:
        hello(channel)
        tell(10)
        frames = deliveries(channel, 10)
        say(channel, op="ack", ids=ids(frames[:4]))
        writer.start()
        heard: list[int] = []
        while len(heard) < 30 or not writer.acks:
            items, cursor = take(reader, 1)
            heard += numbers(items)
        first.kill()
        nats.kill()
        for socket in (channel, reader):
            hears_the_end(socket)
    before = len(writer.acks)
    tell(5)
    nats.start()
    agent.server = here
    with agent.channel() as channel:
        hello(channel)
        frames += (more := deliveries(channel, 11))
        assert [frame["message"]["meta"]["step_id"] for frame in more] == sent[4:]
        assert say(channel, op="ack", ids=ids(more))["type"] == "acked"
    until(lambda: len(writer.acks) > before + 10)
    acks = writer.finish()
    assert writer.again, "no message met the kill: nothing was proved"
    with live(here, "events", after=cursor) as reader:
        while heard[-1] < max(acks.values()):
            items, _ = take(reader, 1)
            heard += numbers(items)
    assert heard == list(range(1, len(heard) + 1))
    first.start()
    assert agent.poll() == []
    is_there_once(first, acks)
    here.stop()


def test_a_database_that_crashes_is_waited_for_s852(deployment: list[Server], postgres: Cluster) -> None:
    """S852: 503 with Retry-After while it is away, at both and for acts too; then on without a restart."""
    first, second = deployment
    writers = [Writer(one.key("agent"), one.url) for one in deployment]
    with live(second, "events") as reader:
        for writer in writers:
            writer.start()
        until(lambda: all(len(writer.acks) > 10 for writer in writers))
        postgres.crash()
        for one in deployment:
            until(lambda one=one: one.http("nobody").get("/readyz").status_code == 503)  # type: ignore[misc]
        until(lambda: all(writer.told_to_wait for writer in writers))
        # A key that was not looked up lately, and one that was; a message and an act.
        stranger = {"Authorization": f"Bearer {first.key('operator')}"}
        http = second.http("nobody")
        for asked in (
            http.post("/v1/messages", json=decision_log(), headers=stranger),
            http.post("/v1/kill-switch", json={"scope": "global", "reason": "away"}, headers=stranger),
        ):
            assert (asked.status_code, asked.json()["reason"]) == (503, "not_durable"), asked.text
            assert asked.headers["retry-after"]
        refused = second.send(decision_log())
        assert refused.status_code == 503 and refused.headers["retry-after"]
        assert refused.json()["status"] == "refused" and refused.json()["reason"]
        before = [len(writer.acks) for writer in writers]
        postgres.start()
        until(lambda: all(len(w.acks) > b + 10 for w, b in zip(writers, before, strict=True)), 60)
        acks = [writer.finish() for writer in writers]
        assert not set(acks[0]) & set(acks[1])
        last = max(max(part.values()) for part in acks)
        heard, cursor = list[int](), 0
        try:
            while not heard or heard[-1] < last:
                items, cursor = take(reader, 1)
                heard += numbers(items)
        except ConnectionClosed:  # told to come back with its cursor
            assert reader.close_code == 1013
            with live(second, "events", after=cursor) as again:
                while heard[-1] < last:
                    items, _ = take(again, 1)
                    heard += numbers(items)
    assert heard == list(range(heard[0], heard[0] + len(heard)))
    is_there_once(first, acks[0] | acks[1])
    for one in deployment:
        until(lambda one=one: one.http("nobody").get("/readyz").status_code == 200)  # type: ignore[misc]
    with live(first, "messages") as reader:  # what wakes one gateway for the other's rows is back too
        sent = second.send(decision_log()).json()["sequence_number"]
        assert numbers(take(reader, 1)[0]) == [sent]


def test_a_database_that_stands_still_for_a_while_loses_nothing_s853(
    deployment: list[Server], postgres: Cluster
) -> None:
    """S853: every backend frozen in mid-load: whoever waits is answered when it moves again, once."""
    writers = [Writer(one.key("agent"), one.url) for one in deployment]
    for writer in writers:
        writer.start()
    until(lambda: all(len(writer.acks) > 10 for writer in writers))
    asked = "SELECT pid FROM pg_stat_activity WHERE application_name = 'observatory'"
    backends = [row[0] for row in ask(postgres.url, asked)]
    assert len(backends) > 4
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    try:
        before = [len(writer.acks) for writer in writers]
        threading.Event().wait(1.0)  # the standstill itself
        assert all(len(w.acks) <= b + 1 for w, b in zip(writers, before, strict=True)), "it went on"
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)
    until(lambda: all(len(w.acks) > b + 10 for w, b in zip(writers, before, strict=True)))
    acks = [writer.finish() for writer in writers]
    is_there_once(deployment[1], acks[0] | acks[1])

"""What a gateway asks of its databases while little happens, counted by the gateway itself (S1204).

Counted are questions, not time: a busy machine asks fewer of them in a second, never more.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from websockets.sync.client import connect

from bench.idle import TOPICS
from bench.messages import Mesh
from tests.flows.server import Server

IDLE = 40.0  # a second
MESSAGE = 30  # for each
SECONDS = 3.0
MESSAGES = 6
COUNTED = re.compile(r"^observatory_store_reads_total\{[^}]*\} (\S+)$", re.MULTILINE)


def asked(server: Server) -> int:
    found = COUNTED.findall(server.http("operator").get("/metrics").text)
    assert len(found) == 4, "record and derived store, by two ways each"
    return int(sum(map(float, found)))


def asked_for(server: Server, seconds: float) -> tuple[int, float]:
    """Questions and the time they came in, which is longer on a busy machine."""
    began, before = time.monotonic(), asked(server)
    time.sleep(seconds)
    return asked(server) - before, time.monotonic() - began


@contextmanager
def page(server: Server) -> Iterator[None]:
    """What an open page follows; it reads little, so that what is told to it waits in its socket."""
    headers = {"Authorization": f"Bearer {server.key('operator')}"}
    with connect(f"{server.socket_url}/v1/live", additional_headers=headers, max_size=None) as opened:
        opened.send(json.dumps({"op": "subscribe", "topics": TOPICS}))
        opened.recv(timeout=30)
        yield


def test_a_quiet_gateway_with_a_page_open_asks_its_databases_little_s1204(fresh_server: Server) -> None:
    server, mesh = fresh_server, Mesh(2)
    for body in mesh.logs(4):
        assert server.send(body).status_code == 202
    with page(server):
        asked_for(server, 1.0)  # what is read once, for a page that is new
        count, took_s = asked_for(server, SECONDS)
        quiet = count / took_s
        assert quiet <= IDLE, f"{quiet:.1f} questions a second while nothing happens"
        before, began = asked(server), time.monotonic()
        for body in mesh.logs(MESSAGES):
            assert server.send(body).status_code == 202
            time.sleep(SECONDS / MESSAGES)
        lone = asked(server) - before - IDLE * (time.monotonic() - began)
        assert lone <= MESSAGE * MESSAGES, f"{lone / MESSAGES:.0f} questions for each lone message"

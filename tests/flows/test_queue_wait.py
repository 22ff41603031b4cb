"""A database that hangs: what waits for too long is refused in time, and never committed afterwards."""

from __future__ import annotations

import sqlite3
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx2

from tests.flows.databases import ALONE
from tests.flows.server import Server
from tests.samples import full_decision_log

AT_ONCE = 4


def test_a_message_refused_for_waiting_too_long_is_never_committed_s1202(tmp_path: Path) -> None:
    """Another process keeps the database locked: one message is being written, the others wait behind it."""
    environment = ALONE | {"OBSERVATORY_QUEUE_WAIT_S": "0.5"}
    with (
        Server(tmp_path / "data", environment=environment) as server,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        agent = server.http("agent")

        def send(log: dict[str, Any]) -> httpx2.Response:
            return agent.post("/v1/messages", json=log)

        assert send(full_decision_log()).status_code == 202
        logs = [full_decision_log() for _ in range(AT_ONCE)]
        other = sqlite3.connect(server.folder / "observatory.db", isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            sent = {pool.submit(send, log): log["meta"]["step_id"] for log in logs}
            done = wait(sent, timeout=20, return_when=FIRST_COMPLETED).done
            assert {one.result().status_code for one in done} == {503}
        finally:
            other.close()
        wait(sent, timeout=20)
        refused = {name for one, name in sent.items() if one.result().status_code == 503}
        written = {name for one, name in sent.items() if one.result().status_code == 202}
        assert refused and written and refused | written == set(sent.values())
        for one in sent:
            if one.result().status_code == 503:
                assert one.result().json()["reason"] == "waited_too_long"
                assert one.result().headers["retry-after"]
        assert send(full_decision_log()).status_code == 202
        listed = server.http("operator").get("/v1/messages", params={"limit": 100}).json()["items"]
        steps = {item["step_id"] for item in listed}
        assert written <= steps and not refused & steps
        for log in logs:
            assert send(log).status_code == 202, "what was refused may be sent again, a repeat is a repeat"

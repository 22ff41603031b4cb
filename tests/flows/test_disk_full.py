"""A full disk on the real process: 503, never an acknowledgement of what is not stored, and all of it heals.

RLIMIT_FSIZE stands for the full disk: the kernel refuses to let the write-ahead log grow past it, in the
middle of a transaction, while every other part of the process goes on. (`max_page_count` cannot be used from
outside: it belongs to the gateway's own connection.)
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.flows.server import Server
from tests.samples import full_decision_log

ROOM = 300_000
WRITERS = 8


def limit_files(server: Server, size: int) -> None:
    """No file of the process may grow past `size`; the hard limit stays, so that it can be lifted again."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill(server: Server, writer: int) -> tuple[dict[str, int], int]:
    """Send until three requests were refused; (step id → number acknowledged, messages refused)."""
    acknowledged: dict[str, int] = {}
    refused = refusals = 0
    for turn in range(1_000):
        logs = [full_decision_log() for _ in range(1 if turn % 2 else 20)]
        body = b"\n".join(json.dumps(log).encode() for log in logs)
        kind = "application/json" if len(logs) == 1 else "application/x-ndjson"
        answer = server.http("agent").post("/v1/messages", content=body, headers={"content-type": kind})
        if answer.status_code == 503:
            assert answer.json()["reason"] == "not_durable"
            refused += len(logs)
            refusals += 1
            if refusals == 3:
                return acknowledged, refused
            continue
        assert answer.status_code in (200, 202), answer.text
        for line, log in zip(answer.text.splitlines(), logs, strict=True):
            received = json.loads(line)
            # A batch longer than a transaction may be stored in part; then each line has its own code.
            if received.get("code", answer.status_code) == 202:
                acknowledged[log["meta"]["step_id"]] = received["sequence_number"]
            else:
                assert received["code"] == 503, line
    raise AssertionError(f"writer {writer}: the disk never got full")


def archived(server: Server) -> Iterator[dict[str, Any]]:
    cursor: str | None = None
    while True:
        given = {"limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = server.http("admin").get("/v1/messages", params=given).json()
        yield from page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return


def assert_all_is_there(server: Server, acknowledged: dict[str, int]) -> None:
    rows = list(archived(server))
    found = {row["step_id"]: row["sequence_number"] for row in rows}
    assert len(found) == len(rows), "a step is stored twice"
    missing = {step: number for step, number in acknowledged.items() if found.get(step) != number}
    assert not missing
    verdict = (
        server.http("admin").post("/v1/audit/verify", json={"from_sequence": 1, "to_sequence": None}).json()
    )
    assert verdict["valid"], verdict


@pytest.fixture
def full(fresh_server: Server) -> tuple[Server, dict[str, int]]:
    """A gateway whose disk got full while eight writers were at work, and what it had acknowledged."""
    server = fresh_server
    assert server.send(full_decision_log()).status_code == 202
    log = Path(server.folder) / "observatory.db-wal"
    server.http("agent")  # made here: the writers share it
    limit_files(server, log.stat().st_size + ROOM)
    with ThreadPoolExecutor(WRITERS) as pool:
        results = list(pool.map(lambda number: fill(server, number), range(WRITERS)))
    acknowledged = {step: number for acks, _ in results for step, number in acks.items()}
    assert acknowledged, "nothing was stored before the disk was full"
    assert all(refused for _, refused in results)
    # A checkpoint may have made room in the log by itself; now no file takes a byte more.
    limit_files(server, 1)
    assert server.send(full_decision_log()).status_code == 503
    return server, acknowledged


@pytest.mark.req(239, 240)
def test_a_full_disk_is_answered_503_and_nothing_acknowledged_is_missing_after_a_restart(
    full: tuple[Server, dict[str, int]],
) -> None:
    """S25, S20."""
    server, acknowledged = full
    assert server.http("nobody").get("/readyz").status_code == 503
    assert server.http("nobody").get("/healthz").status_code == 200
    assert_all_is_there(server, acknowledged)  # reading goes on while nothing can be written
    server.restart(kill=True)
    assert server.http("nobody").get("/readyz").status_code == 200
    assert_all_is_there(server, acknowledged)
    again = server.send(full_decision_log())
    assert again.status_code == 202
    assert again.json()["sequence_number"] > max(acknowledged.values())
    assert_all_is_there(server, acknowledged)


def test_once_there_is_room_again_the_same_process_goes_on(full: tuple[Server, dict[str, int]]) -> None:
    """S25: also the end of it, without a restart."""
    server, acknowledged = full
    refused = full_decision_log()
    assert server.send(refused).status_code == 503
    limit_files(server, resource.RLIM_INFINITY)
    answer = server.send(refused)
    assert answer.status_code == 202, answer.text
    acknowledged[refused["meta"]["step_id"]] = answer.json()["sequence_number"]
    assert server.http("nobody").get("/readyz").status_code == 200
    assert_all_is_there(server, acknowledged)

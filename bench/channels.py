"""Agents' channels: what 500 open sockets weigh, and how fast a command arrives while messages pour in.

A command's time is the whole way as the operator and the agent see it: from before the request is written to
after the frame was read, both in this process, so one clock measures it.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import time
import uuid
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import ClientConnection, connect

from bench.gateway import Gateway
from bench.load import request_bytes
from bench.messages import Mesh
from bench.report import Figure, Report

CHANNELS = 500
RATE = 1_000
TICK_S = 0.02
SETTLE_S = 2.0
KINDS = ("pause", "inject", "unpause")


class Worker:
    """An agent that is connected and acknowledges everything it receives."""

    def __init__(self, number: int) -> None:
        self.name, self.session = f"channel-{number}", str(uuid.uuid4())
        self.heard: asyncio.Queue[float] = asyncio.Queue()

    def log(self) -> bytes:
        ids = {"trace_id": str(uuid.uuid4()), "step_id": str(uuid.uuid4()), "session_id": self.session}
        now = datetime.now(UTC).isoformat()
        body = {
            "meta": {**ids, "parent_step_id": None, "timestamp": now, "cluster_id": "bench"},
            "identity": {"agent_id": self.name, "agent_type": "worker", "capability_version": "v1.0.0"},
            "action": {"tool_call": "search", "tool_input": "{}", "status": "success"},
        }
        return json.dumps(body).encode()

    async def listen(self, gateway: Gateway) -> ClientConnection:
        url = f"ws://127.0.0.1:{gateway.port}/v1/agents/{self.name}/channel"
        opened = await connect(
            url, additional_headers={"Authorization": f"Bearer {gateway.key}"}, open_timeout=60, proxy=None
        )
        assert json.loads(await opened.recv())["type"] == "hello"
        return opened

    async def obey(self, opened: ClientConnection) -> None:
        async for text in opened:
            frame = json.loads(text)
            if frame["type"] == "delivery":
                self.heard.put_nowait(time.perf_counter())
                await opened.send(json.dumps({"op": "ack", "ids": [frame["delivery_id"]]}))


def pour(port: int, key: str, flowing: Event, ending: Event, sent: Any) -> None:
    """A process of its own: a fixed number of messages a second, evenly, on one connection."""
    mesh, wire = Mesh(50, seed=time.time_ns()), socket.create_connection(("127.0.0.1", port), timeout=30)
    lines = round(RATE * TICK_S)
    due = time.monotonic()
    while not ending.is_set():
        wire.sendall(request_bytes(port, key, b"\n".join(mesh.logs(lines)), True))
        answer = wire.recv(1 << 20)
        while answer.count(b'"code":202') < lines:
            part = wire.recv(1 << 20)
            if not part:
                return
            answer += part
        sent.value += lines
        if sent.value >= RATE:
            flowing.set()
        due += TICK_S
        time.sleep(max(0.0, due - time.monotonic()))  # the pace: evenly, catching up when late
    wire.close()


async def command(http: httpx2.AsyncClient, worker: Worker, kind: str) -> float:
    """Milliseconds from the operator's hand to the agent's ear."""
    body = {"agent_id": worker.name} | ({"prompt": "look again"} if kind == "inject" else {})
    began = time.perf_counter()
    answer = await http.post(f"/v1/sessions/{worker.session}/{kind}", json=body)
    if answer.status_code not in (200, 202):
        raise RuntimeError(f"{kind} answered {answer.status_code}: {answer.text[:200]}")
    return (await asyncio.wait_for(worker.heard.get(), 30) - began) * 1_000


async def measured(gateway: Gateway, report: Report, label: str, commands: int) -> None:
    workers = [Worker(number) for number in range(CHANNELS)]
    auth = {"Authorization": f"Bearer {gateway.key}", "Content-Type": "application/x-ndjson"}
    operator = {"Authorization": f"Bearer {gateway.reader_key}"}
    base = f"http://127.0.0.1:{gateway.port}"
    async with httpx2.AsyncClient(base_url=base, timeout=60, trust_env=False) as http:
        answer = await http.post(
            "/v1/messages", content=b"\n".join(worker.log() for worker in workers), headers=auth
        )
        assert answer.text.count('"code":202') == CHANNELS, answer.text[:300]
        before = gateway.rss_mb()
        opened = []
        for start in range(0, CHANNELS, 50):
            opened += await asyncio.gather(*(one.listen(gateway) for one in workers[start : start + 50]))
        tasks = [asyncio.create_task(worker.obey(one)) for worker, one in zip(workers, opened, strict=True)]
        http.headers.update(operator)
        for worker in workers:  # every channel has carried something before it is weighed
            await command(http, worker, "pause")
        await asyncio.sleep(SETTLE_S)  # nothing reports when memory has settled
        rss = gateway.rss_mb()
        report.say(f"  {label}: {CHANNELS} channels: {rss:.0f} MB, {before:.0f} MB before")
        report.add(Figure(f"{CHANNELS} channels, memory ({label})", "MB", rss, 600, is_limit=True))
        for worker in workers[: commands // 3]:
            await command(http, worker, "unpause")
        times = await _under_load(gateway, report, http, workers[: commands // 3])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*(one.close() for one in opened), return_exceptions=True)
    ordered = sorted(times)
    p50, p99 = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    report.details[f"command to agent, ms ({label})"] = ordered
    report.say(f"  {label}: {len(ordered)} commands: p50 {p50:.1f} ms, worst {ordered[-1]:.1f} ms")
    report.add(Figure(f"command to agent, p99 ({label})", "ms", p99, 50, is_limit=True))


async def _under_load(
    gateway: Gateway, report: Report, http: httpx2.AsyncClient, workers: list[Worker]
) -> list[float]:
    context = multiprocessing.get_context("spawn")
    flowing, ending, sent = context.Event(), context.Event(), context.Value("q", 0)
    received = (gateway.port, gateway.key, flowing, ending, sent)
    source = context.Process(target=pour, args=received, daemon=True)
    source.start()
    try:
        if not await asyncio.to_thread(flowing.wait, 60):
            raise RuntimeError("no messages could be poured in")
        began, start = time.monotonic(), sent.value
        times = []
        for worker in workers:
            for kind in KINDS:
                times.append(await command(http, worker, kind))
                await asyncio.sleep(0.005)  # the pace: commands one by one, as from a hand
        rate = (sent.value - start) / (time.monotonic() - began)
        report.say(f"  meanwhile {rate:,.0f} msg/s were ingested")
        return times
    finally:
        ending.set()
        await asyncio.to_thread(source.join, 30)


def channels(report: Report, folder: Path, db: str | None = None) -> None:
    label = "PostgreSQL" if db else "SQLite"
    with Gateway(folder / f"channels-{label}", db=db) as gateway:
        asyncio.run(measured(gateway, report, label, 150 if report.quick else 900))

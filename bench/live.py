"""`python -m bench.live [--agents N --rate N --clients N --seconds N]`: from the commit to those who follow.

So many agents, each with a session of its own, speak at a steady rate; so many live clients follow `fleet`,
`sessions` or `messages` in turn, as browsers do (compression offered). A message's time runs from the
gateway's 202 to the frame in which a client hears of it: of `fleet` and `sessions` the record that counts it,
of `messages` the message. Clients and senders are a process of their own; one clock measures both ends. The
gateway's memory is told at every tenth of the run. The issue wants p99 ≤ 300 ms with 1,000 agents, 1,000
msg/s and 20 clients, on at most one core, and memory flat over ten minutes (`--seconds 600`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import shutil
import tempfile
import time
import uuid
from array import array
from bisect import bisect_left
from collections import Counter
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from websockets.asyncio.client import connect

from bench.gateway import Gateway
from bench.report import OUT

TOPICS = ("fleet", "sessions", "messages")
TICK_S = 0.05
WARM_S = 5.0
SETTLE_S = 3.0


class Item(msgspec.Struct):
    kind: str = ""
    id: str = ""
    messages: int = 0
    message_id: str = ""


class Frame(msgspec.Struct):
    type: str
    topic: str
    seq: int
    items: list[Item] = []


_frame = msgspec.json.Decoder(Frame).decode


class Mesh:
    """Agents in turn; no two steps alike, so that no detector has anything to say."""

    def __init__(self, agents: int) -> None:
        self.names = [f"agent-{number:05d}" for number in range(agents)]
        self.counts = dict.fromkeys(self.names, 0)
        self._next = 0

    def log(self) -> tuple[str, bytes]:
        name = self.names[self._next % len(self.names)]
        number = self._next
        self._next += 1
        meta = {
            "trace_id": str(uuid.uuid4()), "step_id": str(uuid.uuid4()), "session_id": f"ses-{name}",
            "parent_step_id": None, "cluster_id": f"eu-{number % 8}",
            "timestamp": datetime.now(UTC).isoformat(),
        }  # fmt: skip
        body = {
            "meta": meta,
            "identity": {
                "agent_id": name,
                "agent_type": f"type-{number % 5}",
                "capability_version": "v1.0.0",
            },
            "cognition": {"intent": f"step {number} of {name}: {uuid.uuid4()}"},
            "action": {"tool_call": f"tool-{number % 17}", "tool_input": f"{number}", "status": "success"},
        }
        return name, json.dumps(body).encode()


class Ear:
    """One client: what it heard, and when; plain numbers, so that ten minutes fit into memory."""

    def __init__(self, topic: str, ids: dict[str, int]) -> None:
        """`ids` numbers messages, the same for all clients."""
        self.topic, self._ids = topic, ids
        self.heard: dict[str, tuple[array[float], array[int]]] = {}
        self.messages: dict[int, float] = {}
        self.frames: Counter[int] = Counter()
        self.bytes = 0

    async def listen(self, port: int, key: str, ready: asyncio.Event) -> None:
        async with connect(
            f"ws://127.0.0.1:{port}/v1/live",
            additional_headers={"Authorization": f"Bearer {key}"},
            max_size=None,
            proxy=None,
            open_timeout=60,
        ) as opened:
            await opened.send(json.dumps({"op": "subscribe", "topics": [self.topic]}))
            async for data in opened:
                now = time.perf_counter()
                received = _frame(data)
                ready.set()
                self.frames[int(now)] += 1
                self.bytes += len(data)
                for item in received.items:
                    if item.message_id:
                        self.messages.setdefault(self._ids.setdefault(item.message_id, len(self._ids)), now)
                    elif item.kind in ("node", "session"):
                        name = item.id.removeprefix("ses-")
                        if name not in self.heard:
                            self.heard[name] = (array("d"), array("q"))
                        self.heard[name][0].append(now)
                        self.heard[name][1].append(item.messages)

    def times(self, sent: list[tuple[str, int, str, float]]) -> list[float]:
        """Milliseconds for each message sent; infinite for one never heard of."""
        found = []
        for name, count, message_id, at in sent:
            moment: float | None = None
            if self.topic == "messages":
                moment = self.messages.get(self._ids.get(message_id, -1))
            elif name in self.heard:
                whens, counts = self.heard[name]
                place = bisect_left(counts, count)  # a record's count only rises
                moment = whens[place] if place < len(whens) else None
            found.append(float("inf") if moment is None else max(0.0, moment - at) * 1_000)
        return found


async def speak(
    port: int, key: str, mesh: Mesh, rate: int, seconds: float
) -> list[tuple[str, int, str, float]]:
    """Evenly, four requests in flight at most, each answer read before its time is taken."""
    lines, sent = max(1, round(rate * TICK_S)), []
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    limit = asyncio.Semaphore(4)
    base = f"http://127.0.0.1:{port}"
    async with httpx2.AsyncClient(base_url=base, timeout=60, trust_env=False, headers=headers) as http:

        async def once() -> None:
            made = [mesh.log() for _ in range(lines)]
            answer = await http.post("/v1/messages", content=b"\n".join(body for _, body in made))
            at = time.perf_counter()
            limit.release()
            for (name, _), line in zip(made, answer.text.splitlines(), strict=True):
                received = json.loads(line)
                if received["code"] != 202:
                    raise RuntimeError(f"answered {received}")
                mesh.counts[name] += 1
                sent.append((name, mesh.counts[name], received["message_id"], at))

        due, end, tasks = time.monotonic(), time.monotonic() + seconds, []
        while due < end:
            await limit.acquire()
            tasks.append(asyncio.create_task(once()))
            due += TICK_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*tasks)
    return sent


async def measured(port: int, keys: tuple[str, str], asked: argparse.Namespace, line: Connection) -> None:
    mesh = Mesh(asked.agents)
    await speak(port, keys[0], mesh, asked.rate, max(WARM_S, asked.agents / asked.rate))
    ids: dict[str, int] = {}
    ears = [Ear(TOPICS[number % len(TOPICS)], ids) for number in range(asked.clients)]
    ready = [asyncio.Event() for _ in ears]
    tasks = [
        asyncio.create_task(ear.listen(port, keys[1], event)) for ear, event in zip(ears, ready, strict=True)
    ]
    await asyncio.gather(*(event.wait() for event in ready))
    line.send("begin")
    began, cpu = time.perf_counter(), time.process_time()
    sent = await speak(port, keys[0], mesh, asked.rate, asked.seconds)
    ended = time.perf_counter()
    line.send("end")
    await asyncio.sleep(SETTLE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    received: dict[str, Any] = {"rate": len(sent) / (ended - began), "client_cpu": time.process_time() - cpu}
    inside = range(int(began) + 1, int(ended))
    for topic in TOPICS:
        mine = [ear for ear in ears if ear.topic == topic]
        times = sorted(ms for ear in mine for ms in ear.times(sent))
        counted = [ear.frames[second] for ear in mine for second in inside]
        if times:
            received[topic] = {
                "clients": len(mine),
                "p50": times[len(times) // 2],
                "p99": times[int(0.99 * len(times))],
                "worst": times[-1],
                "frames": sum(counted) / max(1, len(counted)),
                "most": max(counted, default=0),
                "kb_s": sum(ear.bytes for ear in mine) / len(mine) / (ended - began + SETTLE_S) / 1_000,
            }
    line.send(received)


def play(port: int, keys: tuple[str, str], asked: argparse.Namespace, line: Connection) -> None:
    asyncio.run(measured(port, keys, asked, line))


def run(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    with Gateway(folder, settings={} if asked.insight else {"insight": "false"}) as gateway:
        keys = (gateway.key, gateway.reader_key)
        clients = context.Process(target=play, args=(gateway.port, keys, asked, theirs), daemon=True)
        clients.start()
        theirs.close()  # so that its end is heard
        assert mine.recv() == "begin"
        began, cpu = time.perf_counter(), gateway.cpu_s()
        memory = [gateway.rss_mb()]
        while not mine.poll(asked.seconds / 10):
            memory.append(gateway.rss_mb())
        assert mine.recv() == "end"
        spent, took = gateway.cpu_s() - cpu, time.perf_counter() - began
        memory.append(gateway.rss_mb())
        received: dict[str, Any] = mine.recv()
        clients.join(30)
    return received | {"cores": spent / took, "seconds": took, "memory": memory}


def show(asked: argparse.Namespace, received: dict[str, Any]) -> None:
    print(
        f"{asked.agents} agents, {received['rate']:,.0f} msg/s, {asked.clients} clients, "
        f"{received['seconds']:.0f} s: server {received['cores']:.2f} cores; "
        f"clients {received['client_cpu'] / received['seconds']:.2f} cores"
    )
    print(f"  memory    {' '.join(f'{at:.0f}' for at in received['memory'])} MB")
    for topic in TOPICS:
        if topic in received:
            one = received[topic]
            print(
                f"  {topic:9} ({one['clients']} clients)  p50 {one['p50']:6.1f} ms  "
                f"p99 {one['p99']:6.1f} ms  worst {one['worst']:7.1f} ms  "
                f"{one['frames']:4.1f} frames/s (most {one['most']})  "
                f"{one['kb_s']:6.0f} kB/s"
            )


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.live", description="From the commit to the client."
    )
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--no-insight", dest="insight", action="store_false", help="without the analyst")
    return parser


def main() -> None:
    asked = arguments().parse_args()
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="live-", dir=OUT))
    try:
        show(asked, run(asked, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

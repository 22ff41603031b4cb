"""`python -m bench.flat [--seconds N --rate N --db sqlite|postgres]`: memory under a steady load.

Steps at a steady rate, in sessions that begin and end, and one webhook on every kind of event there is. The
resident memory of the gateway and of its analyst is read once a second. After a warm-up (a third of the run,
at most five minutes) it must be flat: the mean of the last tenth at most 10 % above that of the first tenth
after the warm-up. Half an hour of it is part of `make soak`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import linear_regression, mean
from typing import Any

import httpx2

from bench.gateway import Gateway
from bench.messages import Mesh
from bench.postgres import database
from bench.report import OUT
from bench.soak import Lost, tell
from observatory.features.webhooks.types_signature import SUBSCRIBABLE

SECONDS, RATE = 1_800.0, 250
TICK_S = 0.2
SESSIONS, RENEWED_S = 100, 20.0  # so many sessions at once, others after so long
TERMINAL = 10  # one step of so many ends its task
WARM = 1 / 3
MAX_WARM_S = 300.0
FLAT = 1.10
SAID_S = 30.0
PROCESSES = ("gateway", "analyst")
SETTINGS = {"egress_allow": "127.0.0.1"}


@dataclass
class Memory:
    """Resident megabytes of one process, by the second since the load began."""

    seconds: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def after(self, begin_s: float, end_s: float) -> list[float]:
        return [size for at, size in zip(self.seconds, self.sizes, strict=True) if begin_s <= at < end_s]

    def growth(self, warm_s: float, whole_s: float) -> float:
        """The end compared with the time after the warm-up."""
        tenth = (whole_s - warm_s) / 10
        return mean(self.after(whole_s - tenth, whole_s)) / mean(self.after(warm_s, warm_s + tenth))

    def slope(self, warm_s: float) -> float:
        """Megabytes a minute after the warm-up."""
        part = [(at, size) for at, size in zip(self.seconds, self.sizes, strict=True) if at >= warm_s]
        return linear_regression([at for at, _ in part], [size for _, size in part]).slope * 60


class Receiver:
    """Takes whatever it is sent."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(204)
                self.send_header("content-length", "0")
                self.end_headers()
                outer.taken += 1

            def log_message(self, *_: object) -> None: ...

        outer = self
        self.taken = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/events"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


def rss_mb(gateway: Gateway) -> dict[str, float]:
    """Of the gateway and of its child, the analyst."""
    assert gateway.process is not None
    children = gateway.process.children()
    found = {"gateway": gateway.rss_mb()}
    return found | ({"analyst": children[0].memory_info().rss / 1e6} if children else {})


def subscribe(http: httpx2.Client, url: str) -> None:
    body: dict[str, Any] = {"name": "every kind of event", "url": url, "events": sorted(SUBSCRIBABLE)}
    made = http.post("/v1/webhooks/out", json=body | {"rate_per_min": 60_000})
    if made.status_code != 201:
        raise Lost(f"the webhook was refused: {made.text}")


class Load:
    """Steps of one agent mesh: so many in each tick."""

    def __init__(self, gateway: Gateway, rate: int) -> None:
        headers = {"authorization": f"Bearer {gateway.key}", "content-type": "application/x-ndjson"}
        self._http = httpx2.Client(
            base_url=f"http://127.0.0.1:{gateway.port}", headers=headers, timeout=60, trust_env=False
        )
        self._rate, self._seed, self._renew_at = rate, 0, 0.0
        self.sent = 0

    def step(self, now_s: float) -> None:
        if now_s >= self._renew_at:
            self._seed, self._renew_at = self._seed + 1, now_s + RENEWED_S
            self._mesh = Mesh(SESSIONS, seed=self._seed)
        bodies = self._mesh.logs(max(1, round(self._rate * TICK_S)))
        last = [one.replace(b'"is_terminal":false', b'"is_terminal":true') for one in bodies[::TERMINAL]]
        bodies[::TERMINAL] = last
        answer = self._http.post("/v1/messages", content=b"\n".join(bodies))
        codes = {json.loads(line)["code"] for line in answer.text.splitlines()}
        if codes != {202}:
            raise Lost(f"messages were not accepted: {codes or answer.text}")
        self.sent += len(bodies)


def run(gateway: Gateway, seconds: float, rate: int) -> dict[str, Memory]:
    receiver, memory = Receiver(), {name: Memory() for name in PROCESSES}
    credentials = json.loads((gateway.folder / "credentials.json").read_text())
    headers = {"authorization": f"Bearer {credentials['admin_key']}"}
    with httpx2.Client(base_url=credentials["url"], headers=headers, trust_env=False) as http:
        subscribe(http, receiver.url)
    load, began = Load(gateway, rate), time.monotonic()
    measured, said = began, began
    ticks = 0
    while (now := time.monotonic()) < began + seconds:
        load.step(now - began)
        ticks += 1
        if now >= measured:
            measured = now + 1.0
            for name, size in rss_mb(gateway).items():
                memory[name].seconds.append(now - began)
                memory[name].sizes.append(size)
        if now >= said:
            said = now + SAID_S
            sizes = ", ".join(f"{name} {one.sizes[-1]:.0f} MB" for name, one in memory.items() if one.sizes)
            tell(f"{now - began:6.0f} s: {load.sent:,} messages, {receiver.taken:,} webhooks, {sizes}")
        time.sleep(max(0.0, began + ticks * TICK_S - time.monotonic()))
    if not receiver.taken:
        raise Lost("no webhook was delivered: the run proves nothing")
    return memory


def judge(memory: dict[str, Memory], seconds: float) -> bool:
    warm_s, flat = min(seconds * WARM, MAX_WARM_S), True
    for name, one in memory.items():
        grown = one.growth(warm_s, seconds)
        flat = flat and grown <= FLAT
        size, change = mean(one.after(warm_s, seconds)), (grown - 1) * 100
        figures = f"{size:.0f} MB after {warm_s:.0f} s, at most {max(one.sizes):.0f} MB"
        word = "flat" if grown <= FLAT else "NOT FLAT"
        tell(f"{name}: {figures}; {change:+.1f} % at the end, {one.slope(warm_s):+.2f} MB a minute: {word}")
    return flat


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.flat", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="flat-", dir=OUT))
    try:
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(database()) if asked.db == "postgres" else None
            gateway = stack.enter_context(Gateway(folder, db=url, settings=SETTINGS))
            flat = judge(run(gateway, asked.seconds, asked.rate), asked.seconds)
    except Lost as lost:
        print(f"FAILED: {lost}", file=sys.stderr)
        sys.exit(1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if flat else 1)


if __name__ == "__main__":
    main()

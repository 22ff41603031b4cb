"""`python -m bench.idle [--seconds N --rate N --pages N --db sqlite|postgres]`: what a quiet gateway costs.

A gateway with so many pages open (each follows `fleet`, `sessions` and `messages`, as windows do) takes some
messages a second, as single POSTs, each from an agent with a session of its own. Told is the CPU time of the
gateway and of its analyst, as shares of one core and in milliseconds a message: CPU time means something on a
busy machine too. Asked: 6 % of a core at 6 msg/s, both processes together.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import tempfile
import threading
import time
from pathlib import Path

import httpx2
from websockets.asyncio.client import connect

from bench.gateway import Gateway
from bench.messages import Mesh
from bench.postgres import database
from bench.report import OUT, Figure, Report

TOPICS = ("fleet", "sessions", "messages")
RATE, PAGES = 6.0, 1
SESSIONS = 20
WARM_S, SECONDS, QUICK_S = 10.0, 60.0, 15.0
ASKED_PCT = 6.0


class Page:
    """What an open page follows, in a thread of its own."""

    def __init__(self, gateway: Gateway) -> None:
        self._url, self._key = f"ws://127.0.0.1:{gateway.port}/v1/live", gateway.reader_key
        self.frames = 0
        threading.Thread(target=lambda: asyncio.run(self._follow()), daemon=True).start()

    async def _follow(self) -> None:
        headers = {"Authorization": f"Bearer {self._key}"}
        with contextlib.suppress(OSError, EOFError):
            async with connect(self._url, additional_headers=headers, max_size=None, proxy=None) as opened:
                await opened.send(json.dumps({"op": "subscribe", "topics": TOPICS}))
                async for _ in opened:
                    self.frames += 1


def cpu_s(gateway: Gateway) -> dict[str, float]:
    """Of the gateway and of its children, the analyst being the only one."""
    assert gateway.process is not None
    times = [child.cpu_times() for child in gateway.process.children()]
    return {"gateway": gateway.cpu_s(), "analyst": sum(one.user + one.system for one in times)}


def speak(gateway: Gateway, rate: float, seconds: float, mesh: Mesh) -> int:
    """How many messages were taken."""
    headers = {"authorization": f"Bearer {gateway.key}", "content-type": "application/json"}
    url, sent, began = f"http://127.0.0.1:{gateway.port}", 0, time.monotonic()
    with httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as http:
        while (due := began + sent / rate if rate else began + seconds) < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            sent += http.post("/v1/messages", content=mesh.logs(1)[0]).status_code == 202
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return sent


def measured(gateway: Gateway, rate: float, pages: int, seconds: float) -> tuple[dict[str, float], int]:
    """Seconds of CPU by process, and the messages they were for."""
    mesh, open_pages = Mesh(SESSIONS), [Page(gateway) for _ in range(pages)]
    speak(gateway, rate, min(WARM_S, seconds), mesh)
    before = cpu_s(gateway)
    sent = speak(gateway, rate, seconds, mesh)
    after = cpu_s(gateway)
    if rate and any(not page.frames for page in open_pages):
        raise RuntimeError("a page heard nothing: the run proves nothing")
    return {name: after[name] - before[name] for name in after}, sent


def tell(report: Report, gateway: Gateway, rate: float, pages: int, seconds: float) -> None:
    used, sent = measured(gateway, rate, pages, seconds)
    total = 100 * sum(used.values()) / seconds
    parts = ", ".join(f"{name} {100 * value / seconds:.1f} %" for name, value in used.items())
    each = f", {1_000 * sum(used.values()) / sent:.1f} ms a message" if sent else ""
    name = f"idle, {rate:g} msg/s, {pages} page{'' if pages == 1 else 's'}"
    asked = ASKED_PCT if rate <= RATE and pages <= PAGES else None
    report.add(Figure(name, "% of a core", total, asked, is_limit=True, note=f"({parts}{each})"))


def idle(report: Report, folder: Path) -> None:
    """For `python -m bench`: alone, and with a page open at the rate that is asked for."""
    seconds = QUICK_S if report.quick else SECONDS
    with Gateway(folder / "idle") as gateway:
        tell(report, gateway, 0.0, 0, seconds)
        tell(report, gateway, RATE, PAGES, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="idle-", dir=OUT))
    try:
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(database()) if asked.db == "postgres" else None
            gateway = stack.enter_context(Gateway(folder, db=url))
            tell(Report(quick=False), gateway, asked.rate, asked.pages, asked.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

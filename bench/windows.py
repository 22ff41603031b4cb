"""`python -m bench.windows [--minutes N] [--only NAME]`: the windows' figures, in a real Chromium.

Measured: scripting time a frame with 1,000 agents and 3,000 edges while 500 messages a second
arrive, the bytes of a first load, the time to a first useful picture, memory that stays flat, a graph of
2,000 steps. Gateway, senders and browser share this machine: the load is printed next to the figures.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.gateway import Gateway
from bench.report import OUT, Figure, Report
from bench.windows_mesh import EDGES, Mesh
from bench.windows_trace import CATEGORIES, read
from tools import chromium, windows

AGENTS, RATE, STEPS, TRACED_S = 1_000, 500.0, 2_000, 10
CANVAS = "canvas[role=application]"
# Chunks that come with the map of the world and with the first session graph.
LATER = ("geo", "countries", "Session", "elk", "Dag", "layout")
LONGEST = """
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.longest = Math.max(window.longest ?? 0, one.duration);
}).observe({ type: "longtask", buffered: true });
localStorage.setItem("observatory:tour", "seen");
"""


def opened(browser: Browser, gateway: Gateway, path: str | None = None) -> Page:
    url = f"http://127.0.0.1:{gateway.port}"
    asked = {"authorization": f"Bearer {gateway.reader_key}"}
    link = httpx2.post(f"{url}/v1/logins", json={}, headers=asked, trust_env=False).json()["url"]
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(LONGEST)
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("nav")
    if path is not None:
        page.goto(url + path)
    return page


def drawn(page: Page, agents: int, edges: int = 0) -> None:
    page.wait_for_function(
        f"""() => {{ const map = document.querySelector('{CANVAS}')?.topology;
        return map && map.counts().agents >= {agents} && map.counts().edges >= {edges}
          && map.stats().drawn > 0; }}""",
        timeout=180_000,
    )


def weigh(report: Report) -> None:
    """Entry, its static imports, its styles, the fleet's own chunk: what the first view needs."""
    manifest: dict[str, dict[str, Any]] = json.loads((windows.BUILT / "manifest.json").read_text("utf-8"))
    wanted = ["index.html", next(name for name in manifest if name.endswith("fleet/Fleet.tsx"))]
    files: set[str] = set()
    while wanted:
        chunk = manifest[wanted.pop()]
        if chunk["file"] not in files:
            files.update([chunk["file"], *chunk.get("css", [])])
            wanted += chunk.get("imports", [])
    page = len(gzip.compress((windows.BUILT / "index.html").read_bytes()))
    sizes = {name: _packed(windows.BUILT / name) for name in sorted(files)}
    report.details["first_load"] = sizes
    kept = sum(size for name, size in sizes.items() if not Path(name).name.startswith(LATER))
    report.add(Figure("first load, gzipped, before graph and map", "kB", (kept + page) / 1000, 1_000, True))


def _packed(path: Path) -> int:
    gz = path.with_name(path.name + ".gz")
    return gz.stat().st_size if gz.exists() else path.stat().st_size


def first_paint(report: Report, browser: Browser, folder: Path) -> None:
    """From an empty cache to a map that shows 60 agents; the browser itself is running."""
    with Gateway(folder / "paint").start() as gateway:
        mesh = Mesh(f"http://127.0.0.1:{gateway.port}", gateway.key, 60, 6)
        mesh.fill()
        mesh.run()
        took = []
        for _ in range(5):
            page = opened(browser, gateway)
            cold = page.context.new_cdp_session(page)
            cold.send("Network.setCacheDisabled", {"cacheDisabled": True})
            page.goto(f"http://127.0.0.1:{gateway.port}/fleet", wait_until="commit")
            drawn(page, 60)
            took.append(page.evaluate("performance.now()") / 1000)
            page.context.close()
        mesh.stop()
    report.details["first_paint_s"] = took
    report.add(Figure("first useful picture, 60 agents", "s", statistics.median(took), 2, True))


def frames(report: Report, browser: Browser, folder: Path, minutes: float) -> None:
    with Gateway(folder / "frames").start() as gateway:
        mesh = Mesh(f"http://127.0.0.1:{gateway.port}", gateway.key, AGENTS, RATE)
        mesh.fill()
        mesh.run()
        page = opened(browser, gateway, "/fleet?level=agent")
        drawn(page, AGENTS, int(AGENTS * EDGES * 0.95))
        before, began = mesh.sent, time.monotonic()
        page.evaluate(f"document.querySelector('{CANVAS}').topology.resetStats()")
        browser.start_tracing(page=page, categories=CATEGORIES)
        page.wait_for_timeout(TRACED_S * 1_000)
        found = read(browser.stop_tracing())
        arrived = (mesh.sent - before) / (time.monotonic() - began)
        own = page.evaluate(f"document.querySelector('{CANVAS}').topology.stats()")
        report.details["frames"] = {"trace": found.__dict__, "engine": own, "arrived_per_s": arrived}
        name = f"{AGENTS:,} agents, {AGENTS * EDGES:,} edges, {arrived:.0f} msg/s"
        report.add(Figure(f"{name}: scripting a frame, median", "ms", found.median_ms, 8, True))
        report.add(Figure(f"{name}: scripting a frame, p95", "ms", found.p95_ms, 16, True))
        report.add(Figure("the map's own part of it, median", "ms", own["medianMs"]))
        report.add(Figure("frames a second (no GPU here)", "fps", found.per_second))
        _memory(report, page, minutes)
        mesh.stop()
        page.context.close()


def _memory(report: Report, page: Page, minutes: float) -> None:
    """Live heap after a collection; flat is: the last third of the time is not above the first."""
    session = page.context.new_cdp_session(page)
    heaps = []
    for _ in range(10):
        page.wait_for_timeout(minutes * 6_000)
        heaps.append(_heap(session))
    report.details["heap_mb"] = heaps
    first, last = statistics.median(heaps[:3]), statistics.median(heaps[-3:])
    grown = (last / first - 1) * 100
    report.add(Figure(f"live heap over {minutes:g} min, growth", "%", grown, 10, True, f"({last:.0f} MB)"))


def _heap(session: CDPSession) -> float:
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    received = session.send("Runtime.getHeapUsage")
    return float(received["usedSize"]) / 1_000_000


def graph(report: Report, browser: Browser, folder: Path) -> None:
    with Gateway(folder / "graph").start() as gateway:
        mesh = Mesh(f"http://127.0.0.1:{gateway.port}", gateway.key, 10, 1)
        session = mesh.session_of(STEPS)
        page = opened(browser, gateway, f"/sessions/{session}")
        page.wait_for_selector("[data-testid=session-graph][data-laid-ms]", timeout=60_000)
        page.wait_for_function("document.querySelectorAll('.react-flow__node').length > 0", timeout=60_000)
        there = float(page.evaluate("performance.now()"))
        laid = float(page.get_attribute("[data-testid=session-graph]", "data-laid-ms") or "nan")
        page.wait_for_timeout(2_000)
        longest = float(page.evaluate("window.longest ?? 0"))
        shown = page.evaluate("document.querySelectorAll('.react-flow__node').length")
        report.details["graph"] = {"laid_ms": laid, "longest_task_ms": longest, "cards_in_view": shown}
        report.add(Figure(f"session graph of {STEPS:,} steps, opened to cards", "ms", there, 2_000, True))
        report.add(Figure("its layout alone", "ms", laid))
        report.add(Figure("the page's longest task meanwhile", "ms", longest))
        mesh.stop()
        page.context.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.windows", description="The windows' figures.")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long memory is watched; 10 is asked")
    parser.add_argument("--only", action="append", choices=["weigh", "paint", "frames", "graph"])
    asked = parser.parse_args()
    windows.build()
    report, folder = Report(quick=asked.minutes < 10), Path(tempfile.mkdtemp(prefix="bench-windows-"))
    found = chromium.find()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.path, args=list(found.arguments), env={**os.environ, **found.environment}
        )
        parts: dict[str, Callable[[], None]] = {
            "weigh": lambda: weigh(report),
            "paint": lambda: first_paint(report, browser, folder),
            "graph": lambda: graph(report, browser, folder),
            "frames": lambda: frames(report, browser, folder, asked.minutes),
        }
        for name, measure in parts.items():
            if not asked.only or name in asked.only:
                report.say(f"\n{name} (load {os.getloadavg()[0]:.1f} before)")
                measure()
        browser.close()
    shutil.rmtree(folder, ignore_errors=True)
    report.say(f"\n{report.table()}\n\nwritten to {report.write(OUT / 'windows.json')}")
    return 1 if any(one.verdict in ("short", "missing") for one in report.figures) else 0


if __name__ == "__main__":
    sys.exit(main())

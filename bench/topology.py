"""The map in a real browser: what a frame costs its page, at sizes the product promises.

    cd ui && npx vite --port 5173 &          (or any server of ui/)
    python -m bench.topology --url http://127.0.0.1:5173 [--seconds 10]

Drives ui/bench/topology.html, which feeds the real engine a made-up mesh as the topic `fleet` would send it.
Scripting is the CPU time of the page's main thread in animation frames, timers and events (trace events,
`tdur`), so that a busy machine does not count against the map; the wall time of the engine's own drawing
stands beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

CASES = (
    ("60 agents, 160 edges, 40 msg/s", "agents=60&edges=160&rate=40", ""),
    ("1,000 agents, 3,000 edges, 500 msg/s", "agents=1000&edges=3000&rate=500", ""),
    ("the same, dragged", "agents=1000&edges=3000&rate=500", "drag"),
    ("the same, zoomed", "agents=1000&edges=3000&rate=500", "zoom"),
    ("the same, layers morph", "agents=1000&edges=3000&rate=500", "morph"),
    ("5,000 agents grouped, 8,000 edges", "agents=5000&edges=8000&rate=500", ""),
    ("1,000 agents, nothing happens", "agents=1000&edges=3000&still&well", ""),
)
SCRIPTS = {"FireAnimationFrame", "TimerFire", "EventDispatch"}


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--url", default="http://127.0.0.1:5173")
    ask.add_argument("--seconds", type=float, default=8.0)
    ask.add_argument("--only", default="", help="cases whose name holds this")
    ask.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    asked = ask.parse_args()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("playwright is not installed: uv sync --group dev")
    print(f"{'case':40} {'level':8} {'frames/s':>8} {'script ms/frame':>22} {'own drawing (wall)':>20}")
    print(f"{'':40} {'':8} {'':>8} {'median':>11}{'p95':>11} {'median':>10}{'p95':>10}")
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=asked.chromium, args=["--no-sandbox", "--disable-gpu"], headless=True
        )
        for name, query, gesture in CASES:
            if asked.only not in name:
                continue
            found = measure(browser, f"{asked.url}/bench/topology.html?{query}", gesture, asked.seconds)
            own = found["stats"]
            print(
                f"{name:40} {found['level']:8} {found['fps']:8.0f} "
                f"{found['median']:11.2f}{found['p95']:11.2f} {own['medianMs']:10.2f}{own['p95Ms']:10.2f}",
                flush=True,
            )
        browser.close()


def measure(browser: Any, url: str, gesture: str, seconds: float) -> dict[str, Any]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(url)
    page.wait_for_function("window.bench && window.bench.map.stats().frames > 0")
    page.wait_for_timeout(2_500)
    page.evaluate("bench.map.resetStats()")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        browser.start_tracing(page=page, path=path, categories=["devtools.timeline"])
        act(page, gesture, seconds)
        browser.stop_tracing()
        events = json.loads(path.read_bytes())["traceEvents"]
    took, lasted_s = frames(events)
    found = page.evaluate("({stats: bench.map.stats(), level: bench.map.shownLevel})")
    page.close()
    found |= {"fps": len(took) / lasted_s, "median": share(took, 0.5), "p95": share(took, 0.95)}
    return dict(found)


def act(page: Any, gesture: str, seconds: float) -> None:
    for step in range(int(seconds * 10)):
        if gesture == "drag":
            if step == 0:
                page.mouse.move(1390, 860)
                page.mouse.down()
            page.mouse.move(1100 + 200 * (step % 20 - 10) / 10, 700 + (step % 7) * 20, steps=3)
        elif gesture == "zoom":
            page.mouse.move(720, 450)
            page.mouse.wheel(0, -60 if step % 40 < 20 else 60)
        elif gesture == "morph" and step % 12 == 0:
            page.evaluate("bench.map.layer = bench.map.layer === 'logical' ? 'geographic' : 'logical'")
        page.wait_for_timeout(60 if gesture in ("drag", "zoom") else 100)


def frames(events: list[dict[str, Any]]) -> tuple[list[float], float]:
    """CPU ms of scripts from one animation frame to the next, frame by frame; and over how long."""
    scripts = [one for one in events if one.get("ph") == "X" and one["name"] in SCRIPTS and "tdur" in one]
    page = max(
        {(one["pid"], one["tid"]) for one in scripts}, key=lambda key: cost(scripts, key), default=None
    )
    mine = sorted((one for one in scripts if (one["pid"], one["tid"]) == page), key=lambda one: one["ts"])
    found: list[float] = []
    for one in mine:
        if one["name"] == "FireAnimationFrame":
            found.append(0.0)
        if found:
            found[-1] += one["tdur"] / 1_000
    times = [one["ts"] for one in mine if one["name"] == "FireAnimationFrame"]
    return found, max(0.001, (times[-1] - times[0]) / 1e6) if len(times) > 1 else 1.0


def cost(scripts: list[dict[str, Any]], key: tuple[int, int]) -> int:
    return sum(one["tdur"] for one in scripts if (one["pid"], one["tid"]) == key)


def share(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


if __name__ == "__main__":
    main()

"""`python -m bench.archive_window [--count N] [--folder F]`: the archive's window over a large archive.

A few thousand messages go through the real gateway and are indexed by it; their rows are then copied,
archive and index alike, under numbers of their own until there are so many. Measured are the real door and a
real page in Chromium: first results (≤ 500 ms wanted at 1,000,000) and the longest frame while it is scrolled
through thousands of rows (≤ 50 ms wanted). The copies are no chain: such a store is for reading only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import httpx2
from playwright.sync_api import Page, sync_playwright

from bench.gateway import Gateway
from bench.report import OUT, Figure, Report
from bench.windows import opened
from bench.windows_mesh import Mesh
from tools import chromium

SEED = 5_000  # messages that are really sent
FAR = 10_000_000  # numbers of copies begin here: the gateway goes on writing below
SCROLLED_S = 8
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("the newest", {}),
    ("filters", {"q": "status:success type:decision_log"}),
    ("one agent", {"q": "agent:agent-00007"}),
    ("words in every message", {"q": "work item"}),
    ("a rare word", {"q": "copy77"}),
    ("meaning", {"q": '~"the next task"'}),
    ("over time, of all", {"group": "time"}),
    ("over time, a word", {"q": "work", "group": "time"}),
    ("by agent", {"q": "work", "group": "agent"}),
)
# Between two frames of one scroll; the first belongs to whatever was before.
SCROLL = """async (seconds) => {
  const box = document.querySelector('table[aria-label="Messages"]').parentElement;
  const gaps = []; let last = null; const end = performance.now() + seconds * 1000;
  await new Promise((done) => {
    const step = (now) => {
      if (last !== null) gaps.push(now - last);
      last = now;
      box.scrollTop += 112;
      now < end ? requestAnimationFrame(step) : done();
    };
    requestAnimationFrame(step);
  });
  const rows = document.querySelectorAll('tr[data-index]').length;
  return { gaps: gaps.slice(1), top: box.scrollTop, rows };
}"""


def sent(folder: Path) -> None:
    with Gateway(folder).start() as gateway:
        mesh = Mesh(f"http://127.0.0.1:{gateway.port}", gateway.key, 300, 0)
        while mesh.sent < SEED:
            mesh.say(500)
        until = time.monotonic() + 120
        while _ask(gateway, {})["behind"] > 0 and time.monotonic() < until:
            time.sleep(0.5)
        mesh.stop()


def copied(folder: Path, count: int) -> None:
    """Rows of the archive and of the index under new numbers; each copy has a word of its own."""
    main, derived = sqlite3.connect(folder / "observatory.db"), sqlite3.connect(folder / "derived.db")
    for base in (main, derived):
        base.execute("PRAGMA foreign_keys = OFF")
        base.execute("PRAGMA synchronous = OFF")
    ((lowest, highest, held),) = main.execute("SELECT min(key), max(key), count(*) FROM messages")
    width, mask = highest - lowest + 1, (1 << 40) - 1
    low, rows = lowest & mask, f"BETWEEN {lowest} AND {highest}"
    (tenant,) = derived.execute("SELECT DISTINCT tenant_id FROM insight_steps").fetchone()
    (place,) = derived.execute("SELECT place FROM insight_places WHERE tenant_id = ?", (tenant,)).fetchone()
    own = f"tenant_id = '{tenant}' AND seq BETWEEN {low} AND {highest & mask}"
    ((first_ns, last_ns),) = derived.execute(f"SELECT min(at_ns), max(at_ns) FROM insight_steps WHERE {own}")
    copies = max(0, (count - held + held - 1) // held)
    for copy in range(1, copies + 1):
        by, later = FAR + (copy - 1) * width, copy * (last_ns - first_ns + 1_000_000)
        _copy(main, "audit_log", {"key": f"key + {by}", "ts_ns": f"ts_ns + {later}"}, f"key {rows}")
        name = f"substr(message_id, 1, 34) || printf('%06x', {copy})"
        _copy(main, "messages", {"key": f"key + {by}", "message_id": name}, f"key {rows}")
        _copy(main, "payloads", {"key": f"key + {by}"}, f"key {rows}")
        numbered = {"seq": f"seq + {by}"}
        _copy(derived, "insight_steps", numbered | {"at_ns": f"at_ns + {later}"}, own)
        body = f"body || ' copy{copy}'"
        _copy(derived, "insight_documents", numbered | {"body": body}, own)
        derived.execute(
            f"INSERT INTO insight_words (rowid, body) SELECT ({place} << 40) + seq + {by}, {body} "
            f"FROM insight_documents WHERE {own}"
        )
        _copy(derived, "insight_vectors", numbered | {"turn": f"turn + {by}"}, own)
        if copy % 10 == 0:
            main.commit()
            derived.commit()
            print(f"  {copy * held:,} …", flush=True)
    reached = FAR + copies * width + low
    derived.execute(
        "UPDATE insight_cursors SET seq = ? WHERE name = 'fold' AND tenant_id = ?", (reached, tenant)
    )
    for base in (main, derived):
        base.commit()
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()


def _copy(base: sqlite3.Connection, table: str, changed: dict[str, str], where: str) -> None:
    names = [row[1] for row in base.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(changed.get(name, name) for name in names)
    base.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {table} WHERE {where}")


def _ask(gateway: Gateway, asked: dict[str, str], limit: int = 100) -> dict[str, int]:
    answer = httpx2.get(
        f"http://127.0.0.1:{gateway.port}/v1/search",
        params={"limit": limit, **asked},
        headers={"authorization": f"Bearer {gateway.reader_key}"},
        timeout=120,
        trust_env=False,
    )
    answer.raise_for_status()
    received: dict[str, int] = answer.json()
    return received


def door(report: Report, gateway: Gateway, count: int, each: int) -> None:
    _ask(gateway, {"q": '~"warm up"'})  # vectors are read once
    assert gateway.process is not None
    for name, asked in QUESTIONS:
        took, worked = [], []
        for _ in range(each):
            busy, began = sum(gateway.process.cpu_times()[:2]), time.perf_counter()
            received = _ask(gateway, asked)
            took.append((time.perf_counter() - began) * 1e3)
            worked.append((sum(gateway.process.cpu_times()[:2]) - busy) * 1e3)
        busy = statistics.median(worked)
        note = f"(at most {max(took):,.0f}; processor {busy:,.0f} ms; hits {received['hits']:,})"
        limit = 500 if count >= 1_000_000 else None
        report.add(Figure(f"door, {name}", "ms", statistics.median(took), limit, True, note))


def window(report: Report, gateway: Gateway, page: Page) -> None:
    session = page.context.new_cdp_session(page)
    page.goto(f"http://127.0.0.1:{gateway.port}/forensics")
    page.wait_for_selector("tr[data-index]")
    came = page.evaluate(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('/v1/search'))"
        ".map((one) => one.duration)[0]"
    )
    report.add(Figure("page, the answer with the first results", "ms", came, 500, True))
    page.wait_for_timeout(2_000)
    found = page.evaluate(SCROLL, SCROLLED_S)
    gaps = sorted(found["gaps"])
    report.details["scroll"] = found
    scrolled = found["top"] / 28
    over = sum(1 for gap in gaps if gap > 50)
    note = (
        f"({over} of {len(gaps)} frames over 50 ms; {scrolled:,.0f} rows passed, {found['rows']} in the page)"
    )
    report.add(Figure("scrolling, longest frame", "ms", gaps[-1], 50, True, note))
    report.add(Figure("scrolling, frame p99", "ms", gaps[int(len(gaps) * 0.99)], 50, True))
    session.send("HeapProfiler.collectGarbage")
    heap = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize : 0") / 1e6
    report.add(Figure("page memory after it", "MB", heap))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.archive_window", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="messages (default 1,000,000)")
    parser.add_argument("--folder", type=Path, help="keep the store there, and use what is there")
    parser.add_argument("--each", type=int, default=7, help="questions of each kind")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="archive-", dir=OUT))
    report = Report(quick=False)
    try:
        if not (folder / "copied").exists():
            sent(folder)
            copied(folder, asked.count)
            (folder / "copied").touch()
        report.say(f"archive of {asked.count:,} (load {os.getloadavg()[0]:.1f})")
        found = chromium.find()
        with Gateway(folder).start() as gateway, sync_playwright() as playwright:
            door(report, gateway, asked.count, asked.each)
            browser = playwright.chromium.launch(
                executable_path=found.path,
                args=list(found.arguments),
                env={**os.environ, **found.environment},
            )
            window(report, gateway, opened(browser, gateway))
            browser.close()
        print(report.table())
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

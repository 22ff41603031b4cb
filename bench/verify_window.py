"""`python -m bench.verify_window [--count N]`: a whole tenant's log verified in the browser, events a second.

Messages go through the real gateway; when its log is signed, a real page in Chromium fetches every record,
makes links, leaves and root again and compares them with the signed checkpoint (≥ 20,000 events/s wanted,
fetching included).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import httpx2
from playwright.sync_api import sync_playwright

from bench.gateway import Gateway
from bench.load import Client
from bench.rates import measure, ndjson
from bench.report import OUT, Figure, Report
from bench.windows import opened
from tools import chromium

ASKED = 20_000
HELD = re.compile(r"([\d,]+) (?:of [\d,]+ )?events held")


def signed(gateway: Gateway, count: int) -> None:
    """Until a checkpoint holds them all."""
    asked = {"authorization": f"Bearer {gateway.reader_key}"}
    url, until = f"http://127.0.0.1:{gateway.port}/v1/audit/log", time.monotonic() + 60
    while httpx2.get(url, headers=asked, trust_env=False).json()["size"] < count:
        assert time.monotonic() < until, "the log is not signed so far"
        time.sleep(0.2)


def verified(report: Report, folder: Path, count: int, rounds: int) -> None:
    found = chromium.find()
    # Without an analyst: it would fold 100,000 messages at the same time, on one of two cores.
    with Gateway(folder, settings={"insight": "false"}).start() as gateway:
        with Client() as client:
            measure(gateway, client, ndjson(gateway, count))
        signed(gateway, count)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=found.path,
                args=list(found.arguments),
                env={**os.environ, **found.environment},
            )
            page = opened(browser, gateway, "/forensics/log")
            rates = []
            for _ in range(rounds):
                page.reload()
                page.get_by_role("button", name="Verify the whole log").click()
                began = time.perf_counter()
                received = page.get_by_text(HELD).first
                received.wait_for(timeout=600_000)
                took = time.perf_counter() - began
                counted = HELD.search(received.inner_text())
                assert counted is not None
                rates.append(int(counted[1].replace(",", "")) / took)
                report.say(f"  {counted[1]} events in {took:.2f} s")
            browser.close()
    note = f"(of {', '.join(f'{rate:,.0f}' for rate in rates)})"
    report.add(
        Figure("whole log verified in the browser", "events/s", statistics.median(rates), ASKED, note=note)
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verify_window", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="messages (default 100,000)")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir=OUT))
    report = Report(quick=False)
    try:
        report.say(f"a log of {asked.count:,} (load {os.getloadavg()[0]:.1f})")
        verified(report, folder, asked.count, asked.rounds)
        print(report.table())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

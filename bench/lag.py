"""`python -m bench.lag [--rate N --seconds N]`: how far the derived store is behind while messages come in.

Messages of the pipeline's bench at a steady rate; `GET /v1/insight/status` is asked twice a second. Printed
are the lag in seconds and messages while it runs, how long the rest takes afterwards, and the processor time
of the analyst for a message. The issue wants at most 5 s at 2,000 msg/s.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import httpx2
import psutil

from bench.dag import folded
from bench.gateway import Gateway
from bench.messages import Mesh

LINES = 200


def run(rate: int, seconds: int, folder: Path | None = None) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as fresh, Gateway(folder or Path(fresh) / "data") as gateway:
        keys = json.loads(((folder or Path(fresh) / "data") / "credentials.json").read_text())
        client = httpx2.Client(base_url=f"http://127.0.0.1:{gateway.port}", timeout=60, trust_env=False)
        agent = {"authorization": f"Bearer {keys['agent_key']}", "content-type": "application/x-ndjson"}
        admin = {"authorization": f"Bearer {keys['admin_key']}"}
        folded(client, admin)  # what others left behind is none of this
        logs = Mesh(200).logs(rate * seconds)
        lags: list[tuple[float, int]] = []
        began, asked = time.monotonic(), 0.0
        for number, start in enumerate(range(0, len(logs), LINES)):
            # A steady rate: what is late is not waited for.
            time.sleep(max(0.0, began + number * LINES / rate - time.monotonic()))
            answer = client.post(
                "/v1/messages", content=b"\n".join(logs[start : start + LINES]), headers=agent
            )
            assert answer.status_code == 200, answer.status_code
            if time.monotonic() - asked > 0.5:
                asked = time.monotonic()
                status = client.get("/v1/insight/status", headers=admin).json()
                lags.append((status["lag_s"] or 0.0, status["lag_messages"]))
        sent_s = time.monotonic() - began
        folded(client, admin)
        rest_s = time.monotonic() - began - sent_s
        spent = sum(sum(one.cpu_times()[:2]) for one in psutil.Process(gateway.pid).children())
        return {
            "rate": len(logs) / sent_s,
            "lag_s": max(lag for lag, _ in lags),
            "lag_messages": max(count for _, count in lags),
            "rest_s": rest_s,
            "analyst_us": spent / len(logs) * 1e6,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="the data of a gateway to send them to as well")
    given = parser.parse_args()
    found = run(given.rate, given.seconds, given.folder)
    print(
        f"{found['rate']:,.0f} msg/s: at most {found['lag_s']:.1f} s, {found['lag_messages']:,.0f} messages"
        f" behind (asked: 5 s at 2,000 msg/s), {found['rest_s']:.1f} s to catch up, "
        f"{found['analyst_us']:.0f} µs of the analyst's processor time a message"
    )


if __name__ == "__main__":
    main()

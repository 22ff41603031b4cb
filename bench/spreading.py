"""`python -m bench.spreading [--steps N] [--sessions N] [--others N]`: both at their doors

Real messages through the real gateway: a first step claims something, every later one hangs on the step
before it in its session and adds a fact; every third says the claim again. `--others` are messages of a mesh
that has nothing to do with it, sent between them. Told are the time from the question to the last byte of
the answer and the gateway's processor time, containment, names and the first page with its evidence included;
and how long the analyst took to fold it all. The issue wants ≤ 1 s over 100,000 steps, of either, with
1,000,000 messages. `bench.infection` measures other shapes, without the door.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import Any

import httpx2

from bench.dag import folded, send
from bench.gateway import Gateway
from bench.messages import Mesh
from bench.report import OUT

CLAIM = "The fiscal year of NVDA ends on December 31"
LINES = 10_000


def step(number: int, sessions: int, count: int) -> bytes:
    place, above = number % sessions, max(0, number - sessions)
    parent = f"ses-{above % sessions}/step-{above}" if number else None
    found = f"what step {number} of {count} found at place {number * 7_919 % count}"
    body = {
        "meta": {
            "trace_id": "5f" * 16, "step_id": f"step-{number}", "session_id": f"ses-{place}",
            "cluster_id": "eu-1", "parent_step_id": parent, "timestamp": "2026-01-01T00:00:00Z",
        },
        "identity": {
            "agent_id": f"agent-{place}-{number // sessions % 2}", "agent_type": "planner",
            "capability_version": "v1.0.0",
        },
        "cognition": {"intent": f"step {number}: look at what was found before", "confidence_score": 0.8},
        "action": {"tool_call": "search", "tool_input": f"what of {number}?", "status": "success"},
        "state_delta": {
            "tokens_consumed": 120, "cumulative_session_cost": round(number * 0.001, 6),
            "added_to_memory": [found if number % 3 else CLAIM],
        },
    }  # fmt: skip
    return json.dumps(body).encode()


def fill(http: httpx2.Client, key: str, asked: argparse.Namespace) -> None:
    """Those of the spread evenly among the others."""
    mesh, each = Mesh(200), round(asked.others / asked.steps)
    for start in range(0, asked.steps, LINES // (each + 1)):
        numbers = range(start, min(start + LINES // (each + 1), asked.steps))
        mine = [step(number, asked.sessions, asked.steps) for number in numbers]
        others = mesh.logs(len(mine) * each) if each else []
        mixed = ([one, *others[place * each : (place + 1) * each]] for place, one in enumerate(mine))
        send(http, key, list(chain.from_iterable(mixed)))


def timed(gateway: Gateway, http: httpx2.Client, path: str, each: int) -> dict[str, Any]:
    reader = {"authorization": f"Bearer {gateway.reader_key}", "accept-encoding": "identity"}
    taken, busy, received = [], [], {}
    for _ in range(each):
        cpu, mark = gateway.cpu_s(), time.perf_counter()
        answer = http.get(path, headers=reader)
        taken.append(time.perf_counter() - mark)
        busy.append(gateway.cpu_s() - cpu)
        assert answer.status_code == 200, answer.text
        received = answer.json()
    assert not received["truncated"]
    times = {"best": min(taken), "middle": sorted(taken)[each // 2], "worst": max(taken)}
    return times | {"processor": min(busy), "counts": received["counts"]}


def run(asked: argparse.Namespace, folder: Path) -> dict[str, dict[str, Any]]:
    is_new = not (folder / "credentials.json").exists()
    with Gateway(folder) as gateway:
        http = httpx2.Client(base_url=f"http://127.0.0.1:{gateway.port}", timeout=300, trust_env=False)
        reader = {"authorization": f"Bearer {gateway.reader_key}"}
        began = time.perf_counter()
        if is_new:
            fill(http, gateway.key, asked)
            print(f"  sent in {time.perf_counter() - began:.0f} s", flush=True)
        cursor = folded(http, reader)
        print(f"  folded in {time.perf_counter() - began:.0f} s, up to number {cursor:,}", flush=True)
        blast = "/v1/steps/step-0/blast?session=ses-0"
        origin = http.get(f"{blast}&limit=1", headers=reader).json()["origin"]["sequence_number"]
        found = {
            "infection": timed(gateway, http, f"/v1/facts/fct_{origin}-0/infection", asked.each),
            "blast": timed(gateway, http, blast, asked.each),
        }
    for received in found.values():
        assert received["counts"]["strong_steps"] + received["counts"]["weak_steps"] == asked.steps
    return found


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.spreading", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="number of steps (default 100,000)")
    parser.add_argument("--sessions", type=int, default=100, help="number of sessions (default 100)")
    parser.add_argument("--others", type=int, default=0, help="messages of others between them")
    parser.add_argument("--folder", type=Path, help="keep the data there, and use what is there")
    parser.add_argument("--each", type=int, default=7, help="how often each is asked for")
    return parser


def main() -> None:
    asked = arguments().parse_args()
    OUT.mkdir(exist_ok=True)
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="spreading-", dir=OUT))
    try:
        for name, received in run(asked, folder).items():
            print(
                f"{name} {received['counts']}: {received['best']:.2f} s at best, "
                f"{received['middle']:.2f} in the middle, "
                f"{received['worst']:.2f} at worst, {received['processor']:.2f} s of the gateway's processor "
                "(≤ 1 s wanted over 100,000)"
            )
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

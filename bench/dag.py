"""`python -m bench.dag [--steps N] [--others N]`: how long the graph of a large session takes, over HTTP.

A session of so many steps, each with a parent named: chains, forks of three, joins; eight agents. `--others`
puts as many messages of other sessions beside it. Told are the time from the question to the last byte of the
answer, the gateway's processor time for it, and how large it is. The issue wants ≤ 500 ms for 10,000 steps.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import httpx2

from bench.gateway import Gateway
from bench.messages import Mesh
from bench.report import OUT

LINES = 500
SESSION = "ses-large"
AGENTS = 8
TRACE = "5f" * 16


def step(number: int) -> bytes:
    """Three go on from every tenth, and every tenth is where they meet."""
    if number % 10 == 0:
        parents = [number - 1, number - 2, number - 3] if number else []
    else:
        parents = [number - 3 if number % 10 > 3 else number - number % 10]
    body = {
        "meta": {
            "trace_id": TRACE, "step_id": f"step-{number}", "session_id": SESSION, "cluster_id": "eu-1",
            "parent_step_id": None, "parent_step_ids": [f"step-{parent}" for parent in parents],
            "timestamp": "2026-01-01T00:00:00Z",
        },
        "identity": {
            "agent_id": f"agent-{number % AGENTS}", "agent_type": "planner", "capability_version": "v1.0.0",
        },
        "cognition": {
            "intent": f"step {number}: look at what was found before and say what follows from it",
            "confidence_score": 0.8, "reasoning_chain": ["look", "weigh", f"say {number}"],
        },
        "action": {"tool_call": "search", "tool_input": f"what of {number}?", "status": "success"},
        "state_delta": {"tokens_consumed": 120, "cumulative_session_cost": round(number * 0.001, 6)},
    }  # fmt: skip
    return json.dumps(body).encode()


def send(http: httpx2.Client, key: str, lines: list[bytes]) -> None:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/x-ndjson"}
    for start in range(0, len(lines), LINES):
        answer = http.post("/v1/messages", content=b"\n".join(lines[start : start + LINES]), headers=headers)
        refused = [line for line in answer.text.splitlines() if json.loads(line)["code"] != 202]
        assert answer.status_code == 200 and not refused, refused[:1] or answer.text


def folded(http: httpx2.Client, reader: dict[str, str]) -> int:
    """Waits for the analyst; the number it came to."""
    while (status := http.get("/v1/insight/status", headers=reader).json())["lag_messages"]:
        time.sleep(0.2)  # polled: the analyst does not report when it is done
    return int(status["cursor"])


def run(folder: Path, steps: int, others: int, each: int) -> dict[str, float]:
    with Gateway(folder) as gateway:
        http = httpx2.Client(base_url=f"http://127.0.0.1:{gateway.port}", timeout=120, trust_env=False)
        reader = {"authorization": f"Bearer {gateway.reader_key}", "accept-encoding": "identity"}
        send(http, gateway.key, [step(number) for number in range(steps)])
        if others:
            send(http, gateway.key, Mesh(200).logs(others))
        folded(http, reader)
        taken, busy = [], []
        for _ in range(each):
            cpu, mark = gateway.cpu_s(), time.perf_counter()
            answer = http.get(f"/v1/sessions/{SESSION}/dag", headers=reader)
            taken.append(time.perf_counter() - mark)
            busy.append(gateway.cpu_s() - cpu)
        graph = answer.json()
        assert len(graph["nodes"]) == steps and not graph["truncated"], answer.text[:200]
    return {
        "edges": len(graph["edges"]), "megabytes": len(answer.content) / 1e6, "best": min(taken) * 1e3,
        "middle": sorted(taken)[each // 2] * 1e3, "worst": max(taken) * 1e3, "processor": min(busy) * 1e3,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.dag", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="number of steps (default 10,000)")
    parser.add_argument("--others", type=int, default=0, help="messages of other sessions in addition")
    parser.add_argument("--each", type=int, default=7, help="how often it is asked for")
    parser.add_argument("--folder", type=Path, help="the data folder of a gateway to add them to")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="dag-", dir=OUT))
    try:
        found = run(folder, asked.steps, asked.others, asked.each)
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(
        f"graph of {asked.steps:,} steps, {found['edges']:,.0f} edges, {found['megabytes']:.1f} MB: "
        f"{found['best']:.0f} ms at best, {found['middle']:.0f} ms in the middle, {found['worst']:.0f} ms at "
        f"worst, {found['processor']:.0f} ms of the gateway's processor (≤ 500 ms wanted for 10,000)"
    )


if __name__ == "__main__":
    main()

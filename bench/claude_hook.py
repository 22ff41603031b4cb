"""How long one hook of Claude Code takes: its process from start to end, against a running gateway."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from pathlib import Path

from bench.gateway import Gateway
from bench.report import Figure, Report

LIMIT_MS = 200.0
HOOK = (sys.executable, "-P", "-m", "observatory.sdk.integrations.claude_code")


def claude_hook(report: Report, folder: Path) -> None:
    n = 10 if report.quick else 50
    with Gateway(folder / "claude-hook") as gateway:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OBSERVATORY_", "PYTHONDONT"))
        }
        environment = kept | {"OBSERVATORY_DATA": str(gateway.folder), "NO_PROXY": "*"}
        session_id = str(uuid.uuid4())
        bare = _median_ms(n, environment, [sys.executable, "-c", "pass"], session_id)
        hook = _median_ms(n, environment, [*HOOK], session_id)
    report.say(f"  python alone {bare:.0f} ms; a hook with its two round trips {hook:.0f} ms (median of {n})")
    report.add(
        Figure(
            "claude hook, start to end",
            "ms",
            hook,
            LIMIT_MS,
            is_limit=True,
            note=f"(python alone {bare:.0f})",
        )
    )


def _median_ms(n: int, environment: dict[str, str], command: list[str], session_id: str) -> float:
    took = []
    for i in range(n + 1):  # the first one fills caches
        tool = {
            "tool_name": "Bash",
            "tool_input": {"command": "ls"},
            "tool_use_id": f"toolu_{len(command)}_{i}",
        }
        event = {"hook_event_name": "PreToolUse", "session_id": session_id, "cwd": "/tmp", **tool}
        began = time.perf_counter()
        done = subprocess.run(
            command, input=json.dumps(event).encode(), env=environment, check=True, capture_output=True
        )
        took.append((time.perf_counter() - began) * 1000)
        assert not done.stdout and not done.stderr, done
    return statistics.median(took[1:])

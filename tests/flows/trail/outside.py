"""Hands on a trail outside the gateway: make lines, verify, be refused, and bend what is stored."""

from __future__ import annotations

import json
import sqlite3
import uuid
from pathlib import Path
from typing import Any

from tests.flows.server import observatory
from tests.samples import decision_log

HOME = "(SELECT tenant_no << 40 FROM chain_heads WHERE tenant_id = 'tnt_default')"
ROW = f"WHERE key = {HOME} + 90"


def lines(count: int, agents: int = 7) -> list[bytes]:
    sessions = [str(uuid.uuid4()) for _ in range(5)]
    made = []
    for number in range(count):
        log = decision_log(
            meta={"step_id": str(uuid.uuid4()), "session_id": sessions[number % 5]},
            identity={"agent_id": f"worker-{number % agents}"},
            # No figure of its own: what is told about one would come between the messages.
            cognition={"intent": f"Straße {number} 🙂", "entropy_score": None},
            state_delta={"cumulative_session_cost": number / 100},
        )
        made.append(json.dumps(log, ensure_ascii=False).encode())
    return made


def manifest_of(path: Path) -> Path:
    return path.with_name(path.name + ".manifest.json")


def verified(*words: str) -> tuple[int, dict[str, Any]]:
    run = observatory("verify", *words, "--json")
    assert "observatory:" not in run.stderr
    return run.returncode, json.loads(run.stdout)


def refused(*words: str) -> str:
    run = observatory(*words)
    assert run.returncode == 1 and run.stdout == "", run
    (sentence,) = run.stderr.splitlines()
    return sentence


def bend(folder: Path, *statements: str) -> None:
    """What someone with the file in their hands could do: no trigger stops them."""
    connection = sqlite3.connect(folder / "observatory.db", isolation_level=None)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        assert connection.execute(statement).rowcount == 1, statement
    connection.close()

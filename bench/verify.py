"""`python -m bench.verify [--events 400000]`: how fast a trail is proved, every check on, with two processes.

The trail is written by the ledger's own code straight into the real tables: a chain, records of the usual
length, leaves, and a checkpoint signed over all but the last few. What is measured is `observatory verify`:
density, chain, record hash, leaf, head, the log's root and the signature under it.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import OUT, Report
from bench.verification import TENANT, verify
from observatory.ledger import note, tiles
from observatory.ledger.chain import ChainHead, link
from observatory.store.migrations.migrate import migrate_sqlite

ORIGIN = f"log.example/{TENANT}"
KEY = note.Signer(ORIGIN, bytes(range(32)))
EVENTS, STEP, UNSIGNED = 400_000, 10_000, 100
AGENT = "agt_0a46a664-d965-55a5-9db9-f1e6c7c633f3"


def event(number: int) -> dict[str, Any]:
    """What the gateway writes of a delivered decision log."""
    conversation = f"cc173d52-81bd-42e7-a5f9-{number:012x}"
    return {
        "attributes": {
            "av.conversation.id": conversation,
            "av.delivery.latency_ms": 12,
            "av.message.digest": f"sha256:{number:064x}",
            "av.message.priority": "normal",
            "av.message.type": "decision_log",
            "av.sender.agent_id": "researcher-alpha-9",
            "av.sender.entity_id": AGENT,
            "av.sender.entity_type": "agent",
            "av.step.id": conversation,
        },
        "audit_event_id": f"evt_01a1e39d-2fb8-7701-95f0-{number:012x}",
        "body": {
            "event_type": "message_delivered",
            "message_id": f"msg_01a1e39d-2fb8-7701-95f0-{number:012x}",
            "message_type": "decision_log",
            "summary": "decision_log from researcher-alpha-9: serp_search success",
        },
        "observed_timestamp": "2026-11-16T09:08:11.832832106Z",
        "parent_span_id": "94e777c685284900",
        "resource": {
            "av.entity.type": "agent",
            "av.environment": "bench",
            "av.tenant.id": TENANT,
            "av.trust_level": "unverified",
            "service.instance.id": AGENT,
            "service.name": "observatory",
            "service.version": "0.1.0",
        },
        "severity_number": 9,
        "severity_text": "INFO",
        "span_id": f"{number:016x}",
        "timestamp": "2026-02-16T14:32:00.123456000Z",
        "trace_flags": 1,
        "trace_id": f"cc173d5281bd42e7a5f9{number:012x}",
    }


def filled(path: Path, size: int) -> None:
    migrate_sqlite(path)
    rows = sqlite3.connect(path)
    rows.execute("PRAGMA synchronous=0")
    rows.execute("INSERT INTO tenants VALUES (?, 'Default', 1, NULL)", (TENANT,))
    head, edge, signed = ChainHead.genesis(), tiles.TileEdge(), max(1, size - UNSIGNED)
    for first in range(1, size + 1, STEP):
        made = []
        for number in range(first, min(first + STEP, size + 1)):
            one = link(head, event(number), TENANT)
            head = one.head
            made.append(one)
        rows.executemany(
            "INSERT INTO audit_log VALUES (?, 1, ?, 9, ?, NULL, NULL, ?, ?)",
            [(1 << 40 | one.head.sequence_number, 1, 1 << 40, one.record, one.leaf_hash) for one in made],
        )
        edge.extend([one.leaf_hash for one in made if one.head.sequence_number <= signed])
    values = (TENANT, size, head.event_hash)
    rows.execute("INSERT INTO chain_heads VALUES (?, 1, ?, ?, 0, 0, 0, 0)", values)
    text = note.sign(note.checkpoint(ORIGIN, signed, edge.root()), [KEY])
    rows.execute("INSERT INTO checkpoints VALUES (?, ?, 0, ?, ?, 1)", (TENANT, signed, edge.root(), text))
    row = (TENANT, KEY.key_id.hex(), KEY.public_key, 1, 1)
    rows.execute("INSERT INTO log_keys VALUES (?, ?, ?, ?, ?)", row)
    rows.commit()
    rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    rows.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.verify", description="How fast a trail is proved.")
    parser.add_argument("--events", type=int, default=EVENTS, help="how long the trail is")
    asked = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir=OUT))
    report = Report(quick=False)
    try:
        began = time.monotonic()
        filled(folder / "observatory.db", asked.events)
        report.say(f"  {asked.events:,} events were written in {time.monotonic() - began:.0f} s")
        verify(report, folder / "observatory.db")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say("\n" + report.table())


if __name__ == "__main__":
    main()

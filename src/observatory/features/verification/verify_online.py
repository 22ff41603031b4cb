"""A running gateway, checked from outside: every event it shows is read, and the log it signs made of them.

Read over the live channel, as an export is; nothing of the gateway's own verification takes part. What it
shows to somebody else cannot be seen from here: keep a checkpoint, and hold it against the next one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.cli.gateway_client import Api, Gateway, door_of
from observatory.cli.live import feed
from observatory.cli.terminal import CommandFailed, progress
from observatory.features.verification import verify_log_root as log_check
from observatory.features.verification.verify_log_root import Held, LogFound
from observatory.features.verification.verify_workers import Found, Leaves
from observatory.ledger.export import hashes_of
from observatory.ledger.verify import ChainCheck
from observatory.ledger.verify_log import leaf_hash, leaf_text

PATIENCE_S = 60


class Seen(msgspec.Struct, frozen=True):
    tenant_id: str
    last: int
    found: Found
    log: LogFound


def look(gateway: Gateway, tenant: str | None, kept: Held) -> Seen:
    door = door_of(gateway)
    try:
        me = door.ask("GET", "/v1/whoami")
        if tenant not in (None, me["tenant_id"]):
            raise CommandFailed(f"this key belongs to {me['tenant_id']}; use a key of {tenant}")
        told = door.ask("GET", "/v1/audit/log")
        newest = door.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    finally:
        door.close()
    head = newest[0]["hash_chain"] if newest else {"sequence_number": 0, "event_hash": ""}
    return _checked(door, me["tenant_id"], told, head, kept)


def _checked(door: Api, tenant_id: str, told: Any, head: Any, kept: Held) -> Seen:
    claim = log_check.claimed_by(told["checkpoint"], [key["vkey"] for key in told["vkeys"]])
    sizes, last = log_check.sizes(claim, kept), head["sequence_number"]
    check, leaves = ChainCheck(tenant_id), Leaves(0, sizes)
    with (
        progress(f"verifying {tenant_id}", last) as advance,
        feed(door.url, door.key, ("events",), 0, door.trust) as live,
    ):
        reached = 0
        while reached < last:
            frame = live.frame(PATIENCE_S)
            if frame is None or frame.type == "resync":
                raise CommandFailed("the gateway stopped showing its events before the last one; try again")
            first = frame.seq - len(frame.items) + 1
            page = [(number, bytes(item)) for number, item in enumerate(frame.items, first) if number <= last]
            if not check.feed([(number, record, None) for number, record in page]):
                break
            leaves.add([(number, b"", _leaf(tenant_id, number, record)) for number, record in page])
            reached = frame.seq
            advance(len(page))
    found = Found(check.result((last, head["event_hash"]) if last else None), spans=leaves.spans)
    log = log_check.judged(claim, kept, dict(zip(sizes, leaves.spans, strict=True)), last)
    return Seen(tenant_id, last, found, log)


def _leaf(tenant_id: str, number: int, record: bytes) -> bytes:
    return leaf_hash(leaf_text(tenant_id, number, hashes_of(record)[0], record))

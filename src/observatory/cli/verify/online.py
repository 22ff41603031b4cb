"""Verifies a running gateway from outside: reads every event it serves and recomputes its signed log.

Events are read over the live channel, like an export; none of the gateway's own verification is used. What it
serves to others cannot be seen from here: store a checkpoint and compare it with the next one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.cli.gateway_client import GatewayApi, GatewayOptions, open_api
from observatory.cli.live import feed
from observatory.cli.terminal import CommandFailed, progress
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.log_root import LogCheckResult, TrustedInputs
from observatory.cli.verify.workers import LogLeaves, SegmentResult
from observatory.ledger.export import hashes_of
from observatory.ledger.verify import ChainCheck
from observatory.ledger.verify_log import leaf_hash, leaf_text

PATIENCE_S = 60


class OnlineResult(msgspec.Struct, frozen=True):
    tenant_id: str
    last: int
    found: SegmentResult
    log: LogCheckResult


def verify_gateway(gateway: GatewayOptions, tenant: str | None, trusted: TrustedInputs) -> OnlineResult:
    client = open_api(gateway)
    try:
        me = client.ask("GET", "/v1/whoami")
        if tenant not in (None, me["tenant_id"]):
            raise CommandFailed(f"this key belongs to {me['tenant_id']}; use a key of {tenant}")
        log_info = client.ask("GET", "/v1/audit/log")
        newest = client.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    finally:
        client.close()
    head = newest[0]["hash_chain"] if newest else {"sequence_number": 0, "event_hash": ""}
    return _checked(client, me["tenant_id"], log_info, head, trusted)


def _checked(
    client: GatewayApi, tenant_id: str, log_info: Any, head: Any, trusted: TrustedInputs
) -> OnlineResult:
    claim = log_check.export_claim(log_info["checkpoint"], [key["vkey"] for key in log_info["vkeys"]])
    sizes, last = log_check.needed_sizes(claim, trusted), head["sequence_number"]
    check, leaves = ChainCheck(tenant_id), LogLeaves(0, sizes)
    with (
        progress(f"verifying {tenant_id}", last) as advance,
        feed(client.url, client.key, ("events",), 0, client.trust) as live,
    ):
        reached = 0
        while reached < last:
            frame = live.frame(PATIENCE_S)
            if frame is None or frame.type == "resync":
                raise CommandFailed("the gateway stopped sending its events before the last one; try again")
            first = frame.seq - len(frame.items) + 1
            page = [(number, bytes(item)) for number, item in enumerate(frame.items, first) if number <= last]
            if not check.feed([(number, record, None) for number, record in page]):
                break
            leaves.add([(number, b"", _leaf(tenant_id, number, record)) for number, record in page])
            reached = frame.seq
            advance(len(page))
    found = SegmentResult(check.result((last, head["event_hash"]) if last else None), spans=leaves.spans)
    log = log_check.check_log(claim, trusted, dict(zip(sizes, leaves.spans, strict=True)), last)
    return OnlineResult(tenant_id, last, found, log)


def _leaf(tenant_id: str, number: int, record: bytes) -> bytes:
    return leaf_hash(leaf_text(tenant_id, number, hashes_of(record)[0], record))

"""Verification reports of `observatory verify`: of a data folder, a database, an export or a gateway."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from observatory.cli.gateway_client import GatewayOptions, open_api
from observatory.cli.terminal import CommandFailed, progress
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify import marks as signed_marks
from observatory.cli.verify import online as looking
from observatory.cli.verify.checkpoints import check_stored
from observatory.cli.verify.export import check_export
from observatory.cli.verify.log_root import LOG_CHECKS, LogBreak, LogCheckResult, LogClaim, TrustedInputs
from observatory.cli.verify.rows import TrailHead, open_trail
from observatory.cli.verify.state_report import StateReport
from observatory.cli.verify.thoughts import check_rows
from observatory.cli.verify.workers import PayloadBreak, Segment, SegmentResult, check_range
from observatory.ledger.verify import ChainBreak

ARCHIVE = ("columns", "payloads", "thoughts")


CHECKS = ("density", "chain", "record", "leaf", *ARCHIVE, "head", *LOG_CHECKS, "checkpoints")


PIN = "by the key inside {what}: pin it with --vkey"


OWN = "by the key next to the database"


NO_MARK = "nothing outside of it records how far it was signed: give --checkpoint"


class VerifyReport(msgspec.Struct, kw_only=True):
    """One tenant's verdict; also the JSON answer."""

    tenant_id: str
    valid: bool
    events_verified: int
    from_sequence: int
    to_sequence: int
    first_hash: str | None
    last_hash: str | None
    checks: dict[str, bool | None]
    payloads_checked: int = 0
    payloads_shredded: int = 0
    signed_size: int | None = None
    pinned: bool = False
    own_key: bool = False
    first_break: dict[str, Any] | None = None
    seconds: float = 0.0
    state: StateReport | None = None  # with --state


def of_folder(
    place: str,
    marks: signed_marks.KeyMarks,
    tenant: str | None,
    trusted: TrustedInputs,
    span: tuple[int, int | None],
    workers: int,
    payloads: bool,
) -> list[VerifyReport]:
    """`marks` were read before the record: everything marked by then is in a running gateway's record."""
    reports = []
    for head, claim in read_heads(place, tenant):
        origin = None if claim.checkpoint is None else claim.checkpoint.origin
        held = marks.held(trusted, head.tenant_id, origin) if span == (1, None) else trusted
        reports.append(of_database(place, head, claim, held, span, workers, payloads))
    there = {report.tenant_id for report in reports}
    missing = [] if tenant is not None else [name for name in marks.expected if name not in there]
    return [*reports, *(missing_tenant(name, marks.marks[name].size) for name in missing)]


def read_heads(source: str, tenant: str | None) -> list[tuple[TrailHead, LogClaim]]:
    """Checkpoints are read before the heads: a running gateway signs only what is already in the record."""
    trail = open_trail(source)
    try:
        claims = {
            head.tenant_id: log_check.database_claim(trail.log(head.tenant_id)) for head in trail.heads()
        }
        heads = [head for head in trail.heads() if head.tenant_id in claims]
    finally:
        trail.close()
    chosen = [head for head in heads if tenant in (None, head.tenant_id)]
    if not chosen:
        known = ", ".join(head.tenant_id for head in heads) or "none"
        raise CommandFailed(f"this database has no such tenant; it has: {known}")
    return [(head, claims[head.tenant_id]) for head in chosen]


def of_database(
    source: str,
    head: TrailHead,
    claim: LogClaim,
    trusted: TrustedInputs,
    span: tuple[int, int | None],
    workers: int,
    payloads: bool,
) -> VerifyReport:
    start, requested = span
    last = head.sequence_number if requested is None else requested
    if start > max(last, 1):
        raise CommandFailed(f"--from is past the head of {head.tenant_id}, which is {head.sequence_number}")
    begun = time.perf_counter()
    expected = (head.sequence_number, head.event_hash) if requested is None else None
    sizes = log_check.needed_sizes(claim, trusted) if start == 1 else ()
    with progress(f"verifying {head.tenant_id}", last - start + 1) as advance:
        found = check_range(
            Segment(source, head.tenant_id, start, last, payloads, sizes), workers, expected, advance
        )
    broken: ChainBreak | PayloadBreak | LogBreak | None = found.first_break
    if broken is None and requested is None and head.last_row > head.sequence_number:
        sentence = (
            f"There are rows up to event {head.last_row}, past the head, which is {head.sequence_number}."
        )
        broken = ChainBreak(head.sequence_number + 1, "head", sentence)
    if broken is None and payloads and span == (1, None):
        found.thinking = check_rows(source, head.tenant_id, found.thoughts, last)
        broken = found.thinking if isinstance(found.thinking, LogBreak) else None
    by_size = dict(zip(sizes, found.spans, strict=True))
    log = log_check.check_log(claim, trusted, by_size, head.sequence_number)
    if broken is None and log.first_break is None and claim.checkpoint is not None and span == (1, None):
        publics = (*(key.public for key in claim.keys), *trusted.file_keys)
        stored = check_stored(source, head.tenant_id, last, publics)
        first_break = stored if isinstance(stored, LogBreak) else None
        passed = False if first_break is not None else stored or None
        checks = log.checks | {"checkpoints": passed}
        log = msgspec.structs.replace(log, checks=checks, first_break=first_break)
    seconds = time.perf_counter() - begun
    return make_report(found, broken, log, head.tenant_id, (start, last), payloads, seconds)


def of_export(path: Path, tenant: str | None, trusted: TrustedInputs) -> VerifyReport:
    begun = time.perf_counter()
    manifest, found = check_export(path, trusted)
    if tenant not in (None, manifest.tenant_id):
        raise CommandFailed(f"this export belongs to {manifest.tenant_id}")
    claim = log_check.export_claim(manifest.checkpoint, manifest.vkeys)
    by_size = dict(zip(log_check.needed_sizes(claim, trusted), found.spans, strict=True))
    log = log_check.check_log(claim, trusted, by_size, manifest.to_sequence)
    span = (manifest.from_sequence, manifest.to_sequence)
    seconds = time.perf_counter() - begun
    broken = found.first_break or (found.thinking if isinstance(found.thinking, LogBreak) else None)
    return make_report(found, broken, log, manifest.tenant_id, span, manifest.payloads, seconds)


def of_gateway(gateway: GatewayOptions, tenant: str | None, trusted: TrustedInputs) -> VerifyReport:
    """Everything it serves is read and checked here; nothing is trusted."""
    begun = time.perf_counter()
    seen = looking.verify_gateway(gateway, tenant, trusted)
    seconds = time.perf_counter() - begun
    return make_report(
        seen.found, seen.found.first_break, seen.log, seen.tenant_id, (1, seen.last), False, seconds
    )


def make_report(
    found: SegmentResult,
    broken: ChainBreak | PayloadBreak | LogBreak | None,
    log: LogCheckResult,
    tenant_id: str,
    span: tuple[int, int],
    payloads: bool,
    seconds: float,
) -> VerifyReport:
    result = found.result
    if broken is None and result.last_sequence < span[1]:
        sentence = f"The record ends at event {result.last_sequence}; {span[1]} was requested."
        broken = ChainBreak(result.last_sequence + 1, "density", sentence)
    broken = broken or log.first_break
    checks = {name: getattr(result.held, name, None) for name in CHECKS} | log.checks
    checks["payloads"] = (found.payload_break is None) if payloads and result.events_verified else None
    checks["thoughts"] = None if isinstance(found.thinking, LogBreak) else found.thinking
    if broken is not None and broken.what in checks:
        checks[broken.what] = False
    return VerifyReport(
        tenant_id=tenant_id,
        valid=broken is None,
        events_verified=result.events_verified,
        from_sequence=span[0],
        to_sequence=span[1],
        first_hash=result.first_hash,
        last_hash=result.last_hash,
        checks=checks,
        payloads_checked=found.payloads,
        payloads_shredded=found.shredded,
        signed_size=log.size,
        pinned=log.pinned,
        own_key=log.is_by_own_key,
        first_break=None
        if broken is None
        else {"sequence_number": broken.sequence_number, "what": broken.what, "sentence": broken.sentence},
        seconds=round(seconds, 3),
    )


def by_gateway(where: GatewayOptions, tenant: str | None, span: tuple[int, int | None]) -> VerifyReport:
    gateway = open_api(where)
    try:
        begun = time.perf_counter()
        body = {"tenant_id": tenant, "from_sequence": span[0], "to_sequence": span[1]}
        answer = gateway.ask("POST", "/v1/audit/verify", body)
        seconds = round(time.perf_counter() - begun, 3)
    finally:
        gateway.close()
    names = [name for name in VerifyReport.__struct_fields__ if name in answer and name != "checks"]
    checks = {name: answer["checks"].get(name) for name in CHECKS}
    return VerifyReport(**{name: answer[name] for name in names}, checks=checks, seconds=seconds)


def missing_tenant(tenant_id: str, size: int) -> VerifyReport:
    """The tenant's log was signed, but the database has no such tenant."""
    sentence = f"{size:,} events of {tenant_id} were signed; this database has no such tenant."
    return VerifyReport(
        tenant_id=tenant_id,
        valid=False,
        events_verified=0,
        from_sequence=1,
        to_sequence=0,
        first_hash=None,
        last_hash=None,
        checks=dict.fromkeys(CHECKS) | {"missing_tail": False},
        first_break={"sequence_number": 1, "what": "missing_tail", "sentence": sentence},
    )

"""`observatory verify`: is the trail still what was written? Offline, independent, in parallel.

Exit code 0: everything held. 2: something is broken, and the first break is named. 1: it could not be
checked. A database is opened read-only, while the gateway runs or not. An export, an evidence bundle and a
running gateway are checked by what they show, all of it; `--url` instead lets the gateway check itself, whose
word is only as good as the gateway.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.gateway_client import Gateway, door_of
from observatory.cli.terminal import CommandFailed, progress, say, show_json
from observatory.features.backup.export_file import check_export
from observatory.features.verification import cli_evidence as evidence
from observatory.features.verification import cli_state as state_check
from observatory.features.verification import verify_log_root as log_check
from observatory.features.verification import verify_marks as signed_marks
from observatory.features.verification import verify_online as looking
from observatory.features.verification.state_report import StateReport
from observatory.features.verification.verify_checkpoints import check_stored
from observatory.features.verification.verify_log_root import LOG_CHECKS, Claimed, Held, LogBreak, LogFound
from observatory.features.verification.verify_rows import TrailHead, malformed, open_trail
from observatory.features.verification.verify_thoughts import check_rows
from observatory.features.verification.verify_workers import Found, PayloadBreak, Segment, check_range
from observatory.ledger.verify import Break

ARCHIVE = ("columns", "payloads", "thoughts")
CHECKS = ("density", "chain", "record", "leaf", *ARCHIVE, "head", *LOG_CHECKS, "checkpoints")
WORDS = {True: "held", False: "BROKEN", None: "not checked"}
PIN = "by the key inside {what}: pin it with --vkey"
OWN = "by the key beside the database"
NO_MARK = "nothing outside of it says how far it was signed: bring --checkpoint"
STATE = "--state is of a whole database: name it by --data or --db, without --from, --to, --export and --url"
WHOLE = "--vkey and --checkpoint are held against the whole log; leave --from, --to and --url out"
GONE = "a source is named once: FILE or ADDRESS, or one of --data, --db, --export and --url"


class Report(msgspec.Struct, kw_only=True):
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
    state: StateReport | None = None  # of --state


def verify(
    source: Annotated[
        str | None, Parameter(help="An evidence bundle (.zip), an export, or a gateway's address.")
    ] = None,
    /,
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of a folder.")] = None,
    export: Annotated[Path | None, Parameter(help="An export file; its manifest lies beside it.")] = None,
    url: Annotated[str | None, Parameter(help="Ask this gateway instead of reading its database.")] = None,
    key: str | None = None,
    ca: Annotated[str | None, Parameter(help="PEM of the authority of its certificate.")] = None,
    cert: Annotated[str | None, Parameter(help="PEM of the certificate to show there.")] = None,
    cert_key: Annotated[str | None, Parameter(help="PEM of its key.")] = None,
    tenant: Annotated[str | None, Parameter(help="Only this tenant; without it: all.")] = None,
    from_: Annotated[int, Parameter(name="--from", help="First sequence number.")] = 1,
    to: Annotated[int | None, Parameter(help="Last sequence number; without it: the head.")] = None,
    workers: Annotated[int, Parameter(help="Processes to share the work.")] = 2,
    payloads: Annotated[bool, Parameter(help="Also check the archived bytes.")] = True,
    state: Annotated[
        bool, Parameter(negative=(), help="Also recompute what the windows show, and compare each row.")
    ] = False,
    vkey: Annotated[
        list[str] | None, Parameter(help="The log's verification key, held from elsewhere.", negative=())
    ] = None,
    checkpoint: Annotated[
        Path | None, Parameter(help="An older checkpoint of the log, kept since; the log must go on from it.")
    ] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Check the audit trail: numbers, links, records, leaves, archived bytes, the head and the signed log."""
    if from_ < 1 or (to is not None and to < from_) or workers < 1:
        raise CommandFailed("--from is at least 1, --to not before it, and --workers at least 1")
    if sum(given is not None for given in (source, db or data, export, url)) > 1:
        raise CommandFailed(GONE)
    is_address = source is not None and source.startswith(("http://", "https://"))
    if source is not None and not is_address:
        export = Path(source)
    if (export is not None or is_address) and (from_ != 1 or to is not None):
        raise CommandFailed("this is verified as a whole; leave --from and --to out")
    if (vkey or checkpoint) and (from_ != 1 or to is not None or url is not None):
        raise CommandFailed(WHOLE)
    if state and (source is not None or export is not None or url is not None or (from_, to) != (1, None)):
        raise CommandFailed(STATE)
    kept = log_check.held(vkey or (), checkpoint)
    if export is not None and evidence.is_bundle(export):
        return evidence.verify(export, vkey or (), kept, as_json=json)
    if export is not None:
        reports = [_of_export(export, tenant, kept)]
    elif is_address:
        reports = [
            _of_gateway(Gateway(url=source, key=key, ca=ca, cert=cert, cert_key=cert_key), tenant, kept)
        ]
    elif url is not None:
        where = Gateway(url=url, key=key, ca=ca, cert=cert, cert_key=cert_key)
        reports = [_by_gateway(where, tenant, (from_, to))]
    else:
        settings = settings_module.load({"data": data, "db": db})
        # Of a database that is named alone the folder that is the default may be another deployment's.
        marks = signed_marks.beside(settings, is_certain=db is None or data is not None)
        place = settings.database_url
        reports = of_folder(place, marks, tenant, kept, (from_, to), workers, payloads)
        if state:
            reports = [_with_state(place, report) for report in reports]
        if (from_, to) == (1, None) and all(report.valid for report in reports):
            _refuse_malformed(place)
    if json:
        show_json({"valid": all(report.valid for report in reports), "tenants": reports})
    else:
        for report in reports:
            _show(report)
    return 0 if all(report.valid for report in reports) else 2


def _with_state(place: str, report: Report) -> Report:
    """Of a record that is broken nothing can be recomputed."""
    if not report.valid:
        return report
    found = state_check.check(place, report.tenant_id)
    return msgspec.structs.replace(report, state=found, valid=found.held)


def _refuse_malformed(place: str) -> None:
    """Pages of tables that no check reads, too: what stands there is nobody's word."""
    problem = malformed(place)
    if problem is not None:
        raise CommandFailed(
            f"the record can be read, but the database has malformed pages, so it is not verified: {problem}"
        )


def of_folder(
    place: str,
    marks: signed_marks.Beside,
    tenant: str | None,
    kept: Held,
    span: tuple[int, int | None],
    workers: int,
    payloads: bool,
) -> list[Report]:
    """`marks` were read before: of a running gateway whatever was noted by then is in the record."""
    found = []
    for head, claim in heads(place, tenant):
        origin = None if claim.checkpoint is None else claim.checkpoint.origin
        held = marks.held(kept, head.tenant_id, origin) if span == (1, None) else kept
        found.append(of_database(place, head, claim, held, span, workers, payloads))
    there = {report.tenant_id for report in found}
    gone = [] if tenant is not None else [name for name in marks.expected if name not in there]
    return [*found, *(_gone(name, marks.marks[name].size) for name in gone)]


def _gone(tenant_id: str, size: int) -> Report:
    """Its log was signed, and the database does not even know the tenant."""
    sentence = f"{size:,} events of {tenant_id} were signed; this database has no such tenant."
    return Report(
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


def heads(source: str, tenant: str | None) -> list[tuple[TrailHead, Claimed]]:
    """Checkpoints are read before the heads: a running gateway signs nothing that is not there."""
    trail = open_trail(source)
    try:
        claims = {head.tenant_id: log_check.claimed(trail.log(head.tenant_id)) for head in trail.heads()}
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
    claim: Claimed,
    kept: Held,
    span: tuple[int, int | None],
    workers: int,
    payloads: bool,
) -> Report:
    start, asked = span
    last = head.sequence_number if asked is None else asked
    if start > max(last, 1):
        raise CommandFailed(f"--from lies past the head of {head.tenant_id}, which is {head.sequence_number}")
    begun = time.perf_counter()
    expected = (head.sequence_number, head.event_hash) if asked is None else None
    sizes = log_check.sizes(claim, kept) if start == 1 else ()
    with progress(f"verifying {head.tenant_id}", last - start + 1) as advance:
        found = check_range(
            Segment(source, head.tenant_id, start, last, payloads, sizes), workers, expected, advance
        )
    broken: Break | PayloadBreak | LogBreak | None = found.first_break
    if broken is None and asked is None and head.last_row > head.sequence_number:
        sentence = f"Rows go on to event {head.last_row}, past the head, which is {head.sequence_number}."
        broken = Break(head.sequence_number + 1, "head", sentence)
    if broken is None and payloads and span == (1, None):
        found.thinking = check_rows(source, head.tenant_id, found.thoughts, last)
        broken = found.thinking if isinstance(found.thinking, LogBreak) else None
    by_size = dict(zip(sizes, found.spans, strict=True))
    log = log_check.judged(claim, kept, by_size, head.sequence_number)
    if broken is None and log.first_break is None and claim.checkpoint is not None and span == (1, None):
        publics = (*(key.public for key in claim.keys), *kept.beside)
        stored = check_stored(source, head.tenant_id, last, publics)
        first_break = stored if isinstance(stored, LogBreak) else None
        held = False if first_break is not None else stored or None
        log = msgspec.structs.replace(log, checks=log.checks | {"checkpoints": held}, first_break=first_break)
    seconds = time.perf_counter() - begun
    return _report(found, broken, log, head.tenant_id, (start, last), payloads, seconds)


def _of_export(path: Path, tenant: str | None, kept: Held) -> Report:
    begun = time.perf_counter()
    manifest, found = check_export(path, kept)
    if tenant not in (None, manifest.tenant_id):
        raise CommandFailed(f"this export is of {manifest.tenant_id}")
    claim = log_check.claimed_by(manifest.checkpoint, manifest.vkeys)
    by_size = dict(zip(log_check.sizes(claim, kept), found.spans, strict=True))
    log = log_check.judged(claim, kept, by_size, manifest.to_sequence)
    span = (manifest.from_sequence, manifest.to_sequence)
    seconds = time.perf_counter() - begun
    broken = found.first_break or (found.thinking if isinstance(found.thinking, LogBreak) else None)
    return _report(found, broken, log, manifest.tenant_id, span, manifest.payloads, seconds)


def _of_gateway(gateway: Gateway, tenant: str | None, kept: Held) -> Report:
    """Everything it shows is read and checked here; nothing is believed."""
    begun = time.perf_counter()
    seen = looking.look(gateway, tenant, kept)
    seconds = time.perf_counter() - begun
    return _report(
        seen.found, seen.found.first_break, seen.log, seen.tenant_id, (1, seen.last), False, seconds
    )


def _report(
    found: Found,
    broken: Break | PayloadBreak | LogBreak | None,
    log: LogFound,
    tenant_id: str,
    span: tuple[int, int],
    payloads: bool,
    seconds: float,
) -> Report:
    result = found.result
    if broken is None and result.last_sequence < span[1]:
        sentence = f"The record ends at event {result.last_sequence}; {span[1]} was asked for."
        broken = Break(result.last_sequence + 1, "density", sentence)
    broken = broken or log.first_break
    checks = {name: getattr(result.held, name, None) for name in CHECKS} | log.checks
    checks["payloads"] = (found.payload_break is None) if payloads and result.events_verified else None
    checks["thoughts"] = None if isinstance(found.thinking, LogBreak) else found.thinking
    if broken is not None and broken.what in checks:
        checks[broken.what] = False
    return Report(
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


def _by_gateway(where: Gateway, tenant: str | None, span: tuple[int, int | None]) -> Report:
    gateway = door_of(where)
    try:
        begun = time.perf_counter()
        asked = {"tenant_id": tenant, "from_sequence": span[0], "to_sequence": span[1]}
        answer = gateway.ask("POST", "/v1/audit/verify", asked)
        seconds = round(time.perf_counter() - begun, 3)
    finally:
        gateway.close()
    names = [name for name in Report.__struct_fields__ if name in answer and name != "checks"]
    checks = {name: answer["checks"].get(name) for name in CHECKS}
    return Report(**{name: answer[name] for name in names}, checks=checks, seconds=seconds)


def _show(report: Report) -> None:
    span = f"{report.from_sequence:,}–{report.to_sequence:,}"
    rate = report.events_verified / report.seconds if report.seconds else 0
    if report.first_break is None:
        told = f"{report.tenant_id}: valid, {report.events_verified:,} events ({span})"
        say(f"{told} in {report.seconds:.2f} s, {rate:,.0f} events/s")
    else:
        number, sentence = report.first_break["sequence_number"], report.first_break["sentence"]
        say(f"{report.tenant_id}: BROKEN at event {number:,}: {sentence}")
        say(f"  {report.events_verified:,} events before it were verified")
    for name in CHECKS:
        more = ""
        if name == "payloads" and report.checks[name] is not None and report.payloads_checked:
            more = f"  {report.payloads_checked:,} checked, {report.payloads_shredded:,} shredded by order"
        if name == "head" and report.checks[name] and report.last_hash:
            more = f"  event {report.to_sequence:,}, {report.last_hash}"
        if name == "signature" and report.checks[name] and not report.pinned:
            more = f"  {OWN}" if report.own_key else f"  {PIN.format(what='the trail')}"
        if name == "missing_tail" and report.checks[name] is None and report.signed_size is not None:
            more = f"  {NO_MARK}"
        if name == "log_root" and report.checks[name] and report.signed_size is not None:
            more = f"  {report.signed_size:,} events are under a signed checkpoint"
        say(f"  {name:<12} {WORDS[report.checks[name]]}{more}")
    if report.state is not None:
        _show_state(report.tenant_id, report.state)


def _show_state(tenant_id: str, state: StateReport) -> None:
    rows = sum(state.tables.values())
    if state.held:
        told = f"{tenant_id}: state held, {rows:,} rows of {len(state.tables)} tables recomputed"
        say(f"{told} from {state.events:,} events in {state.seconds:.2f} s")
    else:
        say(f"{tenant_id}: STATE DIFFERS: {state.sentence}")
    for one in state.not_checked:
        say(f"  not checked  {one}")

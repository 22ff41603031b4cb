"""`observatory verify`: checks that the audit trail is what was written. Offline, independent, in parallel.

Exit code 0: every check passed. 2: something is broken, and the first break is named. 1: it could not be
checked. A database is opened read-only, whether the gateway runs or not. An export, an evidence bundle and a
running gateway are checked by everything they serve; `--url` instead lets the gateway check itself, a result
that is only as trustworthy as the gateway.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.gateway_client import GatewayOptions
from observatory.cli.terminal import CommandFailed, say, show_json
from observatory.cli.verify import evidence
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify import marks as signed_marks
from observatory.cli.verify.report import (
    CHECKS,
    NO_MARK,
    OWN,
    PIN,
    VerifyReport,
    by_gateway,
    of_export,
    of_folder,
    of_gateway,
)
from observatory.cli.verify.rows import malformed_page
from observatory.cli.verify.state_report import StateReport
from observatory.features.verification import cli_state as state_check

RESULTS = {True: "ok", False: "BROKEN", None: "not checked"}
STATE = "--state needs a whole database: use --data or --db, without --from, --to, --export and --url"
WHOLE = "--vkey and --checkpoint apply to the whole log; omit --from, --to and --url"
ONE_SOURCE = "give one source: FILE or ADDRESS, or one of --data, --db, --export and --url"


def verify(
    source: Annotated[
        str | None, Parameter(help="An evidence bundle (.zip), an export, or a gateway's address.")
    ] = None,
    /,
    *,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of a folder.")] = None,
    export: Annotated[Path | None, Parameter(help="An export file, with its manifest next to it.")] = None,
    url: Annotated[str | None, Parameter(help="Ask this gateway instead of reading its database.")] = None,
    key: str | None = None,
    ca: Annotated[str | None, Parameter(help="PEM of the CA of its certificate.")] = None,
    cert: Annotated[str | None, Parameter(help="PEM of the client certificate.")] = None,
    cert_key: Annotated[str | None, Parameter(help="PEM of the client certificate's key.")] = None,
    tenant: Annotated[str | None, Parameter(help="Only this tenant (default: all).")] = None,
    from_: Annotated[int, Parameter(name="--from", help="First sequence number.")] = 1,
    to: Annotated[int | None, Parameter(help="Last sequence number (default: the head).")] = None,
    workers: Annotated[int, Parameter(help="Number of worker processes.")] = 2,
    payloads: Annotated[bool, Parameter(help="Also check the archived bytes.")] = True,
    state: Annotated[
        bool,
        Parameter(
            negative=(), help="Also recompute the current state from the record, and compare each row."
        ),
    ] = False,
    vkey: Annotated[
        list[str] | None, Parameter(help="The log's verification key, from a source you trust.", negative=())
    ] = None,
    checkpoint: Annotated[
        Path | None, Parameter(help="An older checkpoint of the log that you stored; the log must extend it.")
    ] = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Check the audit trail: numbers, links, records, leaves, archived bytes, the head and the signed log."""
    if from_ < 1 or (to is not None and to < from_) or workers < 1:
        raise CommandFailed("--from must be at least 1, --to not less than --from, and --workers at least 1")
    if sum(given is not None for given in (source, db or data, export, url)) > 1:
        raise CommandFailed(ONE_SOURCE)
    is_address = source is not None and source.startswith(("http://", "https://"))
    if source is not None and not is_address:
        export = Path(source)
    if (export is not None or is_address) and (from_ != 1 or to is not None):
        raise CommandFailed("this source is verified as a whole; omit --from and --to")
    if (vkey or checkpoint) and (from_ != 1 or to is not None or url is not None):
        raise CommandFailed(WHOLE)
    if state and (source is not None or export is not None or url is not None or (from_, to) != (1, None)):
        raise CommandFailed(STATE)
    trusted = log_check.trusted_inputs(vkey or (), checkpoint)
    if export is not None and evidence.is_bundle(export):
        return evidence.verify(export, vkey or (), trusted, as_json=json)
    if export is not None:
        reports = [of_export(export, tenant, trusted)]
    elif is_address:
        reports = [
            of_gateway(
                GatewayOptions(url=source, key=key, ca=ca, cert=cert, cert_key=cert_key), tenant, trusted
            )
        ]
    elif url is not None:
        where = GatewayOptions(url=url, key=key, ca=ca, cert=cert, cert_key=cert_key)
        reports = [by_gateway(where, tenant, (from_, to))]
    else:
        settings = settings_module.load({"data": data, "db": db})
        # With --db alone the default folder may belong to another deployment.
        marks = signed_marks.read_marks(settings, is_certain=db is None or data is not None)
        url_of_database = settings.database_url
        reports = of_folder(url_of_database, marks, tenant, trusted, (from_, to), workers, payloads)
        if state:
            reports = [_with_state(url_of_database, report) for report in reports]
        if (from_, to) == (1, None) and all(report.valid for report in reports):
            _refuse_malformed(url_of_database)
    if json:
        show_json({"valid": all(report.valid for report in reports), "tenants": reports})
    else:
        for report in reports:
            _show(report)
    return 0 if all(report.valid for report in reports) else 2


def _with_state(place: str, report: VerifyReport) -> VerifyReport:
    """State cannot be recomputed from a broken record."""
    if not report.valid:
        return report
    state_report = state_check.check(place, report.tenant_id)
    return msgspec.structs.replace(report, state=state_report, valid=state_report.held)


def _refuse_malformed(place: str) -> None:
    """Refuse malformed pages too, of tables that no check reads: their content cannot be trusted."""
    problem = malformed_page(place)
    if problem is not None:
        raise CommandFailed(
            f"the record can be read, but the database has malformed pages, so it is not verified: {problem}"
        )


def _show(report: VerifyReport) -> None:
    span = f"{report.from_sequence:,}–{report.to_sequence:,}"
    rate = report.events_verified / report.seconds if report.seconds else 0
    if report.first_break is None:
        line = f"{report.tenant_id}: valid, {report.events_verified:,} events ({span})"
        say(f"{line} in {report.seconds:.2f} s, {rate:,.0f} events/s")
    else:
        number, sentence = report.first_break["sequence_number"], report.first_break["sentence"]
        say(f"{report.tenant_id}: BROKEN at event {number:,}: {sentence}")
        noun = "event" if report.events_verified == 1 else "events"
        say(f"  {report.events_verified:,} {noun} before it verified")
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
            noun = "event is" if report.signed_size == 1 else "events are"
            more = f"  {report.signed_size:,} {noun} under a signed checkpoint"
        say(f"  {name:<12} {RESULTS[report.checks[name]]}{more}")
    if report.state is not None:
        _show_state(report.tenant_id, report.state)


def _show_state(tenant_id: str, state: StateReport) -> None:
    rows = sum(state.tables.values())
    if state.held:
        line = f"{tenant_id}: state ok, {rows:,} rows of {len(state.tables)} tables recomputed"
        say(f"{line} from {state.events:,} events in {state.seconds:.2f} s")
    else:
        say(f"{tenant_id}: STATE DIFFERS: {state.sentence}")
    for one in state.not_checked:
        say(f"  not checked  {one}")

"""Exports the trail over HTTP as one file, manifest last, like `observatory export` (S702–S705).

Streamed page by page: neither gateway nor browser holds more than a page of it. A plan of its content and
approximate size can be requested first. The export is recorded before the first byte is sent.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Annotated, Any
from weakref import WeakSet

import msgspec
from litestar import Response, Router, get
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from observatory.features.backup.commands import record_export
from observatory.features.backup.types_rows import Exportable
from observatory.features.transparency.queries_checkpoints import or_broken_log, rows_of, vkeys_of
from observatory.http.answers import MAX_SEQUENCE, Refusal, json, time_of
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.ledger import export as form
from observatory.ledger.export import ChainEnd, ExportEntry, ExportManifest, ExportTally, FileDigest
from observatory.ledger.verify import GENESIS
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns
from observatory.settings import VERSION

# A message is at most 1 MiB, so a page is at most some 64 MiB; usually it is 100 kB.
PAGE = 64
SAMPLES = 8  # pages read to estimate the size
AT_ONCE = 3  # of one tenant: a stalled reader blocks no other tenant
NDJSON = "application/x-ndjson"


class _RunningExport:
    """One export in progress; garbage-collected with its stream, even if that was never read."""


_running: defaultdict[str, WeakSet[_RunningExport]] = defaultdict(WeakSet)
First = Annotated[int | None, QueryParameter(name="from", ge=1, le=MAX_SEQUENCE, description="First number.")]
Last = Annotated[
    int | None,
    QueryParameter(name="to", ge=1, le=MAX_SEQUENCE, description="Last number; the head if left out."),
]
Since = Annotated[str | None, QueryParameter(description="From the first event at or after this time.")]
Until = Annotated[str | None, QueryParameter(description="Up to the last event before this time.")]


class ExportPlan(msgspec.Struct, kw_only=True):
    """`bytes_about` is exact when the range was so small that all events were read."""

    tenant_id: str
    from_sequence: int
    to_sequence: int
    events: int
    messages_about: int
    bytes_about: int
    exact: bool
    payloads: bool
    first_at: str
    last_at: str
    head: int
    signed: bool  # a checkpoint of the log comes with it
    file: str


EXPORT_ANSWERS: dict[str, Any] = {"plan_export": ExportPlan}


class _Timed(msgspec.Struct):
    timestamp: str


_time = msgspec.json.Decoder(_Timed).decode


@get("/audit/export/plan", summary="What an export would hold, and how large", operation_id="plan_export")
async def plan_export(
    request: Call,
    app: Here,
    first: First = None,
    last: Last = None,
    since: Since = None,
    until: Until = None,
    payloads: FromQuery[bool] = True,
) -> Response[bytes]:
    """Read from samples spread over the range; nothing is exported and nothing is recorded."""
    who = await require_permission(request, app, "read")
    start, end, head = await _range(app, who.tenant_id, (first, last), (since, until))
    spans = _samples(start, end)
    read = messages = size = 0
    ends: list[ExportEntry] = []
    for low, high in spans:
        page = await _page(app, who.tenant_id, low, high, payloads)
        read += len(page)
        messages += sum(entry.message is not None for entry in page)
        size += len(await asyncio.to_thread(_lines, page))
        ends += page[:1] + page[-1:]
    if not read:
        raise Refusal(409, "trail_broken", "the events of this range cannot be read; run observatory verify")
    wanted = end - start + 1
    return json(
        ExportPlan(
            tenant_id=who.tenant_id,
            from_sequence=start,
            to_sequence=end,
            events=wanted,
            messages_about=round(messages * wanted / read),
            bytes_about=round(size * wanted / read),
            exact=read == wanted,
            payloads=payloads,
            first_at=_time(ends[0].record).timestamp,
            last_at=_time(ends[-1].record).timestamp,
            head=head.sequence_number,
            signed=(await _signed(app, who.tenant_id, start, end))[0] is not None,
            file=_name(who.tenant_id, start, end),
        )
    )


@get(
    "/audit/export",
    summary="The trail of a range as NDJSON, its manifest last",
    operation_id="export_trail",
    media_type=NDJSON,
)
async def export_trail(
    request: Call,
    app: Here,
    first: First = None,
    last: Last = None,
    since: Since = None,
    until: Until = None,
    payloads: FromQuery[bool] = True,
) -> Stream:
    """Check it with `observatory verify FILE`. A file without its last line was cut short."""
    who = await require_permission(request, app, "export")
    tenant_id = who.tenant_id
    if len(_running[tenant_id]) >= AT_ONCE:
        raise Refusal(429, "busy", f"{AT_ONCE} exports of this tenant are in progress; wait until one ends")
    way = _RunningExport()
    _running[tenant_id].add(way)
    start, end, head = await _range(app, tenant_id, (first, last), (since, until))
    checkpoint, vkeys = await _signed(app, tenant_id, start, end)
    await app.command(record_export(who, start, end, payloads, app.clock()))
    manifest = ExportManifest(
        format=form.FORMAT,
        tenant_id=tenant_id,
        from_sequence=start,
        to_sequence=end,
        events=end - start + 1,
        messages=0,
        payloads=payloads,
        shredded=0,
        file=_name(tenant_id, start, end),
        bytes=0,
        sha256="",
        after_hash=GENESIS,
        first_hash=None,
        last_hash=None,
        head=head,
        created_at=from_ns(app.clock()),
        tool=f"observatory {VERSION}",
        checkpoint=checkpoint,
        vkeys=vkeys,
    )
    headers = {
        "content-disposition": f'attachment; filename="{manifest.file}"',
        "x-export-events": str(manifest.events),
    }
    return Stream(_stream(app, manifest, way), media_type=NDJSON, headers=headers)


async def _stream(app: AppState, manifest: ExportManifest, way: _RunningExport) -> AsyncIterator[bytes]:
    """Stream the entries; without the last line, the manifest, when the trail cannot be read to its end."""
    tenant_id, start, end = manifest.tenant_id, manifest.from_sequence, manifest.to_sequence
    tally, digest = ExportTally(start), FileDigest()

    def lines(page: list[ExportEntry]) -> bytes:
        for entry in page:
            tally.add(entry)
        block = _lines(page)
        digest.add(block)
        return block

    try:
        for low in range(start, end + 1, PAGE):
            page = await _page(app, tenant_id, low, min(end, low + PAGE - 1), manifest.payloads)
            yield await asyncio.to_thread(lines, page)
        if tally.events != manifest.events:
            raise form.ExportUnusable(f"the trail ended after {tally.events:,} of {manifest.events:,} events")
        done = msgspec.structs.replace(
            manifest,
            messages=tally.messages,
            shredded=tally.shredded,
            bytes=digest.bytes,
            sha256=digest.text,
            after_hash=tally.after_hash or GENESIS,
            first_hash=tally.first_hash,
            last_hash=tally.last_hash,
        )
        yield form.manifest_line(done)
    finally:
        _running[tenant_id].discard(way)


async def _page(app: AppState, tenant_id: str, low: int, high: int, payloads: bool) -> list[ExportEntry]:
    store = app.store
    assert isinstance(store, Exportable)  # a promise of every store
    page = await store.entries(tenant_id, low, high)
    return page if payloads else form.without_payloads(page)


def _lines(page: list[ExportEntry]) -> bytes:
    return b"".join(form.line_of(entry) + b"\n" for entry in page)


def _samples(start: int, end: int) -> list[tuple[int, int]]:
    """Pages spread evenly, the first and the last among them; all of it when that is no more."""
    if end - start + 1 <= SAMPLES * PAGE:
        return [(low, min(end, low + PAGE - 1)) for low in range(start, end + 1, PAGE)]
    step = (end - start + 1 - PAGE) / (SAMPLES - 1)
    lows = [start + round(n * step) for n in range(SAMPLES)]
    return [(low, min(end, low + PAGE - 1)) for low in lows]


async def _range(
    app: AppState,
    tenant_id: str,
    numbers: tuple[int | None, int | None],
    times: tuple[str | None, str | None],
) -> tuple[int, int, ChainEnd]:
    head = ChainEnd(*await app.store.head(tenant_id))
    if not head.sequence_number:
        raise Refusal(409, "nothing_there", "the trail of this tenant is empty; nothing can be exported yet")
    start, end = numbers[0] or 1, head.sequence_number if numbers[1] is None else numbers[1]
    since = None if times[0] is None else time_of("since", times[0])
    until = None if times[1] is None else time_of("until", times[1])
    if since is not None or until is not None:
        where = EventFilter(since_ns=since, until_ns=until, after=start - 1, before=end + 1)
        oldest = await app.store.events(tenant_id, where, 1, newest_first=False)
        newest = await app.store.events(tenant_id, where, 1, newest_first=True)
        if not oldest or not newest:
            raise Refusal(409, "nothing_there", "this tenant has no event in that time range; choose another")
        start, end = oldest[0].sequence_number, newest[0].sequence_number
    if start > end or end > head.sequence_number:
        detail = f"the trail ends at event {head.sequence_number}; choose from and to within it"
        raise Refusal(400, "bad_range", detail)
    return start, end, head


async def _signed(app: AppState, tenant_id: str, start: int, end: int) -> tuple[str | None, tuple[str, ...]]:
    """The newest checkpoint whose every event is in the file, and the keys of the log."""
    found = await or_broken_log(rows_of(app).checkpoint(tenant_id, end)) if start == 1 else None
    if found is None:
        return None, ()
    return found.note.decode(), tuple(key["vkey"] for key in reversed(await vkeys_of(app, tenant_id)))


def _name(tenant_id: str, start: int, end: int) -> str:
    return f"observatory-{tenant_id}-{start}-{end}.jsonl"


exports_router = Router(path="/v1", route_handlers=[plan_export, export_trail], tags=["Forensic Inspector"])

"""The trail as one file over HTTP, its manifest the last line: what `observatory export` writes (S702–S705).

Streamed page by page: neither gateway nor browser holds more than a page of it. What an export will hold and
about how large it is can be asked before. Whoever takes one is in the record before the first byte leaves.
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

from observatory.features.backup.commands import tell_export
from observatory.features.backup.types_rows import Exportable
from observatory.features.fleet.routes import time_of
from observatory.features.transparency.routes import holding, rows_of, vkeys_of
from observatory.http.answers import MAX_SEQUENCE, Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.ledger import export as form
from observatory.ledger.export import Digest, End, Entry, Manifest, Tally
from observatory.ledger.verify import GENESIS
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns
from observatory.settings import VERSION

# A message is at most 1 MiB, so a page is at most some 64; mostly it is 100 kB.
PAGE = 64
SAMPLES = 8  # pages read to say how large it will be
AT_ONCE = 3  # of one tenant: a reader that stalls holds up nobody else
NDJSON = "application/x-ndjson"


class _Way:
    """One export on its way; gone with its stream, also with one that nobody began to read."""


_running: defaultdict[str, WeakSet[_Way]] = defaultdict(WeakSet)
First = Annotated[int | None, QueryParameter(name="from", ge=1, le=MAX_SEQUENCE, description="First number.")]
Last = Annotated[
    int | None,
    QueryParameter(name="to", ge=1, le=MAX_SEQUENCE, description="Last number; the head if left out."),
]
Since = Annotated[str | None, QueryParameter(description="From the first event of that time on.")]
Until = Annotated[str | None, QueryParameter(description="Up to the last event before that time.")]


class ExportPlan(msgspec.Struct, kw_only=True):
    """`bytes_about` is exact when so few events were asked for that all were read."""

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
    house: Here,
    first: First = None,
    last: Last = None,
    since: Since = None,
    until: Until = None,
    payloads: FromQuery[bool] = True,
) -> Response[bytes]:
    """Read from samples spread over the range; nothing is exported and nothing is recorded."""
    who = await need(request, house, "read")
    start, end, head = await _range(house, who.tenant_id, (first, last), (since, until))
    spans = _samples(start, end)
    read = messages = size = 0
    ends: list[Entry] = []
    for low, high in spans:
        page = await _page(house, who.tenant_id, low, high, payloads)
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
            signed=(await _signed(house, who.tenant_id, start, end))[0] is not None,
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
    house: Here,
    first: First = None,
    last: Last = None,
    since: Since = None,
    until: Until = None,
    payloads: FromQuery[bool] = True,
) -> Stream:
    """Check it with `observatory verify FILE`. A file without its last line was cut short."""
    who = await need(request, house, "export")
    tenant_id = who.tenant_id
    if len(_running[tenant_id]) >= AT_ONCE:
        raise Refusal(429, "busy", f"{AT_ONCE} exports of this tenant are on their way; let one end first")
    way = _Way()
    _running[tenant_id].add(way)
    start, end, head = await _range(house, tenant_id, (first, last), (since, until))
    checkpoint, vkeys = await _signed(house, tenant_id, start, end)
    await house.command(tell_export(who, start, end, payloads, house.clock()))
    manifest = Manifest(
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
        created_at=from_ns(house.clock()),
        tool=f"observatory {VERSION}",
        checkpoint=checkpoint,
        vkeys=vkeys,
    )
    headers = {
        "content-disposition": f'attachment; filename="{manifest.file}"',
        "x-export-events": str(manifest.events),
    }
    return Stream(_stream(house, manifest, way), media_type=NDJSON, headers=headers)


async def _stream(house: House, manifest: Manifest, way: _Way) -> AsyncIterator[bytes]:
    """Breaks off without the last line when the trail cannot be read to its end: no manifest, no promise."""
    tenant_id, start, end = manifest.tenant_id, manifest.from_sequence, manifest.to_sequence
    tally, digest = Tally(start), Digest()

    def lines(page: list[Entry]) -> bytes:
        for entry in page:
            tally.add(entry)
        block = _lines(page)
        digest.add(block)
        return block

    try:
        for low in range(start, end + 1, PAGE):
            page = await _page(house, tenant_id, low, min(end, low + PAGE - 1), manifest.payloads)
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


async def _page(house: House, tenant_id: str, low: int, high: int, payloads: bool) -> list[Entry]:
    store = house.store
    assert isinstance(store, Exportable)  # a promise of every store
    page = await store.entries(tenant_id, low, high)
    return page if payloads else form.bare(page)


def _lines(page: list[Entry]) -> bytes:
    return b"".join(form.line_of(entry) + b"\n" for entry in page)


def _samples(start: int, end: int) -> list[tuple[int, int]]:
    """Pages spread evenly, the first and the last among them; all of it when that is no more."""
    if end - start + 1 <= SAMPLES * PAGE:
        return [(low, min(end, low + PAGE - 1)) for low in range(start, end + 1, PAGE)]
    step = (end - start + 1 - PAGE) / (SAMPLES - 1)
    lows = [start + round(n * step) for n in range(SAMPLES)]
    return [(low, min(end, low + PAGE - 1)) for low in lows]


async def _range(
    house: House, tenant_id: str, numbers: tuple[int | None, int | None], times: tuple[str | None, str | None]
) -> tuple[int, int, End]:
    head = End(*await house.store.head(tenant_id))
    if not head.sequence_number:
        raise Refusal(409, "nothing_there", "the trail of this tenant is empty; nothing can be exported yet")
    start, end = numbers[0] or 1, head.sequence_number if numbers[1] is None else numbers[1]
    since = None if times[0] is None else time_of("since", times[0])
    until = None if times[1] is None else time_of("until", times[1])
    if since is not None or until is not None:
        where = EventFilter(since_ns=since, until_ns=until, after=start - 1, before=end + 1)
        oldest = await house.store.events(tenant_id, where, 1, newest_first=False)
        newest = await house.store.events(tenant_id, where, 1, newest_first=True)
        if not oldest or not newest:
            raise Refusal(409, "nothing_there", "no event of this tenant is of that time; choose another")
        start, end = oldest[0].sequence_number, newest[0].sequence_number
    if start > end or end > head.sequence_number:
        detail = f"the trail ends at event {head.sequence_number}; choose from and to within it"
        raise Refusal(400, "bad_range", detail)
    return start, end, head


async def _signed(house: House, tenant_id: str, start: int, end: int) -> tuple[str | None, tuple[str, ...]]:
    """The newest checkpoint whose every event is in the file, and the keys of the log."""
    found = await holding(rows_of(house).checkpoint(tenant_id, end)) if start == 1 else None
    if found is None:
        return None, ()
    return found.note.decode(), tuple(key["vkey"] for key in reversed(await vkeys_of(house, tenant_id)))


def _name(tenant_id: str, start: int, end: int) -> str:
    return f"observatory-{tenant_id}-{start}-{end}.jsonl"


exports_router = Router(path="/v1", route_handlers=[plan_export, export_trail], tags=["Forensic Inspector"])

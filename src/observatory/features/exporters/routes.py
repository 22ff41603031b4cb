"""Exporters: where this tenant's audit events go by OTLP, how far each is behind, and how to steer it.

Events travel, payloads never: what an agent said stays here, shredded or not. To make, change, move or
remove one takes an admin: it carries the record out of the house.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import FromPath, JSONBody

from observatory.features.exporters import commands as exporting
from observatory.features.exporters import otlp
from observatory.features.exporters.commands import Change, NewExporter
from observatory.features.exporters.transports import problem_of
from observatory.features.exporters.types import (
    ExporterChangeBody,
    ExporterItem,
    ExporterTested,
    NewExporterBody,
    RewindBody,
    Status,
)
from observatory.features.exporters.types_settings import (
    Filters,
    Wire,
    problem_of_filters,
    problem_of_headers,
)
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Principal, Verdict
from observatory.protocol.clock import from_ns, to_ns

Row = dict[str, Any]
ONE = "/exporters/{exporter_id:str}"


@post("/exporters", summary="Send this tenant's events to an OTLP backend", operation_id="create_exporter")
async def create_exporter(request: Call, house: Here, data: JSONBody[NewExporterBody]) -> Response[bytes]:
    who = await need(request, house, "admin")
    _check(house, data.protocol, data.url, data.headers, data.filters)
    after = {"now": None, "start": 0}[data.from_] if isinstance(data.from_, str) else data.from_ - 1
    new = NewExporter(data.name, data.protocol, data.url, data.headers, data.filters, after)
    verdict = await house.command(exporting.create(who, new, house.clock()))
    house.exporter.wake(who.tenant_id)
    return await _told(house, verdict)


def _check(
    house: House, wire: Wire, url: str, headers: dict[str, str] | None, filters: Filters | None
) -> None:
    problem = problem_of(house.exporter.outward, wire, url)
    if problem is not None:
        raise Refusal(422, "bad_url", problem)
    problem = None if headers is None else problem_of_headers(headers, wire)
    if problem is None and filters is not None:
        problem = problem_of_filters(filters)
    if problem is not None:
        raise Refusal(422, "bad_request", problem)


@get("/exporters", summary="Exporters and how far each is behind", operation_id="list_exporters")
async def list_exporters(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await house.store.rows(who.tenant_id, "exporters", removed_ns=None)
    return json({"items": [await _item(house, row) for row in rows], "next_cursor": None})


@get(ONE, summary="An exporter", operation_id="get_exporter")
async def get_exporter(request: Call, house: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(await _item(house, await _row(house, who, exporter_id)))


@patch(ONE, summary="Change an exporter; what is left out stays", operation_id="change_exporter")
async def change_exporter(
    request: Call, house: Here, exporter_id: FromPath[str], data: JSONBody[ExporterChangeBody]
) -> Response[bytes]:
    who = await need(request, house, "admin")
    row = await _row(house, who, exporter_id)
    wire: Wire = data.protocol or row["protocol"]
    kept = msgspec.json.decode(row["headers"], type=dict[str, str])
    headers = kept if data.headers is None else data.headers
    _check(house, wire, data.url or row["url"], headers, data.filters)
    wish = Change(data.name, data.protocol, data.url, data.headers, data.filters)
    act = exporting.change(who, exporter_id, wish, house.clock(), data.was)
    return await _told(house, await house.command(act))


@post(f"{ONE}/pause", status_code=200, summary="Pause an exporter", operation_id="pause_exporter")
async def pause_exporter(request: Call, house: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """Nothing is lost: when it is resumed it goes on from where it was."""
    who = await need(request, house, "admin")
    return await _told(house, await house.command(exporting.halt(who, exporter_id, True, house.clock())))


@post(f"{ONE}/resume", status_code=200, summary="Resume an exporter", operation_id="resume_exporter")
async def resume_exporter(request: Call, house: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """One that is failing is tried again at once."""
    who = await need(request, house, "admin")
    return await _told(house, await house.command(exporting.halt(who, exporter_id, False, house.clock())))


@post(f"{ONE}/rewind", status_code=200, summary="Send again from a number on", operation_id="rewind_exporter")
async def rewind_exporter(
    request: Call, house: Here, exporter_id: FromPath[str], data: JSONBody[RewindBody]
) -> Response[bytes]:
    """Back, or on over what a backend will never take. What was sent is sent again."""
    who = await need(request, house, "admin")
    return await _told(house, await house.command(exporting.rewind(who, exporter_id, data.to, house.clock())))


@post(f"{ONE}/test", status_code=200, summary="Send one test record now", operation_id="test_exporter")
async def test_exporter(request: Call, house: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """It is no event of the record, carries the attribute `av.export.test`, and moves no cursor."""
    who = await need(request, house, "admin")
    row = await _row(house, who, exporter_id)
    if not house.offers.allows((who.tenant_id, exporter_id)):
        raise Refusal(429, "too_often", "this backend was tested too often; test again in a minute")
    answer = await house.exporter.test(row)
    told = ExporterTested(
        exporter_id=exporter_id,
        outcome=answer.kind,
        detail=answer.detail or "the backend took it",
        rejected=answer.rejected,
    )
    return json(told)


@delete(ONE, status_code=200, summary="Remove an exporter", operation_id="remove_exporter")
async def remove_exporter(request: Call, house: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    return await _told(house, await house.command(exporting.remove(who, exporter_id, house.clock())))


async def _row(house: House, who: Principal, exporter_id: str) -> Row:
    rows = await house.store.rows(who.tenant_id, "exporters", exporter_id=exporter_id, removed_ns=None)
    if not rows:
        raise Refusal(404, "not_found", exporting.NOT_FOUND)
    return rows[0]


async def _told(house: House, verdict: Verdict) -> Response[bytes]:
    is_row = isinstance(verdict.answer, dict) and "cursor" in verdict.answer
    answer = await _item(house, verdict.answer) if is_row else verdict.answer
    return json(answer, verdict.code)


async def _item(house: House, row: Row) -> ExporterItem:
    head, _ = await house.store.head(row["tenant_id"])
    lag = max(0, head - row["cursor"])
    status: Status = "behind" if lag else "caught_up"
    if row["state"] == "paused":
        status = "paused"
    elif row["failures"]:
        status = "failing"
    return ExporterItem(
        exporter_id=row["exporter_id"],
        name=row["name"],
        protocol=row["protocol"],
        url=row["url"],
        headers=sorted(msgspec.json.decode(row["headers"])),
        filters=msgspec.json.decode(row["filters"], type=Filters),
        status=status,
        cursor=row["cursor"],
        lag_events=lag,
        lag_s=await _age_s(house, row) if lag else None,
        sent=row["sent"],
        filtered=row["filtered"],
        refused=row["refused"],
        last_sent_at=_at(row["sent_ns"]),
        failures=row["failures"],
        problem=row["problem"],
        problem_at=_at(row["problem_ns"]),
        next_try_at=_at(row["next_ns"]),
        created_at=from_ns(row["created_ns"]),
        created_by=row["created_by"],
        updated_at=from_ns(row["updated_ns"]),
    )


async def _age_s(house: House, row: Row) -> float | None:
    span = EventFilter(after=row["cursor"])
    found = await house.store.events(row["tenant_id"], span, 1, newest_first=False)
    if not found:
        return None
    since_ns = to_ns(otlp.read(found[0].record).observed_timestamp)
    return round(max(0, house.clock() - since_ns) / 1e9, 3)


def _at(ns: int | None) -> str | None:
    return None if ns is None else from_ns(ns)


exporters_router = Router(
    path="/v1",
    route_handlers=[
        create_exporter,
        list_exporters,
        get_exporter,
        change_exporter,
        pause_exporter,
        resume_exporter,
        rewind_exporter,
        test_exporter,
        remove_exporter,
    ],
    tags=["Export"],
)

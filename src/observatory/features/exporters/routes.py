"""Exporter routes: where this tenant's audit events go by OTLP, their lag, and how to control them.

Events are exported, payloads never: message content stays here, shredded or not. Creating, changing, moving
and removing an exporter takes an admin: it sends the record outside.
"""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import FromPath, JSONBody

from observatory.features.exporters import commands as exporting
from observatory.features.exporters import otlp
from observatory.features.exporters.commands import ExporterChange, NewExporter
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
    ExportProtocol,
    Filters,
    problem_of_filters,
    problem_of_headers,
)
from observatory.features.exporters.worker import ExportWorker
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.state import Principal, SubmissionResult
from observatory.protocol.clock import from_ns, to_ns

Row = dict[str, Any]
ONE = "/exporters/{exporter_id:str}"


@post("/exporters", summary="Create an exporter to an OTLP backend", operation_id="create_exporter")
async def create_exporter(request: Call, app: Here, data: JSONBody[NewExporterBody]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    _check_config(app, data.protocol, data.url, data.headers, data.filters)
    after = {"now": None, "start": 0}[data.from_] if isinstance(data.from_, str) else data.from_ - 1
    new = NewExporter(data.name, data.protocol, data.url, data.headers, data.filters, after)
    verdict = await app.command(exporting.create(who, new, app.clock()))
    app.service(ExportWorker).wake(who.tenant_id)
    return await _respond(app, verdict)


def _check_config(
    app: AppState, wire: ExportProtocol, url: str, headers: dict[str, str] | None, filters: Filters | None
) -> None:
    problem = problem_of(app.service(ExportWorker).outward, wire, url)
    if problem is not None:
        raise Refusal(422, "bad_url", problem)
    problem = None if headers is None else problem_of_headers(headers, wire)
    if problem is None and filters is not None:
        problem = problem_of_filters(filters)
    if problem is not None:
        raise Refusal(422, "bad_request", problem)


@get("/exporters", summary="List exporters and their lag", operation_id="list_exporters")
async def list_exporters(request: Call, app: Here) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    rows = await app.store.rows(who.tenant_id, "exporters", removed_ns=None)
    return json({"items": [await _item(app, row) for row in rows], "next_cursor": None})


@get(ONE, summary="Get an exporter", operation_id="get_exporter")
async def get_exporter(request: Call, app: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    return json(await _item(app, await _row(app, who, exporter_id)))


@patch(ONE, summary="Change an exporter; omitted members stay", operation_id="change_exporter")
async def change_exporter(
    request: Call, app: Here, exporter_id: FromPath[str], data: JSONBody[ExporterChangeBody]
) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    row = await _row(app, who, exporter_id)
    wire: ExportProtocol = data.protocol or row["protocol"]
    stored_headers = msgspec.json.decode(row["headers"], type=dict[str, str])
    headers = stored_headers if data.headers is None else data.headers
    _check_config(app, wire, data.url or row["url"], headers, data.filters)
    changed = ExporterChange(data.name, data.protocol, data.url, data.headers, data.filters)
    act = exporting.change(who, exporter_id, changed, app.clock(), data.was)
    return await _respond(app, await app.command(act))


@post(f"{ONE}/pause", status_code=200, summary="Pause an exporter", operation_id="pause_exporter")
async def pause_exporter(request: Call, app: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """Nothing is lost: a resumed exporter continues where it stopped."""
    who = await require_permission(request, app, "admin")
    return await _respond(app, await app.command(exporting.set_paused(who, exporter_id, True, app.clock())))


@post(f"{ONE}/resume", status_code=200, summary="Resume an exporter", operation_id="resume_exporter")
async def resume_exporter(request: Call, app: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """A failing exporter is retried at once."""
    who = await require_permission(request, app, "admin")
    return await _respond(app, await app.command(exporting.set_paused(who, exporter_id, False, app.clock())))


@post(
    f"{ONE}/rewind",
    status_code=200,
    summary="Move an exporter to an event number",
    operation_id="rewind_exporter",
)
async def rewind_exporter(
    request: Call, app: Here, exporter_id: FromPath[str], data: JSONBody[RewindBody]
) -> Response[bytes]:
    """Backward to send events again, or forward past events a backend will never accept."""
    who = await require_permission(request, app, "admin")
    return await _respond(app, await app.command(exporting.rewind(who, exporter_id, data.to, app.clock())))


@post(f"{ONE}/test", status_code=200, summary="Send one test record", operation_id="test_exporter")
async def test_exporter(request: Call, app: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    """The record is no audit event, carries the attribute `av.export.test`, and moves no cursor."""
    who = await require_permission(request, app, "admin")
    row = await _row(app, who, exporter_id)
    if not app.offers.allows((who.tenant_id, exporter_id)):
        raise Refusal(429, "too_often", "this backend was tested too often; retry in a minute")
    answer = await app.service(ExportWorker).test(row)
    tested = ExporterTested(
        exporter_id=exporter_id,
        outcome=answer.kind,
        detail=answer.detail or "the backend accepted it",
        rejected=answer.rejected,
    )
    return json(tested)


@delete(ONE, status_code=200, summary="Remove an exporter", operation_id="remove_exporter")
async def remove_exporter(request: Call, app: Here, exporter_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "admin")
    return await _respond(app, await app.command(exporting.remove(who, exporter_id, app.clock())))


async def _row(app: AppState, who: Principal, exporter_id: str) -> Row:
    rows = await app.store.rows(who.tenant_id, "exporters", exporter_id=exporter_id, removed_ns=None)
    if not rows:
        raise Refusal(404, "not_found", exporting.NOT_FOUND)
    return rows[0]


async def _respond(app: AppState, verdict: SubmissionResult) -> Response[bytes]:
    is_row = isinstance(verdict.answer, dict) and "cursor" in verdict.answer
    answer = await _item(app, verdict.answer) if is_row else verdict.answer
    return json(answer, verdict.code)


async def _item(app: AppState, row: Row) -> ExporterItem:
    head, _ = await app.store.head(row["tenant_id"])
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
        lag_s=await _age_s(app, row) if lag else None,
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


async def _age_s(app: AppState, row: Row) -> float | None:
    span = EventFilter(after=row["cursor"])
    found = await app.store.events(row["tenant_id"], span, 1, newest_first=False)
    if not found:
        return None
    since_ns = to_ns(otlp.read(found[0].record).observed_timestamp)
    return round(max(0, app.clock() - since_ns) / 1e9, 3)


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

"""HTTP routes of dead letters: list, show, retry, discard; one, or up to a hundred at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from litestar import Response, Router, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.types import LettersBody
from observatory.features.schedule.types_rows import Schedule
from observatory.features.webhooks import commands as webhooks
from observatory.http.answers import Cursor, Limit, Refusal, encode_cursor, json, read_id_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline import dead_letters
from observatory.pipeline.state import Command, Principal, SubmissionResult
from observatory.protocol.clock import from_ns

Row = dict[str, Any]
# The command that retries a dead letter, by its kind.
RETRIES: dict[str, Callable[[Principal, Row, int], Command]] = {
    "job": firing.revive,
    "webhook": webhooks.revive,
}


@get("/dead-letters", summary="Dead letters, newest first", operation_id="list_dead_letters")
async def list_dead_letters(
    request: Call,
    app: Here,
    kind: Annotated[str | None, QueryParameter(description="job or webhook.")] = None,
    in_state: Annotated[
        str | None, QueryParameter(name="state", description="dead, retried or discarded.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    before = read_id_cursor(cursor, "dlt_")
    rows = await app.service(Schedule).letters_page(tenant_id, before, limit + 1, kind, in_state)
    more = encode_cursor(rows[limit - 1]["letter_id"].encode()) if len(rows) > limit else None
    return json({"items": [_item(row) for row in rows[:limit]], "next_cursor": more})


@get("/dead-letters/{letter_id:str}", summary="One dead letter", operation_id="get_dead_letter")
async def get_dead_letter(request: Call, app: Here, letter_id: FromPath[str]) -> Response[bytes]:
    tenant_id = (await require_permission(request, app, "read")).tenant_id
    return json(_item(await _letter(app, tenant_id, letter_id)))


@post(
    "/dead-letters/{letter_id:str}/retry",
    summary="Retry a dead letter",
    status_code=200,
    operation_id="retry_dead_letter",
)
async def retry_dead_letter(request: Call, app: Here, letter_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    letter = await _letter(app, who.tenant_id, letter_id)
    return _answer(await app.command(RETRIES[letter["kind"]](who, letter, app.clock())))


@post(
    "/dead-letters/{letter_id:str}/discard",
    summary="Discard a dead letter",
    status_code=200,
    operation_id="discard_dead_letter",
)
async def discard_dead_letter(request: Call, app: Here, letter_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return _answer(await app.command(dead_letters.discard(who, letter_id, app.clock())))


@post(
    "/dead-letters/retry",
    summary="Retry many dead letters",
    status_code=200,
    operation_id="retry_dead_letters",
)
async def retry_dead_letters(request: Call, app: Here, data: JSONBody[LettersBody]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    rows, more = await _selected(app, who.tenant_id, data)
    acts = [RETRIES[row["kind"]](who, row, app.clock()) for row in rows]
    return await _all(app, who, rows, acts, more)


@post(
    "/dead-letters/discard",
    summary="Discard many dead letters",
    status_code=200,
    operation_id="discard_dead_letters",
)
async def discard_dead_letters(request: Call, app: Here, data: JSONBody[LettersBody]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    rows, more = await _selected(app, who.tenant_id, data)
    acts = [dead_letters.discard(who, row["letter_id"], app.clock()) for row in rows]
    return await _all(app, who, rows, acts, more)


async def _letter(app: AppState, tenant_id: str, letter_id: str) -> Row:
    rows = await app.store.rows(tenant_id, "dead_letters", letter_id=letter_id)
    if not rows:
        raise Refusal(404, "not_found", "no dead letter of this tenant has that id")
    return rows[0]


async def _selected(app: AppState, tenant_id: str, data: LettersBody) -> tuple[list[Row], bool]:
    """The letters, newest first, and whether there are more of them. Unknown ids are left out."""
    if data.ids is not None:
        if data.kind is not None or data.source_id is not None:
            raise Refusal(422, "bad_request", "give either ids, or kind and source_id")
        ids = list(dict.fromkeys(data.ids))
        rows = await app.store.rows(tenant_id, "dead_letters", letter_id=ids) if ids else []
        return rows, False
    rows = await app.service(Schedule).letters_page(
        tenant_id, None, data.limit + 1, data.kind, "dead", data.source_id
    )
    return rows[: data.limit], len(rows) > data.limit


async def _all(
    app: AppState, who: Principal, rows: list[Row], acts: list[Command], more: bool
) -> Response[bytes]:
    """Each by itself: one refusal does not stop the rest."""
    verdicts = await app.committer.submit(who.tenant_id, acts) if acts else []
    done, refused = [], []
    for row, verdict in zip(rows, verdicts, strict=True):
        if verdict.code == 200:
            done.append(row["letter_id"])
        else:
            refused.append({"letter_id": row["letter_id"], "reason": verdict.answer.reason})
    return json({"done": done, "refused": refused, "more": more})


def _answer(verdict: SubmissionResult) -> Response[bytes]:
    return json(_item(verdict.answer) if verdict.code == 200 else verdict.answer, verdict.code)


def _item(row: Row) -> Row:
    ended_ns = row["ended_ns"]
    return {
        **{name: row[name] for name in ("letter_id", "kind", "source_id", "source_name", "subject_id")},
        **{name: row[name] for name in ("reason", "preview", "state")},
        "created_at": from_ns(row["created_ns"]),
        "ended_at": None if ended_ns is None else from_ns(ended_ns),
        "ended_by": row["ended_by"],
    }


dead_letters_router = Router(
    path="/v1",
    route_handlers=[
        list_dead_letters,
        retry_dead_letters,
        discard_dead_letters,
        get_dead_letter,
        retry_dead_letter,
        discard_dead_letter,
    ],
    tags=["Schedule"],
)

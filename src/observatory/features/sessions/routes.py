"""The Session Cluster Manager's words: sessions, their cost, whether they go in circles or stand still."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from litestar import Response, Router, get
from litestar.params import FromPath, FromQuery, QueryParameter

from observatory.errors import StoreError
from observatory.features.archive.queries_content import reduced
from observatory.features.fleet.types_membership import Sought
from observatory.features.loops.routes_settings import detectors_of
from observatory.features.sessions.rows import SessionItem, beside, rooms, session_item
from observatory.features.sessions.status import SessionStatus
from observatory.features.sessions.stuck import Stuck, asked_of, stuck_of
from observatory.features.sessions.types_lines import key_of
from observatory.http.answers import Cursor, Limit, Refusal, json, make_cursor, page, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol.identity import canonical_uuid

# Sessions looked at together, and how often, when those of one status are asked for.
LOOK, LOOKS = 1_000, 10
FOUND = 1_000  # goals, and agents, that match a question
Row = dict[str, Any]


class LastWord(NamedTuple):
    """Of a last message what tells whether somebody waits: its type, and its bytes without the rest."""

    kind: str
    raw: bytes | None
    has_ended: bool


class _Action(msgspec.Struct, omit_defaults=True):
    status: str | None = None


class _Control(msgspec.Struct, omit_defaults=True):
    is_terminal: bool | None = None


class _Words(msgspec.Struct, omit_defaults=True):
    action: _Action | None = None
    control: _Control | None = None


class SessionMember(msgspec.Struct, kw_only=True):
    agent_id: str
    entity_id: str
    messages: int
    last_step: str | None
    paused: bool
    cost: float
    tokens: int


class SessionAnswer(SessionItem, kw_only=True):
    tokens: int
    agents: list[SessionMember]


@get("/sessions", summary="Sessions, most recently active first", operation_id="list_sessions")
async def list_sessions(
    request: Call,
    house: Here,
    q: Annotated[
        str | None,
        QueryParameter(
            min_length=1,
            max_length=200,
            description="Begin of the id, text of the goal or of an agent's name.",
        ),
    ] = None,
    status: Annotated[SessionStatus | None, QueryParameter(description="Only those that stand so.")] = None,
    severity: FromQuery[Literal["warning", "loop"] | None] = None,
    stuck: Annotated[bool, QueryParameter(description="Only those that are stuck.")] = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Looks through at most 10,000 sessions when a status is asked for; the cursor leads on."""
    principal = await need(request, house, "read")
    tenant_id, before = principal.tenant_id, read_cursor(cursor)
    sought = None if q is None else await _sought(house, tenant_id, q)

    async def some(past: int | None, most: int) -> list[Row]:
        if sought is None:
            return await house.store.sessions_page(tenant_id, past, most, severity)
        return await rooms(house).sessions_found(tenant_id, sought, past, most, severity)

    if status is not None or stuck:
        return json(await _sifted(house, tenant_id, some, before, limit, status, stuck))
    rows = await some(before, limit + 1)
    last = rows[limit - 1]["last_seq"] if len(rows) > limit else None
    items = await session_items(house, tenant_id, rows[:limit])
    return json(page([*items, *rows[limit:]], limit, last))


@get("/sessions/stuck", summary="Sessions that stand still", operation_id="list_stuck_sessions")
async def list_stuck_sessions(
    request: Call, house: Here, cursor: Cursor = None, limit: Limit = 100
) -> Response[bytes]:
    """Silent, or with an action pending, for longer than `stuck_s`, and not ended; newest first."""
    tenant_id = (await need(request, house, "read")).tenant_id

    async def some(past: int | None, most: int) -> list[Row]:
        return await house.store.sessions_page(tenant_id, past, most, None)

    return json(await _sifted(house, tenant_id, some, read_cursor(cursor), limit, None, True))


@get("/sessions/{session_id:str}", summary="One session with its members", operation_id="get_session")
async def get_session(request: Call, house: Here, session_id: FromPath[str]) -> Response[bytes]:
    principal = await need(request, house, "read")
    wanted = canonical_uuid(session_id) or session_id
    rows = await house.store.rows(principal.tenant_id, "sessions", session_id=wanted)
    if not rows:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    members = await house.store.rows(principal.tenant_id, "members", session_no=rows[0]["session_no"])
    agents = {row["agent_no"]: row for row in await house.store.rows(principal.tenant_id, "agents")}
    (shown,) = await session_items(house, principal.tenant_id, rows)
    # Ruling 19: the latest cumulative figure of each agent, summed over agents.
    shown["cost"] = round(sum(member["cost"] for member in members), 9)
    shown["tokens"] = sum(member["tokens"] for member in members)
    shown["agents"] = [
        {
            "agent_id": agents[member["agent_no"]]["agent_id"],
            "entity_id": agents[member["agent_no"]]["entity_id"],
            "messages": member["messages"],
            "last_step": member["last_step"],
            "paused": member["paused_ns"] is not None,
            "cost": member["cost"],
            "tokens": member["tokens"],
        }
        for member in members
        if member["agent_no"] in agents
    ]
    return json(shown)


async def _sought(house: House, tenant_id: str, q: str) -> Sought:
    """Agents by the text of their name, goals by theirs; where insight is off no goal is found."""
    text = key_of(q)
    agents = await house.store.rows(tenant_id, "agents")
    named = [
        row["agent_no"]
        for row in agents
        if text in key_of(row["agent_id"]) or text in key_of(row["display_name"] or "")
    ]
    numbers: list[int] = []
    with suppress(StoreError):
        numbers = await house.derived.sessions_about(tenant_id, text, FOUND)
    return Sought(canonical_uuid(q) or q.strip(), named[:FOUND], numbers)


async def session_items(house: House, tenant_id: str, rows: list[Row]) -> list[Row]:
    words: dict[int, LastWord] = {}
    standing = await standing_of(house, tenant_id, rows, words)
    around = await beside(house, tenant_id, rows)
    return [
        session_item(row, standing.get(row["session_no"]), around, _has_ended(row, words)) for row in rows
    ]


def _has_ended(row: Row, words: dict[int, LastWord]) -> bool:
    word = words.get(row["last_seq"])
    return word is not None and word.has_ended


async def _sifted(
    house: House,
    tenant_id: str,
    some: Callable[[int | None, int], Awaitable[list[Row]]],
    before: int | None,
    limit: int,
    status: str | None,
    stuck: bool,
) -> Row:
    """Looks through so many sessions and no more; the cursor leads on even when nothing was found."""
    items: list[Row] = []
    for _ in range(LOOKS):
        rows = await some(before, LOOK)
        for row, item in zip(rows, await session_items(house, tenant_id, rows), strict=True):
            before = row["last_seq"]
            if status in (None, item["status"]) and (item["stuck"] or not stuck):
                items.append(item)
                if len(items) == limit:
                    return {"items": items, "next_cursor": make_cursor(row["last_seq"])}
        if len(rows) < LOOK:
            return {"items": items, "next_cursor": None}
    return {"items": items, "next_cursor": None if before is None else make_cursor(before)}


async def standing_of(
    house: House,
    tenant_id: str,
    rows: list[dict[str, Any]],
    known: dict[int, LastWord] | None = None,
) -> dict[int, Stuck]:
    """Which of these stand still, by number. Of those nobody can read in one answer's time nothing is said.

    `known` are last words read before: they are not read again, and those no longer asked for are dropped.
    """
    stuck_ns = (await detectors_of(house, tenant_id)).stuck_s * 1_000_000_000
    before_ns = house.clock() - stuck_ns
    old = [row for row in rows if row["started_ns"] < before_ns]
    if not old:
        return {}
    members: dict[int, list[dict[str, Any]]] = {row["session_no"]: [] for row in old}
    for member in await house.store.rows(tenant_id, "members", session_no=list(members)):
        members[member["session_no"]].append(member)
    asked = {row["session_no"]: asked_of(row, members[row["session_no"]], before_ns) for row in old}
    late = [row for row in old if asked[row["session_no"]]]
    known = {} if known is None else known
    for number in known.keys() - set().union(*asked.values()):
        del known[number]
    known |= await _last_words(house, tenant_id, [row["last_seq"] for row in late], known)
    # Who has ended waits for nobody, so nobody else there is asked.
    going = [row for row in late if row["last_seq"] in known and not known[row["last_seq"]].has_ended]
    others = [number for row in going for number in sorted(asked[row["session_no"]])]
    known |= await _last_words(house, tenant_id, others, known)
    contents = {number: (word.kind, word.raw) for number, word in known.items()}
    found = {
        row["session_no"]: stuck_of(row, members[row["session_no"]], contents, before_ns)
        for row in old
        if row["last_seq"] in contents
    }
    return {number: stuck for number, stuck in found.items() if stuck is not None}


async def _last_words(
    house: House, tenant_id: str, numbers: list[int], known: dict[int, LastWord]
) -> dict[int, LastWord]:
    return await reduced(house, tenant_id, [one for one in numbers if one not in known], _last_word)


def _last_word(kind: str, raw: bytes | None) -> LastWord:
    if raw is None or kind != "decision_log":
        return LastWord(kind, None, False)
    try:
        words = msgspec.json.decode(raw, type=_Words)
    except msgspec.MsgspecError:  # archived bytes were valid once; whatever they are now, nobody is blamed
        return LastWord(kind, None, False)
    ended = words.control is not None and bool(words.control.is_terminal)
    return LastWord(kind, msgspec.json.encode(words), ended)


sessions = Router(
    path="/v1",
    route_handlers=[list_sessions, list_stuck_sessions, get_session],
    tags=["Session Cluster Manager"],
)

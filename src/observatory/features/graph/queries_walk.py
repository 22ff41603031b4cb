"""Walks from session to session as a spread or blast radius grows, with read-ahead.

S938: each round feeds exactly what is wanted, whatever was read ahead, so the result never depends on the
read-ahead. The next sessions are known from the crossings; as many steps are read ahead as were wanted so
far, so that a chain of sessions takes few reads and at most half of what is read is unused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

import numpy as np

from observatory.features.graph.types_spread import Spread, SpreadReads

MAX_ROUNDS = 1_000  # sessions in sequence
MAX_SESSIONS = 500  # per read

Read = Callable[[str, Collection[int], int, int], Awaitable[Spread]]


class SessionFed(Protocol):
    """An infection or a cascade."""

    wanted: set[int]
    loaded: set[int]

    def feed(self, found: Spread, sessions: set[int], /) -> None: ...


async def follow(
    fed: SessionFed, derived: SpreadReads, read: Read, tenant_id: str, after: int, most: int
) -> bool:
    """Until nothing is wanted or the limit is reached; returns whether there was more."""
    parts: dict[int, Spread] = {}  # read ahead
    remaining, used, cut = most, 0, False
    for _ in range(MAX_ROUNDS):
        wanted = set(sorted(fed.wanted)[:MAX_SESSIONS])
        if not wanted or remaining <= 0:
            break
        missing = wanted - parts.keys()
        if missing:
            room = min(used, remaining) - sum(len(part.steps) for part in parts.values())
            more = await _likely(fed, derived, tenant_id, after, missing, parts, room) if room > 0 else set()
            found = await read(tenant_id, missing | more, after, remaining)
            if more and found.cut:  # it is unknown which of them have more
                more, found = set(), await read(tenant_id, missing, after, remaining)
            if found.cut:
                wanted = missing
            elif more or missing != wanted:
                parts |= await asyncio.to_thread(split_by_session, found, missing | more)
        if not parts.keys().isdisjoint(wanted):
            found = merge_sessions([parts.pop(session_no) for session_no in sorted(wanted)])
        remaining, used, cut = remaining - len(found.steps), used + len(found.steps), cut or found.cut
        await asyncio.to_thread(fed.feed, found, wanted)
    return cut or bool(fed.wanted)


async def _likely(
    fed: SessionFed,
    derived: SpreadReads,
    tenant_id: str,
    after: int,
    wanted: set[int],
    parts: Collection[int],
    room: int,
) -> set[int]:
    """The nearest sessions these lead to, with at most `room` steps."""
    found: set[int] = set()
    most = min(MAX_SESSIONS, 8 + 4 * len(fed.loaded))
    for session_no, steps in (await derived.led_to(tenant_id, wanted, after, most)).items():
        if session_no in wanted or session_no in fed.loaded or session_no in parts:
            continue
        room -= steps
        if room < 0 or len(found) + len(wanted) >= MAX_SESSIONS:
            break
        found.add(session_no)
    return found


def split_by_session(found: Spread, sessions: Collection[int]) -> dict[int, Spread]:
    """Session by session."""
    steps, links = _by(found.steps, found.steps.session_no), _by(found.links, found.links.session_no)
    facts, uses = _by(found.facts, found.facts.session_no), _by(found.uses, found.uses.from_no)
    cross_session = _by(found.abroad, found.abroad.from_no)
    return {
        one: Spread(steps(one), links(one), facts(one), uses(one), cross_session(one)) for one in sessions
    }


def merge_sessions(parts: list[Spread]) -> Spread:
    """The parts of several sessions as if they had been read together."""
    if len(parts) == 1:
        return parts[0]
    steps, links, facts, uses, cross_session = (
        type(column[0]).joined(column) for column in list(zip(*parts, strict=True))[:-1]
    )
    steps, links = (one.taken(np.argsort(one.seq, kind="stable")) for one in (steps, links))
    return Spread(steps, links, facts, uses, cross_session)


def _by(rows: Any, places: Any) -> Callable[[int], Any]:
    """Rows by session, in their original order."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]

    def of(place: int) -> Any:
        first, last = np.searchsorted(sorted_places, (place, place + 1))
        return rows.taken(order[first:last])

    return of

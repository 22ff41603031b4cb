"""From session to session as a spread or a blast goes on, read before they are wanted.

Law (S938): what is fed is exactly what is wanted, round by round, whatever was read: so nothing that is found
depends on how far was read ahead. What leads on is known by the crossings; as many steps are read ahead as
were wanted so far, so that a row of sessions takes few reads, and at most as much is read in vain as was
of use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

import numpy as np

from observatory.features.graph.types_spread import Spread, SpreadReads

MOST_ROUNDS = 1_000  # sessions one after the other
MOST_SESSIONS = 500  # of one read

Read = Callable[[str, Collection[int], int, int], Awaitable[Spread]]


class Fed(Protocol):
    """An infection or a cascade."""

    wanted: set[int]
    loaded: set[int]

    def feed(self, found: Spread, sessions: set[int], /) -> None: ...


async def follow(fed: Fed, derived: SpreadReads, read: Read, tenant_id: str, after: int, most: int) -> bool:
    """Until nothing is wanted, or so many steps were looked at; whether there was more."""
    parts: dict[int, Spread] = {}  # what was read ahead
    left, used, cut = most, 0, False
    for _ in range(MOST_ROUNDS):
        wanted = set(sorted(fed.wanted)[:MOST_SESSIONS])
        if not wanted or left <= 0:
            break
        missing = wanted - parts.keys()
        if missing:
            room = min(used, left) - sum(len(part.steps) for part in parts.values())
            more = await _likely(fed, derived, tenant_id, after, missing, parts, room) if room > 0 else set()
            found = await read(tenant_id, missing | more, after, left)
            if more and found.cut:  # nobody knows of which of them there is more
                more, found = set(), await read(tenant_id, missing, after, left)
            if found.cut:
                wanted = missing
            elif more or missing != wanted:
                parts |= await asyncio.to_thread(apart, found, missing | more)
        if not parts.keys().isdisjoint(wanted):
            found = together([parts.pop(session_no) for session_no in sorted(wanted)])
        left, used, cut = left - len(found.steps), used + len(found.steps), cut or found.cut
        await asyncio.to_thread(fed.feed, found, wanted)
    return cut or bool(fed.wanted)


async def _likely(
    fed: Fed,
    derived: SpreadReads,
    tenant_id: str,
    after: int,
    wanted: set[int],
    parts: Collection[int],
    room: int,
) -> set[int]:
    """The nearest sessions these lead to, with at most so many steps."""
    found: set[int] = set()
    most = min(MOST_SESSIONS, 8 + 4 * len(fed.loaded))
    for session_no, steps in (await derived.led_to(tenant_id, wanted, after, most)).items():
        if session_no in wanted or session_no in fed.loaded or session_no in parts:
            continue
        room -= steps
        if room < 0 or len(found) + len(wanted) >= MOST_SESSIONS:
            break
        found.add(session_no)
    return found


def apart(found: Spread, sessions: Collection[int]) -> dict[int, Spread]:
    """Session by session."""
    steps, links = _by(found.steps, found.steps.session_no), _by(found.links, found.links.session_no)
    facts, uses = _by(found.facts, found.facts.session_no), _by(found.uses, found.uses.from_no)
    abroad = _by(found.abroad, found.abroad.from_no)
    return {one: Spread(steps(one), links(one), facts(one), uses(one), abroad(one)) for one in sessions}


def together(parts: list[Spread]) -> Spread:
    """The parts of several sessions as if they had been read at once."""
    if len(parts) == 1:
        return parts[0]
    steps, links, facts, uses, abroad = (
        type(column[0]).joined(column) for column in list(zip(*parts, strict=True))[:-1]
    )
    steps, links = (one.taken(np.argsort(one.seq, kind="stable")) for one in (steps, links))
    return Spread(steps, links, facts, uses, abroad)


def _by(rows: Any, places: Any) -> Callable[[int], Any]:
    """Whatever has these places, in the order in which it came."""
    order = np.argsort(places, kind="stable")
    sorted_places = places[order]

    def of(place: int) -> Any:
        first, last = np.searchsorted(sorted_places, (place, place + 1))
        return rows.taken(order[first:last])

    return of

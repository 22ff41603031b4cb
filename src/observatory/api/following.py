"""From session to session as a spread or a blast goes on, read before they are wanted.

Law (S938): what is fed is exactly what is wanted, round by round, whatever was read: so nothing that is found
depends on how far was read ahead. What leads on is known by the crossings; as many steps are read ahead as
were wanted so far, so that a row of sessions takes few reads, and at most as much is read in vain as was
of use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from operator import itemgetter
from typing import Any, Protocol

from observatory.insight.cascade import Downstream
from observatory.insight.facts import FactReads, Spread

MOST_ROUNDS = 1_000  # sessions one after the other
MOST_SESSIONS = 500  # of one read
SESSION = 3  # its place in rows of steps

Read = Callable[[str, Collection[int], int, int], Awaitable[Any]]


class Fed(Protocol):
    """An infection or a cascade."""

    wanted: set[int]
    loaded: set[int]

    def feed(self, found: Any, sessions: set[int], /) -> None: ...


async def follow(fed: Fed, derived: FactReads, read: Read, tenant_id: str, after: int, most: int) -> bool:
    """Until nothing is wanted, or so many steps were looked at; whether there was more."""
    parts: dict[int, Any] = {}  # what was read ahead
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
    derived: FactReads,
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


def apart(found: Any, sessions: Collection[int]) -> dict[int, Any]:
    """Session by session."""
    home = dict(found.facts)
    # Read one after the other: of a fact that came between, the uses are there and it is not.
    uses = [row for row in found.uses if row[0] in home]
    used = _by(uses, lambda row: home[row[0]], sessions)
    steps, facts = _by(found.steps, itemgetter(SESSION), sessions), _by(found.facts, itemgetter(1), sessions)
    if isinstance(found, Downstream):
        abroad = _by(found.abroad, itemgetter(4), sessions)
        return {one: Downstream(steps[one], facts[one], used[one], abroad[one], False) for one in sessions}
    links, abroad = _by(found.links, itemgetter(2), sessions), _by(found.abroad, itemgetter(0), sessions)
    return {
        one: Spread(steps[one], links[one], facts[one], used[one], False, abroad[one]) for one in sessions
    }


def together(parts: list[Any]) -> Any:
    """The parts of several sessions as if they had been read at once."""
    first = parts[0]
    if len(parts) == 1:
        return first
    whole = {
        name: [row for part in parts for row in getattr(part, name)]
        for name in first._fields
        if name != "cut"
    }
    whole["steps"].sort(key=itemgetter(0))
    return first._replace(**whole)


def _by(
    rows: Iterable[Any], session_of: Callable[[Any], int], sessions: Iterable[int]
) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {session_no: [] for session_no in sessions}
    for row in rows:
        found[session_of(row)].append(row)
    return found

"""Reads the rows a batch needs besides sessions and agents, with the same queries for both databases.

The append paths of both databases provide a `Finder`; everything here is built on it. Only rows in the
batch's read set are queried: a plain message costs none of these queries. Holds are cached with their
session; rows of rarely used tables are read again for every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import msgspec

from observatory.pipeline.rows import AgentRow, HoldRow, SessionRow
from observatory.pipeline.state import BatchState, ReadSet
from observatory.store import tables
from observatory.store.lists import padded
from observatory.store.row_mapping import (
    AGENT_COLUMNS,
    BREAKER_COLUMNS,
    HOLD_COLUMNS,
    LIVE_ONLY,
    ROW_KEYS,
    agent_of,
    breaker_of,
    hold_of,
)

# A release loads the bytes of this many held messages of a session; see release.LIMIT.
RELEASED_AT_ONCE = 1_000
# At most this many instances of a capability are considered to find a healthy one.
INSTANCES = 1_000
Rows = Sequence[Sequence[Any]]


# Message types whose decision row is needed when they are forwarded.
ABOUT_DECISIONS = frozenset({"decision_request", "decision_response", "action_confirmation"})


class DecisionRef(msgspec.Struct):
    decision_id: str | None = None


class DecisionPayload(DecisionRef):
    triggered_by: DecisionRef | None = None


class EnvelopeRecipient(msgspec.Struct):
    entity_id: str
    entity_type: str


class DecisionEnvelope(msgspec.Struct):
    """The parts of an archived envelope about a decision: its id and recipient."""

    payload: DecisionPayload
    recipient: EnvelopeRecipient


class Finder(Protocol):
    """Reads rows of one tenant, within its transaction or read-ahead."""

    def find(
        self,
        table: str,
        columns: Collection[str],
        where: dict[str, Any] | None = None,
        among: tuple[str, Collection[Any]] | None = None,
        tail: str = "",
    ) -> Rows:
        """Columns of rows equal in `where`, with a column among values; `tail` is constant SQL."""

    def payloads(self, memory: BatchState, numbers: Collection[int]) -> Rows:
        """(sequence_number, raw) of archived messages."""

    def unshredded(self, memory: BatchState, numbers: Collection[int]) -> Rows:
        """(sequence_number,) of messages whose bytes still exist, without reading them."""

    def leases(self, names: Collection[str]) -> Rows:
        """(name, epoch) of gateway leases, which cannot change before the transaction ends."""


def load_read_set(finder: Finder, memory: BatchState, read_set: ReadSet) -> None:
    """Read everything in the read set, after sessions and agents are loaded."""
    if memory.tenant_config.breakers and not memory.breakers:
        found = map(breaker_of, finder.find("breakers", BREAKER_COLUMNS))
        memory.breakers = {breaker.capability: breaker for breaker in found}
    if memory.tenant_config.budgets and "spend" not in memory.rows:
        _keep(memory, "spend", finder.find("spend", tables.spend.c.keys()))
    for session_id in read_set.releases:
        session = memory.sessions.get(session_id)
        if session is not None and session.held:
            _releases(finder, memory, session, read_set)
    if read_set.contents and memory.tenant_config.policies:
        rows = finder.payloads(memory, read_set.contents)
        memory.raws |= {row[0]: bytes(row[1]) for row in rows if row[1] is not None}
        where = ("sequence_number", read_set.contents)
        for number, rewrite_seq in finder.find("holds", ("sequence_number", "rewrite_seq"), among=where):
            if rewrite_seq is not None:
                new = finder.find("rewrites", ("raw",), {"sequence_number": rewrite_seq})
                if new and new[0][0] is not None:
                    memory.raws[number] = bytes(new[0][0])
    if read_set.leases:
        memory.leases |= {row[0]: row[1] for row in finder.leases(read_set.leases)}
    if read_set.payloads:
        memory.payloads |= {row[0] for row in finder.unshredded(memory, read_set.payloads)}
    if read_set.rooms and memory.tenant_config.policies:
        rooms = {memory.sessions[name].session_no for name in read_set.rooms if name in memory.sessions}
        known = {agent.agent_no for agent in memory.agents.values()}
        _agents(finder, memory, "agent_no", {pair[1] for pair in memory.members if pair[0] in rooms} - known)
    for address in read_set.addresses - memory.fleet.keys():
        _fleet(finder, memory, address)
    if read_set.waiting:
        _waiting(finder, memory, read_set)
    for table, keys in read_set.rows.items():
        column = ROW_KEYS[table][0]
        tail = "AND removed_ns IS NULL" if table in LIVE_ONLY else ""
        found_rows = finder.find(table, tables.SMALL[table].c.keys(), among=(column, keys), tail=tail)
        _keep(memory, table, found_rows)


def load_holds(finder: Finder, memory: BatchState, sessions: Collection[SessionRow]) -> None:
    """Load the holds of sessions just read: a cached session must be complete."""
    ended = [session.session_no for session in sessions if session.rejected]
    if ended:
        for state in ("rejected", "expired"):
            found = finder.find(
                "holds", ("session_no", "name", "step_id"), {"state": state}, ("session_no", ended)
            )
            for number, name, step_id in found:
                memory.rejected.setdefault(number, set()).update((name, step_id))
    held = [session.session_no for session in sessions if session.held]
    for number in held:
        memory.holds[number] = {}
    if held:
        for row in finder.find("holds", HOLD_COLUMNS, {"state": "held"}, ("session_no", held)):
            hold = hold_of(row)
            memory.holds[hold.session_no][hold.sequence_number] = hold


def _releases(finder: Finder, memory: BatchState, session: SessionRow, read_set: ReadSet) -> None:
    """Load what a release forwards: bytes, senders and recipients."""
    waiting = memory.holds.get(session.session_no, {})
    first = _release_order(waiting, read_set.named)[:RELEASED_AT_ONCE]
    memory.raws |= {
        row[0]: bytes(row[1])
        for row in finder.payloads(memory, [hold.sequence_number for hold in first])
        if row[1] is not None
    }
    rewritten = [hold.rewrite_seq for hold in first if hold.rewrite_seq is not None]
    if rewritten:
        found = finder.find("rewrites", ("sequence_number", "raw"), among=("sequence_number", rewritten))
        memory.raws |= {row[0]: bytes(row[1]) for row in found if row[1] is not None}
    for hold in first:
        if hold.recipient is not None:
            read_set.recipient(hold.recipient)
        if hold.message_type in ABOUT_DECISIONS:
            _decision(memory.raws.get(hold.rewrite_seq or hold.sequence_number), read_set)
    known = {agent.agent_no for agent in memory.agents.values()}
    _agents(finder, memory, "agent_no", {hold.agent_no for hold in first} - known)
    _agents(finder, memory, "entity_id", read_set.agents - memory.agents.keys())
    asking = {hold.agent_no for hold in first}
    for agent in [one for one in memory.agents.values() if one.agent_no in asking]:
        for table in ("decisions", "jobs"):
            _count_waiting(finder, memory, table, agent)


def _release_order(waiting: dict[int, HoldRow], named: set[str | int]) -> list[HoldRow]:
    """Requested messages first; then the first of every agent, then the second, and so on: blocked messages
    of one agent must not hide another's that can be released."""
    places: dict[tuple[bool, int], int] = {}
    order = []
    for number in sorted(waiting):
        hold = waiting[number]
        line = (hold.gate == 1, hold.agent_no)
        places[line] = place = places.get(line, 0) + 1
        is_named = not named.isdisjoint((number, hold.message_id, hold.step_id, hold.name))
        order.append((0 if is_named else place, number))
    return [waiting[number] for _, number in sorted(order)]


def _decision(raw: bytes | None, read_set: ReadSet) -> None:
    """Add the rows `decisions.want` adds, for a message that is forwarded after a hold."""
    if raw is None:
        return
    about = msgspec.json.decode(raw, type=DecisionEnvelope)
    named = about.payload.decision_id or (about.payload.triggered_by or DecisionRef()).decision_id
    if named is not None:
        read_set.row("decisions", named)
    if about.recipient.entity_type == "user":
        read_set.row("users", about.recipient.entity_id)


def _waiting(finder: Finder, memory: BatchState, read_set: ReadSet) -> None:
    """Count the waiting rows of each agent; 0 for an unknown one."""
    for table, entity_id in read_set.waiting:
        agent = memory.agents.get(entity_id)
        if agent is not None:
            _count_waiting(finder, memory, table, agent)


def _count_waiting(finder: Finder, memory: BatchState, table: str, agent: AgentRow) -> None:
    if (table, agent.agent_no) in memory.waiting:
        return
    mine = {"agent_no": agent.agent_no} if table == "decisions" else {"asked_by": agent.entity_id}
    state = "pending" if table == "decisions" else "active"
    # Written exactly as in the partial indexes, so that they are used.
    tail = f"AND state = '{state}'" + ("" if table == "decisions" else " AND asked_by IS NOT NULL")
    memory.waiting[table, agent.agent_no] = finder.find(table, ("count(*)",), mine, tail=tail)[0][0]


def _fleet(finder: Finder, memory: BatchState, address: str) -> None:
    """Load the agents an address matches, without evicted ones."""
    kind, _, name = address.partition(":")
    alive = f"AND evicted_ns IS NULL ORDER BY agent_no LIMIT {INSTANCES}"
    column = "cluster_id" if kind == "cluster" else "agent_type"
    if memory.tenant_config.routing.capabilities == "granted":
        given = [one for one, addresses in memory.tenant_config.grants.items() if address in addresses]
        among = ("entity_id", given)
        rows = finder.find("agents", AGENT_COLUMNS, among=among, tail=alive) if given else ()
        found = [agent_of(row) for row in rows]
    else:
        found = [agent_of(row) for row in finder.find("agents", AGENT_COLUMNS, {column: name}, tail=alive)]
    if kind == "type" and memory.tenant_config.routing.capabilities == "self":
        able = f"AND capabilities IS NOT NULL {alive}"
        for row in finder.find("agents", AGENT_COLUMNS, tail=able):
            agent = agent_of(row)
            if f'"{name}"' in (agent.capabilities or "") and agent.agent_type != name:
                found.append(agent)
    memory.fleet[address] = [agent.entity_id for agent in found]
    for agent in found:
        memory.agents.setdefault(agent.entity_id, agent)
    numbers = {agent.agent_no for agent in found}
    if numbers:
        _keep(memory, "pulses", finder.find("pulses", tables.pulses.c.keys(), among=("agent_no", numbers)))


def _agents(finder: Finder, memory: BatchState, column: str, values: set[Any]) -> None:
    if values:
        for row in finder.find("agents", AGENT_COLUMNS, among=(column, values)):
            agent = agent_of(row)
            memory.agents.setdefault(agent.entity_id, agent)


def _keep(memory: BatchState, table: str, rows: Rows) -> None:
    names, keys = tables.SMALL[table].c.keys(), ROW_KEYS[table]
    kept = memory.rows.setdefault(table, {})
    for row in rows:
        values = dict(zip(names, row, strict=True))
        kept[values[keys[0]] if len(keys) == 1 else tuple(values[key] for key in keys)] = values


def select_sql(
    table: str,
    columns: Collection[str],
    where: dict[str, Any],
    among: tuple[str, Collection[Any]] | None,
    tail: str,
    mark: Callable[[int], str],
    arrays: bool,
) -> tuple[str, list[Any]]:
    """A SELECT in either dialect: lists are arrays on PostgreSQL and placeholders on SQLite."""
    values: list[Any] = list(where.values())
    tests = [f"{column} = {mark(number)}" for number, column in enumerate(where, 1)]
    if among is not None:
        column, items = among
        if arrays:
            values.append(list(items))
            tests.append(f"{column} = ANY({mark(len(values))})")
        else:
            listed = padded(items)
            values += listed
            tests.append(f"{column} IN ({','.join('?' * len(listed))})")
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {' AND '.join(tests)} {tail}", values

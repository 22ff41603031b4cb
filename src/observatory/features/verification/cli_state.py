"""`observatory verify --state`: recomputes the current state from the record and compares it row by row.

Read as of one moment, whether the gateway runs or not. Three sources: a message's own event and bytes
(`state_messages`); the fold by which an import rebuilds sessions, members, agents, holds and interventions
(`restore_rows`); and the rows that commands state in their events (`row_statements`). One declaration per
table lists the compared columns. What the record cannot prove is listed as not checked, never skipped
silently. The chain must have been verified before: this module trusts the events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from observatory.cli.terminal import CommandFailed, progress
from observatory.cli.verify.rows import TrailReader, open_trail
from observatory.cli.verify.state_report import EXTRA, MISSING, StateDifference, StateReport
from observatory.features.rebuild.rows import Refold
from observatory.features.rebuild.types import IMPORTED
from observatory.features.verification import state_messages
from observatory.features.verification.state_expected import ExpectedRows
from observatory.features.verification.state_inbox import DECISION, DELIVERY, ExpectedInbox
from observatory.features.verification.state_names import is_before, named_rows
from observatory.ledger.chain import ChainHead
from observatory.ledger.export import ExportEntry
from observatory.pipeline.row_statements import (
    ATTRIBUTE,
    NEW,
    RENAMED,
    STATED_TABLES,
    StatedColumns,
    stated_value,
)
from observatory.pipeline.rows import AgentRow, HoldRow, MemberRow, SessionRow, TenantRow
from observatory.pipeline.state import BatchState, TenantConfig, TransactionChanges
from observatory.protocol.clock import to_ns
from observatory.protocol.otel import trace_id_of_session

_event = msgspec.json.Decoder(dict[str, Any]).decode
PAGE: Final = 1_000


class FoldedTable(NamedTuple):
    """A table that the fold of an import rebuilds. `rough` columns are sums of money, compared roughly."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    rough: tuple[str, ...] = ()
    kind: type | None = None  # of rows that the fold keeps in memory


def _folded(key: str, columns: str, rough: str = "", kind: type | None = None) -> FoldedTable:
    return FoldedTable(tuple(key.split()), tuple(columns.split()), tuple(rough.split()), kind)


FOLDED: Final[dict[str, FoldedTable]] = {
    "agents": _folded(
        "entity_id",
        "agent_id trust_level evicted_ns messages paused_ns paused_by pause_seq",
        "cost",
        AgentRow,
    ),
    "sessions": _folded(
        "session_id", "trace_id first_seq last_seq messages held agents rejected", "cost spent", SessionRow
    ),
    "members": _folded(
        "session_no agent_no",
        "last_step last_seq messages tokens paused_ns paused_by pause_seq",
        "cost",
        MemberRow,
    ),
    "holds": _folded(
        "sequence_number",
        "session_no agent_no message_id step_id name span_id message_type agent_type cluster_id cause reason "
        "recipient state gate waits digest rewrite_seq quorum approvals requested_by key_id key_maker bound "
        "deadline_ns on_expiry held_ns ended_ns ended_by released_seq",
        kind=HoldRow,
    ),
    "interventions": _folded(
        "intervention_id",
        "sequence_number command operator_id session_no agent_no message_id message_seq before_hash "
        "after_hash note issued_ns reversed_ns acknowledged_ns confirmed_ns proven",
    ),
    "rewrites": _folded("sequence_number", "message_seq digest undone_ns"),
    "thought_sessions": _folded(
        "session_id",
        "caller task_id started_at genesis sequence_number predecessor_session_id predecessor_chain_hash "
        "proof_grade records open_tasks last_chain_hash verified_records verified_by sealed_ns root ended_ns "
        "intent_shredded_by",
    ),
    "thought_tasks": _folded("task_key", "session_id task_id proof_grade state opened_by closed_by"),
    "merkle_nodes": _folded("session_id level node_index", "hash"),
}  # fmt: skip
WITH_BYTES: Final = ("agent_type", "cluster_id")  # of a hold: removed with the bytes of its message
WITH_MESSAGE: Final = ("payload",)  # of a reminder: removed with the message that requested it
IMPORTABLE: Final = (
    "tenants",
    "versions",
    "knobs",
    "reviews",
    "fact_marks",
)  # tables that commands state and an import writes
PARTIAL: Final = ("cost", "spent", "tokens")  # of sessions and agents whose bytes were shredded
NOT_PROVEN: Final = (
    "agents, sessions, members: times of activity, what an agent reports about itself, alarm marks",
    "agents: owner, team and workspace, last certificate, version of its instructions",
    "messages: warnings of accepted ones, and scores where bytes were shredded",
    "decisions: whom they ask, who requested them, whether an automatic option applied under its settings",
    "deliveries: session, sender, address, given_ns, ended_ns; which of several agents takes work for a "
    "capability, cluster or session",
    "logins: when a sign-in was last used",
    "refusals: counts of the present minute, before their event",
    "jobs, dead letters, exporters, alarms: whether they are open, next and last times, counts",
    "pulses, breakers, spend, secrets, addresses of peers, job attempts, webhook deliveries, hook calls, "
    "exporter cursors, alert states: not in any event",
)


def check(url: str, tenant_id: str) -> StateReport:
    begun, trail, expected = time.perf_counter(), open_trail(url), ExpectedRows()
    try:
        trail.freeze()
        head = next(head for head in trail.heads() if head.tenant_id == tenant_id)
        with progress(f"recomputing {tenant_id}", head.sequence_number) as advance:
            run = _Run(trail, tenant_id, expected)
            difference = run.run(head.sequence_number, advance)
    finally:
        trail.close()
        expected.close()
    return StateReport(
        held=difference is None,
        events=head.sequence_number,
        tables=run.counts,
        difference=difference,
        sentence=None if difference is None else difference.sentence,
        not_checked=run.not_checked(),
        seconds=round(time.perf_counter() - begun, 3),
    )


class _Run:
    def __init__(self, trail: TrailReader, tenant_id: str, expected: ExpectedRows) -> None:
        self._trail, self._tenant_id, self._expected = trail, tenant_id, expected
        self._agents = {row[0]: row[1] for row in self._rows("agents", ("entity_id", "agent_no"))}
        self._memory = BatchState(
            TenantRow(tenant_id=tenant_id, tenant_no=1), ChainHead.genesis(), TenantConfig()
        )
        self._refold = Refold(self._memory)
        self._inbox = ExpectedInbox(expected, self._agents)
        self._partial: set[str] = set()  # ids of sessions and agents with shredded bytes
        self._shredded, self._unscored = set[int](), set[int]()
        self._unstated = self._gone = 0
        self._has_stated = False  # from its first statement on, a record states every such row
        self._last_ns = 0  # when the newest event was recorded
        self._since: dict[str, int] = {}  # when a table's rows were first stated
        self._imported = self._import()
        self._expected.put("tenants", {AT: 0}, tenant_id)
        self.counts: dict[str, int] = {}

    def run(self, last: int, advance: Callable[[int], None]) -> StateDifference | None:
        found = self._strays() or self._sessions()
        if found is None:
            found = self._events(last, advance)
        return found or self._tables()

    def not_checked(self) -> list[str]:
        notes = (
            []
            if not self._unstated
            else [f"{self._unstated:,} rows written before commands stated their rows"]
        )
        if self._imported:
            notes.append(
                f"{self._gone:,} rules, keys and users, and inboxes and decisions, from before the import at "
                f"event {self._imported:,}, which does not import them"
            )
        return [*notes, *NOT_PROVEN]

    def _import(self) -> int:
        """The last imported event of this tenant: a trail contains no rules, keys, users or inboxes."""
        for name, value in self._rows("knobs", ("name", "value")):
            if name == IMPORTED and str(value).isdigit():
                return int(value)
        return 0

    def _rows(self, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        return self._trail.table(self._tenant_id, table, columns)

    def _strays(self) -> StateDifference | None:
        """Rows of a tenant without a record: no event can account for them."""
        for table, tenant_id in self._trail.strays((*FOLDED, *STATED_TABLES, "decisions", "deliveries")):
            return StateDifference(table, f"of {tenant_id}", what="this tenant has no record")
        return None

    def _sessions(self) -> StateDifference | None:
        """Other tables refer to sessions by number, so names are checked first."""
        for session_id, trace_id in self._rows("sessions", ("session_id", "trace_id")):
            says = trace_id_of_session(session_id) if session_id != SYSTEM else trace_id
            if says != trace_id:
                return StateDifference("sessions", session_id, "trace_id", says, trace_id)
        return None

    # --- the record ---

    def _events(self, last: int, advance: Callable[[int], None]) -> StateDifference | None:
        for start in range(1, last + 1, PAGE):
            end = min(last, start + PAGE - 1)
            more = self._trail.messages(self._tenant_id, start, end)
            for page in self._trail.entries(self._tenant_id, start, end):
                found = self._page(page, more)
                if found is not None:
                    return found
                advance(len(page))
        try:
            self._refold.finish()
        except CommandFailed as problem:
            return StateDifference("thought_records", "", what=str(problem))
        return None

    def _page(self, page: list[ExportEntry], more: dict[int, tuple[Any, ...]]) -> StateDifference | None:
        for entry in page:
            event = _event(entry.record)
            self._last_ns = to_ns(event["observed_timestamp"])
            if entry.message is not None:
                dedupe = more.get(entry.sequence_number, (None, None))[0]
                found = state_messages.difference(self._tenant_id, entry, event, dedupe)
                if found is not None:
                    return found
                if entry.message.raw is None:
                    self._partial |= {
                        entry.message.session_id,
                        event["attributes"].get("av.sender.entity_id", ""),
                    }
                self._shredded |= {entry.sequence_number} if entry.message.raw is None else set()
            self._inbox.apply(entry, event)
            self._state(entry.sequence_number, event)
        try:
            changes = self._refold.changes(page)
        except CommandFailed as problem:
            return StateDifference(
                "thought_records", f"{page[0].sequence_number} and later", what=str(problem)
            )
        found = self._scores(changes, more)
        self._keep(changes)
        return found

    def _scores(
        self, changes: TransactionChanges, more: dict[int, tuple[Any, ...]]
    ) -> StateDifference | None:
        self.counts["messages"] = self.counts.get("messages", 0) + len(changes.messages)
        for row in changes.messages:
            has = more.get(row.sequence_number, (None, None))[1]
            if row.raw is None:  # later scores in its session depend on it
                self._unscored.add(row.session_no)
            if row.session_no in self._unscored:
                continue
            if not _is_same("entropy", row.entropy, has, ("entropy",)):
                return StateDifference("messages", str(row.sequence_number), "entropy", row.entropy, has)
        return None

    def _keep(self, changes: TransactionChanges) -> None:
        """Store rows that the fold changed: those in memory, and those that a command once wrote."""
        for row in self._memory.changed:
            table = TABLE_OF.get(type(row))
            if table is not None:
                columns = FOLDED[table].key + FOLDED[table].columns + FOLDED[table].rough
                values = {name: _plain(getattr(row, name)) for name in columns}
                self._expected.put(table, values, *(values[name] for name in FOLDED[table].key))
        self._refold.saved()
        for write in changes.writes:
            if write.table in FOLDED:
                for values in (write.values, *write.more):
                    self._written(write.table, values, write.where or {})

    def _written(self, table: str, values: dict[str, Any], where: dict[str, Any]) -> None:
        declared = FOLDED[table]
        key = [values.get(name, where.get(name)) for name in declared.key]
        if None in key:
            return
        row = {name: _plain(values[name]) for name in (*declared.key, *declared.columns) if name in values}
        if not where:
            row = dict.fromkeys(declared.columns) | row
        self._expected.merge(table, row, *key)

    def _state(self, number: int, event: dict[str, Any]) -> None:
        text = event["attributes"].get(ATTRIBUTE)
        if text is None and not self._has_stated:
            self._named(event["body"])
        if text is None:
            return
        self._has_stated = True
        for table, rows in msgspec.json.decode(text).items():
            declared = STATED_TABLES.get(table)
            self._since.setdefault(table, to_ns(event["observed_timestamp"]))
            for row in rows if declared is not None else ():
                assert declared is not None
                self._renamed(table, declared, row)
                is_new = row.pop(NEW, None) is not None
                stated = (dict.fromkeys(declared.columns) if is_new else {}) | row | {AT: number}
                self._expected.merge(table, stated, *(row[name] for name in declared.key))

    def _renamed(self, table: str, declared: StatedColumns, row: dict[str, Any]) -> None:
        """The row has a new key from here on; a row that was never stated is not expected."""
        new = row.pop(RENAMED, None)
        if new is not None:
            [column] = declared.key
            before = self._expected.drop(table, row[column])
            row |= (before or {}) | {column: new}

    def _named(self, body: dict[str, Any]) -> None:
        """For events from before commands stated rows: the row is at least named."""
        for table, key in named_rows(body):
            if self._expected.get(table, *key) is None:
                self._expected.put(table, {AT: 0}, *key)

    # --- the rows ---

    def _archived(self) -> StateDifference | None:
        """Rows without an event, e.g. past the head."""
        recorded = self.counts.get("messages", 0)
        for table, count in zip(("messages", "payloads"), self._trail.archived(self._tenant_id), strict=True):
            if count != recorded:
                what = f"the record accounts for {recorded:,} rows, and there are {count:,}"
                return StateDifference(table, "in all", what=what)
        return None

    def _tables(self) -> StateDifference | None:
        found = self._archived()
        if found is not None:
            return found
        for table, declared in FOLDED.items():
            found = self._folded(table, declared)
            if found is not None:
                return found
        for table, stated in STATED_TABLES.items():
            found = self._stated(table, stated)
            if found is not None:
                return found
        return self._inboxes()

    def _inboxes(self) -> StateDifference | None:
        for table, columns, judge in (
            ("decisions", DECISION, self._inbox.decision),
            ("deliveries", DELIVERY, self._inbox.delivery),
        ):
            for values in self._rows(table, columns):
                self.counts[table] = self.counts.get(table, 0) + 1
                found = judge(values)
                if found is not None:
                    return found
        return self._inbox.missing(self._imported)

    def _folded(self, table: str, declared: FoldedTable) -> StateDifference | None:
        names = self._names()
        columns = declared.key + declared.columns + declared.rough
        for values in self._rows(table, columns):
            row = {name: _plain(names.ours(name, value)) for name, value in zip(columns, values, strict=True)}
            key = [row[name] for name in declared.key]
            if key[0] in (SYSTEM, 0) and table in ("sessions", "members"):
                continue
            self.counts[table] = self.counts.get(table, 0) + 1
            expected = self._expected.see(table, *key)
            shown_key = " ".join(map(str, names.shown(declared.key, key)))
            if expected is None:
                return StateDifference(table, shown_key, what=EXTRA)
            for name in (*declared.columns, *declared.rough):
                if name in PARTIAL and self._is_partial(names.shown(declared.key, key)):
                    continue
                if name in WITH_BYTES and table == "holds" and key[0] in self._shredded:
                    continue
                if name == "ended_by" and expected[name] is None and row["state"] == "released":
                    continue  # released before the event recorded by whom
                if name in expected and not _is_same(name, expected[name], row[name], declared.rough):
                    return StateDifference(table, shown_key, name, expected[name], row[name])
        for missing_key, _ in self._expected.unseen(table):
            return StateDifference(table, missing_key, what=MISSING)
        return None

    def _is_partial(self, names: list[object]) -> bool:
        return any(name in self._partial for name in names)

    def _names(self) -> _Names:
        sessions = dict(self._rows("sessions", ("session_no", "session_id")))
        return _Names(self._memory, sessions, {number: name for name, number in self._agents.items()})

    def _stated(self, table: str, declared: StatedColumns) -> StateDifference | None:
        columns = declared.key + declared.columns
        for values in self._rows(table, columns):
            row = dict(zip(columns, values, strict=True))
            key = [row[name] for name in declared.key]
            if declared.only and not declared.only & set(map(str, key)):
                continue
            self.counts[table] = self.counts.get(table, 0) + 1
            expected, shown_key = self._expected.see(table, *key), " ".join(map(str, key))
            if expected is None:
                if not is_before(table, row, self._since.get(table, self._last_ns)):
                    return StateDifference(table, shown_key, what=EXTRA)
                self._unstated += 1
                continue
            if table not in IMPORTABLE and 0 < expected[AT] <= self._imported:
                return StateDifference(
                    "knobs", IMPORTED, what=f"an import does not contain {table} {shown_key}"
                )
            self._unstated += any(name not in expected for name in declared.columns)
            for name in declared.columns:
                if name in WITH_MESSAGE and self._is_forgotten(row, name):
                    continue
                has = stated_value(declared, name, row[name])
                if name in expected and expected[name] != has:
                    return StateDifference(table, shown_key, name, expected[name], has)
        for missing_key, row in self._expected.unseen(table):
            if row[AT] > self._imported:
                return StateDifference(table, missing_key, what=MISSING)
            self._gone += row[AT] > 0
        return None

    def _is_forgotten(self, row: dict[str, Any], name: str) -> bool:
        """A reminder's payload is removed with the message that requested it, and once it was sent."""
        asked_seq = row.get("asked_seq")
        return asked_seq is not None and (row[name] is None or asked_seq in self._shredded)


class _Names:
    """The fold assigns its own session and agent numbers; both are compared by name."""

    def __init__(self, memory: BatchState, sessions: dict[int, str], agents: dict[int, str]) -> None:
        self._sessions = {
            number: memory.sessions[name].session_no
            for number, name in sessions.items()
            if name in memory.sessions
        }
        self._agents = {
            number: memory.agents[name].agent_no for number, name in agents.items() if name in memory.agents
        }
        self._shown = {
            "session_no": {one.session_no: name for name, one in memory.sessions.items()},
            "agent_no": {one.agent_no: name for name, one in memory.agents.items()},
        }

    def ours(self, column: str, value: Any) -> Any:
        if value in (0, None):
            return value
        if column == "session_no":
            return self._sessions.get(value, f"unknown session {value}")
        return self._agents.get(value, f"unknown agent {value}") if column == "agent_no" else value

    def shown(self, columns: tuple[str, ...], key: list[Any]) -> list[object]:
        return [self._shown.get(name, {}).get(value, value) for name, value in zip(columns, key, strict=True)]


SYSTEM: Final = "/system"
AT: Final = "@at"  # the number of the newest event that states the row; 0: an event only names it
TABLE_OF: Final = {declared.kind: table for table, declared in FOLDED.items() if declared.kind is not None}


def _plain(value: Any) -> Any:
    return bytes(value).hex() if isinstance(value, bytes | memoryview | bytearray) else value


def _is_same(name: str, says: Any, has: Any, rough: tuple[str, ...]) -> bool:
    if name in rough and isinstance(says, int | float) and isinstance(has, int | float):
        return abs(says - has) <= 1e-9 * max(1.0, abs(says))
    return bool(says == has)

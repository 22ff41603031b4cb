"""The loops fold: runs the second loop detector over the record, with a watch for each agent of a session.

Law: it keeps nothing that cannot be read again. A watch that is not in memory (after a restart, or evicted)
is rebuilt from the last messages of its agent, silently, so that the findings are the same as without a stop.
An agent's messages count even if they were held; messages that were refused or written by a person do not. An
agent new to the session that names a step as its parent is a child of that step: progress for the agent of
that step. Rules S192 to S196.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from observatory.derived.reads import DerivedReads
from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold, FoldMessage, step_key
from observatory.features.loops.call_fingerprint import fingerprint_of
from observatory.features.loops.second_detector import REPLAY, LoopVerdict, LoopWatch
from observatory.features.sessions.queries_lines import LineReads
from observatory.pipeline.ports import MessageFilter, RecordReads, StoredMessage
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.steps import step_name
from observatory.protocol.tenant_config import LoopSettings
from observatory.runtime.fold_memory import IdleKeys
from observatory.runtime.fold_settings import DetectorSettingsCache
from observatory.runtime.record_reader import content_of

# Steps and facts over all watches, about 1 KB each: about 600 long watches, or many short ones.
KEPT: Final = 25_000
WATCH: Final = 4  # the cost of a watch without any, in the same unit
KNOWN: Final = 30_000  # steps over all sessions whose author is known; each about 150 bytes
SESSION: Final = 10  # the cost of a session without any, in the same unit
CROWD: Final = 200  # the last of them in a session

Key = tuple[str, str, str]  # tenant, session, agent


class SessionAgents:
    """The agents of a session's last steps, and which agent's step started a new agent, and when."""

    __slots__ = ("births", "is_whole", "met", "owners")

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}  # key of a step's name → agent, in the order of the steps
        self.births: deque[tuple[int, str]] = deque(
            maxlen=CROWD
        )  # number of the child's step, its parent agent
        self.met: set[str] = set()
        self.is_whole = True  # the whole session was read

    def __len__(self) -> int:
        return len(self.owners)

    def steps(self, agent_id: str, key: int) -> None:
        self.owners[key] = sys.intern(agent_id)
        if len(self.owners) > CROWD:
            del self.owners[next(iter(self.owners))]

    def born(self, seq: int, agent_id: str, parents: Iterable[int]) -> str | None:
        """Records a new agent; returns its parent agent."""
        for parent in parents:
            owner = self.owners.get(parent)
            if owner is not None and owner != agent_id:
                self.births.append((seq, owner))
                return owner
        return None


class LoopFold:
    name = "loops"

    def __init__(
        self, derived: LineReads, past: RecordReads, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._derived, self._past, self._clock = derived, past, clock
        self._watches: OrderedDict[Key, LoopWatch] = OrderedDict()
        self._crowds: OrderedDict[tuple[str, str], SessionAgents] = OrderedDict()
        self._kept = self._known = 0  # of the watches, of the crowds
        self._idle_watches, self._idle_crowds = IdleKeys[Key](clock), IdleKeys[tuple[str, str]](clock)
        self._rules = DetectorSettingsCache(past, clock)

    def forget(self) -> None:
        self._watches.clear()
        self._crowds.clear()
        self._kept = self._known = 0

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        self._evict()
        await self._begin(batch)
        found: list[Finding] = []
        rules = (await self._rules.current(batch.tenant_id)).loops
        for seen in batch.messages:
            if seen.revised or seen.state == "refused" or not seen.agent_id or not seen.session_id:
                continue
            crowd = await self._crowd(batch, seen.session_id)
            watch, is_new = await self._watch(batch, seen, crowd, rules)
            owner = None
            if is_new:
                owner = crowd.born(seen.seq, seen.agent_id, _keys(batch.tenant_id, seen.parents))
            parent = self._watches.get((batch.tenant_id, seen.session_id, owner)) if owner else None
            if owner and parent is not None:
                _append_finding(found, seen, owner, parent.progressed(seen.seq))
            before = len(crowd), len(watch)
            crowd.steps(seen.agent_id, step_key(batch.tenant_id, seen.name))
            _append_finding(
                found, seen, seen.agent_id, _push(watch, seen.seq, seen.log, seen.envelope, rules)
            )
            self._known += len(crowd) - before[0]
            self._kept += len(watch) - before[1]
        return [], found

    def _evict(self) -> None:
        """Evicts the least recently used; between batches, because the current batch cannot be read yet."""
        for idle in self._idle_watches.over(self._watches):
            self._kept -= len(self._watches.pop(idle)) + WATCH
        for gone in self._idle_crowds.over(self._crowds):
            self._known -= len(self._crowds.pop(gone)) + SESSION
        while self._kept > KEPT and self._watches:
            self._kept -= len(self._watches.popitem(last=False)[1]) + WATCH
        while self._known > KNOWN and self._crowds:
            self._known -= len(self._crowds.popitem(last=False)[1]) + SESSION

    async def _begin(self, batch: Batch) -> None:
        """Sessions that begin with this batch: nothing has to be read for them, and there are many."""
        tenant_id = batch.tenant_id
        unknown = {
            seen.session_no: seen.session_id
            for seen in batch.messages
            if seen.session_id and (tenant_id, seen.session_id) not in self._crowds
        }
        if not unknown:
            return
        existing = await self._derived.session_lines(tenant_id, unknown)  # every message makes a line
        for number in unknown.keys() - existing.keys():
            self._crowds[tenant_id, unknown[number]] = SessionAgents()
            self._known += SESSION

    async def _crowd(self, batch: Batch, session_id: str) -> SessionAgents:
        key = (batch.tenant_id, session_id)
        self._idle_crowds.want(key)
        crowd = self._crowds.get(key)
        if crowd is not None:
            self._crowds.move_to_end(key)
            return crowd
        crowd = self._crowds[key] = SessionAgents()
        where = MessageFilter(before=batch.after + 1, session_id=session_id)
        read = await self._past.messages(batch.tenant_id, where, CROWD, True)
        crowd.is_whole = len(read) < CROWD
        for old in reversed(read):
            log, envelope, _ = content_of(old.message_type, old.raw)
            agent_id = log.identity.agent_id if log else envelope.sender.entity_id if envelope else ""
            if not agent_id or old.state == "refused":
                continue
            if agent_id not in crowd.met:
                crowd.met.add(agent_id)
                if crowd.is_whole or not await self._before(batch.tenant_id, session_id, agent_id, old):
                    parents = _keys(batch.tenant_id, (old.parents or "").split("\n"))
                    crowd.born(old.sequence_number, agent_id, parents)
            crowd.steps(agent_id, step_key(batch.tenant_id, _name(old)))
        self._known += len(crowd) + SESSION
        return crowd

    async def _before(self, tenant_id: str, session_id: str, agent_id: str, old: StoredMessage) -> bool:
        where = MessageFilter(before=old.sequence_number, session_id=session_id, agent=agent_id)
        return bool(await self._past.messages(tenant_id, where, 1, True))

    async def _watch(
        self, batch: Batch, seen: FoldMessage, crowd: SessionAgents, rules: LoopSettings
    ) -> tuple[LoopWatch, bool]:
        """The agent's watch, and whether this is its first step in the session."""
        key = (batch.tenant_id, seen.session_id, seen.agent_id)
        self._idle_watches.want(key)
        watch = self._watches.get(key)
        if watch is not None:
            self._watches.move_to_end(key)
            return watch, False
        watch = self._watches[key] = LoopWatch()
        self._kept += WATCH
        if crowd.is_whole and seen.agent_id not in crowd.met:
            crowd.met.add(seen.agent_id)
            return watch, True
        where = MessageFilter(before=batch.after + 1, session_id=seen.session_id, agent=seen.agent_id)
        past = await self._past.messages(batch.tenant_id, where, REPLAY, True)
        births = deque(number for number, owner in crowd.births if owner == seen.agent_id)
        for old in reversed(past):
            while births and births[0] < old.sequence_number:
                watch.progressed(births.popleft())
            if old.state != "refused":
                log, envelope, _ = content_of(old.message_type, old.raw)
                _push(watch, old.sequence_number, log, envelope, rules)
        if births and births[-1] < seen.seq:
            watch.progressed(births[-1])
        self._kept += len(watch)
        return watch, not past


def _keys(tenant_id: str, names: Iterable[str]) -> list[int]:
    return [step_key(tenant_id, name) for name in names if name]


def _name(old: StoredMessage) -> str:
    return step_name(old.session_id, old.step_id, old.message_id)


def _push(
    watch: LoopWatch,
    seq: int,
    log: DecisionLog | None,
    envelope: Envelope | None,
    rules: LoopSettings,
) -> LoopVerdict | None:
    if log is not None and log.control is not None and log.control.is_terminal:
        return watch.left("its agent marked this step as its last")
    step = fingerprint_of(log, envelope)
    if step is None:
        return None
    if log is not None:
        rules = rules.for_agent(log.identity.agent_id, log.identity.agent_type)
    return watch.push(seq, step, rules)


def _append_finding(
    found: list[Finding], seen: FoldMessage, agent_id: str, verdict: LoopVerdict | None
) -> None:
    if verdict is None:
        return
    body: dict[str, Any] = {
        "detector": verdict.detector,
        "period": verdict.period,
        "occurrences": verdict.occurrences,
        "likeness_pct": verdict.likeness_pct,
        "since_sequence_number": verdict.since_seq,
        "reason": verdict.reason,
    }
    if verdict.tool is not None:
        body["tool"] = verdict.tool
    found.append(
        Finding(
            kind="loop_detected" if verdict.kind == "detected" else "loop_ended",
            seq=seen.seq,
            session_id=seen.session_id,
            agent_id=agent_id,
            at_ns=seen.at_ns,
            body=body,
        )
    )


def folds(derived: DerivedReads, past: RecordReads) -> list[Fold]:
    return [LoopFold(derived.queries(LineReads), past)]

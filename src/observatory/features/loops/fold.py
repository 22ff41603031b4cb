"""The second loop detector over the record: a watch for every agent of a session, kept while it is needed.

Law: it keeps nothing that cannot be read again. A watch that is not at hand (after a restart, after others
took its place) is made from the last messages of its agent, silently, so that the findings are the same as if
nobody had stopped. What an agent sent counts even if it was held; what was refused or put there by a person
does not. An agent new to the session that names a step as its parent is a child of that step: progress of
whoever took it. Rules S192 to S196.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from observatory.features.graph.fold import key_of
from observatory.features.loops.call_fingerprint import step_of
from observatory.features.loops.detector import REPLAY, Verdict, Watch
from observatory.features.loops.types import Past
from observatory.pipeline.ports import MessageFilter, StoredMessage
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.rulebook import LoopSettings
from observatory.protocol.steps import step_name
from observatory.runtime.fold_memory import Idle
from observatory.runtime.fold_settings import Rules
from observatory.runtime.record_reader import content_of
from observatory.runtime.seen import Batch, Finding, Put, Seen
from observatory.store.derived import DerivedReads

# Steps and facts over all watches, some 1 KB each: of some 600 long watches, or of many short ones.
KEPT: Final = 25_000
WATCH: Final = 4  # what one without any takes, as many of them
KNOWN: Final = 30_000  # steps over all sessions whose author is known; one is some 150 bytes
SESSION: Final = 10  # what a session without any takes, as many of them
CROWD: Final = 200  # the last of them in a session

Key = tuple[str, str, str]  # tenant, session, agent


class Crowd:
    """Who took the last steps of a session, and whose step set somebody new to work, and when."""

    __slots__ = ("births", "is_whole", "met", "owners")

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}  # key of a step's name → agent, in the order of the steps
        self.births: deque[tuple[int, str]] = deque(maxlen=CROWD)  # number of the child's step, whose child
        self.met: set[str] = set()
        self.is_whole = True  # nothing of the session was left unread

    def __len__(self) -> int:
        return len(self.owners)

    def steps(self, agent_id: str, key: int) -> None:
        self.owners[key] = sys.intern(agent_id)
        if len(self.owners) > CROWD:
            del self.owners[next(iter(self.owners))]

    def born(self, seq: int, agent_id: str, parents: Iterable[int]) -> str | None:
        """Whose child a new agent is."""
        for parent in parents:
            owner = self.owners.get(parent)
            if owner is not None and owner != agent_id:
                self.births.append((seq, owner))
                return owner
        return None


class Loops:
    name = "loops"

    def __init__(
        self, derived: DerivedReads, past: Past, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._derived, self._past, self._clock = derived, past, clock
        self._watches: OrderedDict[Key, Watch] = OrderedDict()
        self._crowds: OrderedDict[tuple[str, str], Crowd] = OrderedDict()
        self._kept = self._known = 0  # of the watches, of the crowds
        self._idle_watches, self._idle_crowds = Idle[Key](clock), Idle[tuple[str, str]](clock)
        self._rules = Rules(past, clock)

    def forget(self) -> None:
        self._watches.clear()
        self._crowds.clear()
        self._kept = self._known = 0

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        self._make_room()
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
                _tell(found, seen, owner, parent.progressed(seen.seq))
            before = len(crowd), len(watch)
            crowd.steps(seen.agent_id, key_of(batch.tenant_id, seen.name))
            _tell(found, seen, seen.agent_id, _push(watch, seen.seq, seen.log, seen.envelope, rules))
            self._known += len(crowd) - before[0]
            self._kept += len(watch) - before[1]
        return [], found

    def _make_room(self) -> None:
        """What was wanted longest ago goes first; between batches: what is in one cannot be read yet."""
        for idle in self._idle_watches.over(self._watches):
            self._kept -= len(self._watches.pop(idle)) + WATCH
        for gone in self._idle_crowds.over(self._crowds):
            self._known -= len(self._crowds.pop(gone)) + SESSION
        while self._kept > KEPT and self._watches:
            self._kept -= len(self._watches.popitem(last=False)[1]) + WATCH
        while self._known > KNOWN and self._crowds:
            self._known -= len(self._crowds.popitem(last=False)[1]) + SESSION

    async def _begin(self, batch: Batch) -> None:
        """Sessions that begin with this batch: of them nothing has to be read, and there are many."""
        tenant_id = batch.tenant_id
        asked = {
            seen.session_no: seen.session_id
            for seen in batch.messages
            if seen.session_id and (tenant_id, seen.session_id) not in self._crowds
        }
        if not asked:
            return
        begun = await self._derived.session_lines(tenant_id, asked)  # whatever was said makes a line
        for number in asked.keys() - begun.keys():
            self._crowds[tenant_id, asked[number]] = Crowd()
            self._known += SESSION

    async def _crowd(self, batch: Batch, session_id: str) -> Crowd:
        key = (batch.tenant_id, session_id)
        self._idle_crowds.want(key)
        crowd = self._crowds.get(key)
        if crowd is not None:
            self._crowds.move_to_end(key)
            return crowd
        crowd = self._crowds[key] = Crowd()
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
            crowd.steps(agent_id, key_of(batch.tenant_id, _name(old)))
        self._known += len(crowd) + SESSION
        return crowd

    async def _before(self, tenant_id: str, session_id: str, agent_id: str, old: StoredMessage) -> bool:
        where = MessageFilter(before=old.sequence_number, session_id=session_id, agent=agent_id)
        return bool(await self._past.messages(tenant_id, where, 1, True))

    async def _watch(self, batch: Batch, seen: Seen, crowd: Crowd, rules: LoopSettings) -> tuple[Watch, bool]:
        """The agent's watch, and whether this is its first step in the session."""
        key = (batch.tenant_id, seen.session_id, seen.agent_id)
        self._idle_watches.want(key)
        watch = self._watches.get(key)
        if watch is not None:
            self._watches.move_to_end(key)
            return watch, False
        watch = self._watches[key] = Watch()
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
    return [key_of(tenant_id, name) for name in names if name]


def _name(old: StoredMessage) -> str:
    return step_name(old.session_id, old.step_id, old.message_id)


def _push(
    watch: Watch,
    seq: int,
    log: DecisionLog | None,
    envelope: Envelope | None,
    rules: LoopSettings,
) -> Verdict | None:
    if log is not None and log.control is not None and log.control.is_terminal:
        return watch.left("its agent said that this was the last step")
    step = step_of(log, envelope)
    if step is None:
        return None
    if log is not None:
        rules = rules.for_agent(log.identity.agent_id, log.identity.agent_type)
    return watch.push(seq, step, rules)


def _tell(found: list[Finding], seen: Seen, agent_id: str, verdict: Verdict | None) -> None:
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

"""One topic of one tenant: the records last said, folded and encoded once for everybody who follows it.

A record is plain data with `kind` and `id`. What a source shows is compared with what was said; a difference
is a change with a version of its own. Records stand in the order of their last change, and whoever follows
remembers only the turn it has heard last: what it has missed since is the end of that order, in its present
state. So a follower that stops costs one number, however long it stops (rules S284–S287).

Versions: the sequence number at which a record became what it is (its own, if it names one); when it changes
again without a new number, by the clock alone, one more than before. They rise as long as the channel lives;
after a restart they begin again, and so does every follower, with a snapshot.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from observatory.protocol.clock import from_ns

Key = tuple[str, str]
Record = dict[str, Any]
# So many removals are remembered; who has missed an earlier one is told to begin again.
REMOVALS = 5_000
# So long a frame put together for one is told to others who heard the same: its time is that of all of them.
SHARED_NS = 50_000_000
encode = msgspec.json.Encoder().encode


class Look(NamedTuple):
    """What a source shows: records that may have changed, and what is no more."""

    items: Iterable[Record]
    gone: Iterable[Key] = ()
    whole: bool = False  # these are all there are
    soon: bool = False  # more is on its way: to be asked at the next tick, whether or not anything came


class Source(Protocol):
    """A pure function of committed rows and the clock, asked again and again; it may remember rows."""

    async def look(self, head: int, now_ns: int, again: bool) -> Look:
        """What changed since the last time, `head` being committed; `again` also what time alone changes."""

    async def close(self) -> None: ...


class Said(msgspec.Struct, frozen=True, gc=False):
    record: Record | None  # None when it was removed
    version: int
    turn: int
    seq: int
    data: bytes


class Channel:
    """`turn` counts the folds that changed anything; 0 before the first."""

    def __init__(self, tenant_id: str, topic: str, source: Source, removals: int = REMOVALS) -> None:
        self.tenant_id, self.topic, self.source = tenant_id, topic, source
        self.turn = self.seq = 0
        self.began: int | None = None  # the number at which it was first folded
        self._said: OrderedDict[Key, Said] = OrderedDict()
        self._removed: OrderedDict[Key, int] = OrderedDict()
        # Turn and number of the newest removal that is no longer remembered.
        self._forgotten = self._forgotten_seq = 0
        self._lowest = 0  # what comes again is above the version of every removal forgotten
        self._most = removals
        self._cached: dict[int, bytes] = {}
        self._frames: dict[tuple[str, int], tuple[int, bytes]] = {}

    def fold(self, look: Look, head: int) -> int:
        """Say what changed; how many records did."""
        return self.apply(self.changes(look), head)

    def changes(self, look: Look) -> list[tuple[Key, Record | None, int | None]]:
        """Compared with what was said, which is only read: may run beside the event loop."""
        found: list[tuple[Key, Record | None, int | None]] = []
        shown: set[Key] = set()
        for record in look.items:
            own = record.pop("version", None)
            key = (record["kind"], record["id"])
            shown.add(key)
            known = self._said.get(key)
            if known is None or known.record != record:
                found.append((key, record, own))
        gone = look.gone if not look.whole else [key for key in self._said if key not in shown]
        for key in gone:
            known = self._said.get(key)
            if key not in shown and known is not None and known.record is not None:
                found.append((key, None, None))
        return found

    def apply(self, changes: list[tuple[Key, Record | None, int | None]], head: int) -> int:
        self.seq = max(self.seq, head)
        self._frames.clear()
        if self.began is None:
            self.began = self.seq
        elif not changes:
            return 0
        self.turn += 1
        self._cached.clear()
        for key, record, own in changes:
            known = self._said.get(key)
            least = self._lowest if known is None else known.version + 1
            version = max(self.seq if own is None else own, least)
            kind, name = key
            words: Record = {"kind": kind, "id": name, "version": version}
            data = encode(words | ({"removed": True} if record is None else record))
            self._said[key] = Said(record, version, self.turn, self.seq, data)
            self._said.move_to_end(key)
            if record is None:
                self._removed[key] = self.turn
                self._removed.move_to_end(key)
            else:
                self._removed.pop(key, None)
        while len(self._removed) > self._most:
            key, turn = self._removed.popitem(last=False)
            self._forgotten = max(self._forgotten, turn)
            one = self._said.pop(key)
            self._forgotten_seq = max(self._forgotten_seq, one.seq)
            self._lowest = max(self._lowest, one.version + 1)
        return len(changes)

    # --- what is told ---

    def whole(self) -> bytes:
        """All records there are, as the inside of a JSON list."""
        return self._once(0, (one.data for one in self._said.values() if one.record is not None))

    def since(self, turn: int) -> bytes | None:
        """Everything changed after a turn, in its present state; None when that is no longer known."""
        if turn < self._forgotten:
            return None
        return self._once(turn, (one.data for one in self._after(turn))) if turn else self.whole()

    def turn_at(self, seq: int) -> int | None:
        """The turn of one who has heard everything before this number, perhaps more; None when unknown."""
        if self.began is None or not max(self.began, self._forgotten_seq) < seq <= self.seq:
            return None
        turn = self.turn
        for one in reversed(self._said.values()):
            if one.seq < seq:
                break
            turn = min(turn, one.turn - 1)
        return turn if turn > 0 else None

    @property
    def is_empty(self) -> bool:
        """Nothing was ever said: there is nothing to come back to."""
        return not self._said

    def records(self) -> Mapping[Key, Record]:
        return {key: one.record for key, one in self._said.items() if one.record is not None}

    def _after(self, turn: int) -> list[Said]:
        found = []
        for one in reversed(self._said.values()):
            if one.turn <= turn:
                break
            found.append(one)
        found.reverse()
        return found

    def _once(self, turn: int, parts: Iterable[bytes]) -> bytes:
        """Most followers have heard the same: what one is told is put together for all of them."""
        known = self._cached.get(turn)
        if known is None:
            known = self._cached[turn] = b",".join(parts)
        return known

    def snapshot(self, now_ns: int) -> bytes:
        return self._framed("snapshot", 0, now_ns, self.whole())

    def delta(self, turn: int, now_ns: int) -> bytes | None:
        """What `since` says, as a frame; None when that is no longer known."""
        missed = self.since(turn)
        return None if missed is None else self._framed("delta", turn, now_ns, missed)

    def resync(self, now_ns: int) -> bytes:
        return frame("resync", self, from_ns(now_ns))

    def _framed(self, kind: str, turn: int, now_ns: int, items: bytes) -> bytes:
        """The same bytes for all who are told at once: so they are also compressed once for all of them."""
        known = self._frames.get((kind, turn))
        if known is None or not 0 <= now_ns - known[0] < SHARED_NS:
            known = self._frames[kind, turn] = now_ns, frame(kind, self, from_ns(now_ns), items)
        return known[1]


def frame(kind: str, channel: Channel, at: str, items: bytes = b"") -> bytes:
    head = encode({"type": kind, "topic": channel.topic, "seq": channel.seq, "at": at})
    return head[:-1] + b',"items":[' + items + b"]}"

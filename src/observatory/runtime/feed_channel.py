"""One live topic of one tenant: its records as last published, folded and encoded once for all followers.

A record is plain data with `kind` and `id`. What a source returns is compared with what was published; a
difference is a change with a new version. Records are kept in the order of their last change, and a follower
remembers only the last turn it received: what it missed since is the end of that order, in its current state.
So a stalled follower costs one number, however long it stalls (rules S284–S287).

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
# How many removals are remembered; a follower that missed an earlier one has to resync.
REMOVALS = 5_000
# How long a frame built for one follower is reused for others at the same turn: they share its timestamp.
SHARED_NS = 50_000_000
encode = msgspec.json.Encoder().encode


class SourceChanges(NamedTuple):
    """What a source returns: records that may have changed, and records that are gone."""

    items: Iterable[Record]
    gone: Iterable[Key] = ()
    whole: bool = False  # `items` is the complete set
    soon: bool = False  # more will follow: poll again at the next tick, even without a commit


class TopicSource(Protocol):
    """A pure function of committed rows and the clock, polled repeatedly; it may cache rows."""

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        """What changed since the last call, up to `head`; with `again` also what time alone changes."""

    async def close(self) -> None: ...


class _Published(msgspec.Struct, frozen=True, gc=False):
    record: Record | None  # None when it was removed
    version: int
    turn: int
    seq: int
    data: bytes


class LiveTopic:
    """`turn` counts the updates that changed anything; 0 before the first."""

    def __init__(self, tenant_id: str, topic: str, source: TopicSource, removals: int = REMOVALS) -> None:
        self.tenant_id, self.topic, self.source = tenant_id, topic, source
        self.turn = self.seq = 0
        self.began: int | None = None  # the sequence number at which it was first folded
        self._published: OrderedDict[Key, _Published] = OrderedDict()
        self._removed: OrderedDict[Key, int] = OrderedDict()
        # Turn and sequence number of the newest removal that is no longer remembered.
        self._forgotten = self._forgotten_seq = 0
        self._lowest = 0  # a record that returns gets a version above that of every forgotten removal
        self._max_removals = removals
        self._cached: dict[int, bytes] = {}
        self._frames: dict[tuple[str, int], tuple[int, bytes]] = {}

    def fold(self, look: SourceChanges, head: int) -> int:
        """Publish what changed; returns how many records did."""
        return self.apply(self.changes(look), head)

    def changes(self, look: SourceChanges) -> list[tuple[Key, Record | None, int | None]]:
        """Compare with what was published, which is only read: may run in a thread."""
        found: list[tuple[Key, Record | None, int | None]] = []
        present: set[Key] = set()
        for record in look.items:
            own = record.pop("version", None)
            key = (record["kind"], record["id"])
            present.add(key)
            known = self._published.get(key)
            if known is None or known.record != record:
                found.append((key, record, own))
        gone = look.gone if not look.whole else [key for key in self._published if key not in present]
        for key in gone:
            known = self._published.get(key)
            if key not in present and known is not None and known.record is not None:
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
            known = self._published.get(key)
            least = self._lowest if known is None else known.version + 1
            version = max(self.seq if own is None else own, least)
            kind, name = key
            envelope: Record = {"kind": kind, "id": name, "version": version}
            data = encode(envelope | ({"removed": True} if record is None else record))
            self._published[key] = _Published(record, version, self.turn, self.seq, data)
            self._published.move_to_end(key)
            if record is None:
                self._removed[key] = self.turn
                self._removed.move_to_end(key)
            else:
                self._removed.pop(key, None)
        while len(self._removed) > self._max_removals:
            key, turn = self._removed.popitem(last=False)
            self._forgotten = max(self._forgotten, turn)
            one = self._published.pop(key)
            self._forgotten_seq = max(self._forgotten_seq, one.seq)
            self._lowest = max(self._lowest, one.version + 1)
        return len(changes)

    # --- frames for followers ---

    def whole(self) -> bytes:
        """All records, as the inside of a JSON list."""
        return self._once(0, (one.data for one in self._published.values() if one.record is not None))

    def since(self, turn: int) -> bytes | None:
        """All records changed after a turn, in their current state; None when that is no longer known."""
        if turn < self._forgotten:
            return None
        return self._once(turn, (one.data for one in self._after(turn))) if turn else self.whole()

    def turn_at(self, seq: int) -> int | None:
        """The turn of a follower that has everything before this sequence number; None when unknown."""
        if self.began is None or not max(self.began, self._forgotten_seq) < seq <= self.seq:
            return None
        turn = self.turn
        for one in reversed(self._published.values()):
            if one.seq < seq:
                break
            turn = min(turn, one.turn - 1)
        return turn if turn > 0 else None

    @property
    def is_empty(self) -> bool:
        """Nothing was ever published: a reconnecting follower needs nothing kept."""
        return not self._published

    def records(self) -> Mapping[Key, Record]:
        return {key: one.record for key, one in self._published.items() if one.record is not None}

    def _after(self, turn: int) -> list[_Published]:
        found = []
        for one in reversed(self._published.values()):
            if one.turn <= turn:
                break
            found.append(one)
        found.reverse()
        return found

    def _once(self, turn: int, parts: Iterable[bytes]) -> bytes:
        """Most followers are at the same turn: what one needs is built once for all of them."""
        known = self._cached.get(turn)
        if known is None:
            known = self._cached[turn] = b",".join(parts)
        return known

    def snapshot(self, now_ns: int) -> bytes:
        return self._framed("snapshot", 0, now_ns, self.whole())

    def delta(self, turn: int, now_ns: int) -> bytes | None:
        """The result of `since` as a frame; None when that is no longer known."""
        missed = self.since(turn)
        return None if missed is None else self._framed("delta", turn, now_ns, missed)

    def resync(self, now_ns: int) -> bytes:
        return frame("resync", self, from_ns(now_ns))

    def _framed(self, kind: str, turn: int, now_ns: int, items: bytes) -> bytes:
        """The same bytes for all followers at one time, so that they are also compressed only once."""
        known = self._frames.get((kind, turn))
        if known is None or not 0 <= now_ns - known[0] < SHARED_NS:
            known = self._frames[kind, turn] = now_ns, frame(kind, self, from_ns(now_ns), items)
        return known[1]


def frame(kind: str, channel: LiveTopic, at: str, items: bytes = b"") -> bytes:
    head = encode({"type": kind, "topic": channel.topic, "seq": channel.seq, "at": at})
    return head[:-1] + b',"items":[' + items + b"]}"

"""Verification in worker processes: each opens the database itself and checks one segment of one tenant.

The chain is `ledger.verify`'s business. Here the archive beside it is checked too: every event that names
a message's digest must have that message, and its bytes must hash to it unless they were shredded by order.
Of the log each process brings back its part (`Span`); joined they give the root, as of any size asked for.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from observatory.cli.terminal import CommandFailed
from observatory.features.verification.verify_log_root import LogBreak
from observatory.features.verification.verify_rows import Stored, Trail, open_trail
from observatory.ledger.export import hashes_of
from observatory.ledger.verify import GENESIS, Break, ChainCheck, Result, merge, plan_segments
from observatory.ledger.verify_log import Span
from observatory.ledger.verify_trail import EVENTS as THOUGHT_EVENTS

Advance = Callable[[int], None]
# Below this a process of its own costs more than it saves.
WORTH_A_WORKER = 20_000


class Segment(msgspec.Struct, frozen=True):
    url: str
    tenant_id: str
    start: int
    end: int
    payloads: bool
    sizes: tuple[int, ...] = ()  # of the log, whose roots are asked for


class PayloadBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    sentence: str
    what: str = "payload"


class Found(msgspec.Struct):
    """What one segment, or a whole tenant, turned out to be. `payloads` counts bytes checked."""

    result: Result
    payloads: int = 0
    shredded: int = 0
    payload_break: PayloadBreak | None = None
    spans: tuple[Span, ...] = ()  # one for each size asked for
    claims: dict[int, int] = {}  # shredded message -> the event its row names
    orders: dict[int, int] = {}  # message -> the event that ordered it to be shredded
    thoughts: list[int] = []  # events that tell of thoughts, in order
    thinking: bool | LogBreak | None = None  # whether what is kept of them is what they tell

    @property
    def first_break(self) -> Break | PayloadBreak | None:
        chain, archive = self.result.first_break, self.payload_break
        if chain is None or archive is None:
            return chain or archive
        return archive if archive.sequence_number < chain.sequence_number else chain


class _Attributes(msgspec.Struct):
    digest: str | None = msgspec.field(default=None, name="av.message.digest")


class _Body(msgspec.Struct):
    event_type: str = ""
    command: str | None = None
    after_hash: str | None = None
    held_sequence_number: int | None = None
    shredded_sequence_numbers: tuple[int, ...] = ()


class _Named(msgspec.Struct):
    attributes: _Attributes
    body: _Body


_named = msgspec.json.Decoder(_Named).decode


class Payloads:
    """The archive beside verified events."""

    def __init__(self) -> None:
        self.checked = self.shredded = 0
        self.claims: dict[int, int] = {}
        self.orders: dict[int, int] = {}
        self.thoughts: list[int] = []

    def found(self, result: Result, foreign: PayloadBreak | None, spans: tuple[Span, ...]) -> Found:
        archive = (self.checked, self.shredded, foreign)
        return Found(result, *archive, spans, self.claims, self.orders, self.thoughts)

    def first_foreign(self, rows: Iterable[Stored]) -> PayloadBreak | None:
        for row in rows:
            problem = self._problem(row)
            if problem is not None:
                return PayloadBreak(row.sequence_number, problem)
        return None

    def _problem(self, row: Stored) -> str | None:
        event = _named(row.record)
        number, named, body = row.sequence_number, event.attributes.digest, event.body
        if body.event_type in THOUGHT_EVENTS:
            self.thoughts.append(number)
        for gone in body.shredded_sequence_numbers:
            self.orders.setdefault(gone, number)
        if body.event_type == "hitl_intervention" and body.command in ("rewrite", "edit"):
            return self._rewrite_problem(row, body.after_hash)
        if named is None and row.digest is None:
            return None
        if row.digest is None and body.held_sequence_number is not None:
            # Released or rejected now, archived when it was held: checked there.
            return None if body.held_sequence_number < number else f"Event {number} names a later message."
        if row.digest is None:
            return f"The message that event {number} tells of is not in the archive."
        if named is None:
            return f"The archive has a message {number} that its event does not name."
        # A column bent by hand may hold anything, text too.
        if row.digest and not (isinstance(row.digest, bytes) and named == "sha256:" + row.digest.hex()):
            return f"The digest stored for message {number} is not the one its event names."
        if not row.has_payload:
            return f"The bytes of message {number} are gone, and no event ordered it."
        if row.raw is not None:
            self.checked += 1
            if isinstance(row.raw, bytes) and named == "sha256:" + sha256(row.raw).hexdigest():
                return None
            return f"The archived bytes of message {number} are not those its event names."
        if row.shredded_by is None:
            return f"The bytes of message {number} are gone, and no event ordered it."
        self.shredded += 1
        self.claims[number] = row.shredded_by
        return None

    def _rewrite_problem(self, row: Stored, named: str | None) -> str | None:
        """What a person put there is archived like any message, under the event that tells of it."""
        number = row.sequence_number
        if row.rewritten is None:
            return f"The content that event {number} put in the place of a message is not in the archive."
        if row.rewritten == b"":  # shredded with the message in whose place it stood
            self.shredded += 1
            return None
        self.checked += 1
        if isinstance(row.rewritten, bytes) and named == "sha256:" + sha256(row.rewritten).hexdigest():
            return None
        return f"The content stored for the rewrite {number} is not the one its event names."


def unordered(found: Found, end: int, is_whole: bool) -> PayloadBreak | None:
    """The first message that was shredded by no event; one past a part of the trail cannot be looked up."""
    for number, event in sorted(found.claims.items()):
        is_ordered = found.orders.get(number) == event
        if not is_ordered and (is_whole or not isinstance(event, int) or event <= end):
            return PayloadBreak(number, f"The bytes of message {number} are gone, and no event ordered it.")
    return None


class Leaves:
    """What the log is made of, as of several sizes: leaves of rows that verified, in order."""

    def __init__(self, start: int, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self.spans = tuple(Span(start) for _ in sizes)

    def add(self, rows: Sequence[Any]) -> None:
        """Rows begin with their number, and have the leaf hash in third place."""
        for span, size in zip(self.spans, self._sizes, strict=True):
            inside = rows if rows and rows[-1][0] <= size else [row for row in rows if row[0] <= size]
            span.extend([row[2] for row in inside])


def check_segment(segment: Segment, advance: Advance) -> Found:
    """Check one segment in this process."""
    trail = open_trail(segment.url)
    leaves = Leaves(segment.start - 1, segment.sizes)
    try:
        check = _begun(trail, segment)
        if not segment.payloads:
            for page in trail.rows(segment.tenant_id, segment.start, segment.end):
                if not check.feed(page):
                    break
                leaves.add(page)
                advance(len(page))
            return Found(check.result(), spans=leaves.spans)
        archive = Payloads()
        foreign = None
        for rows in trail.stored(segment.tenant_id, segment.start, segment.end):
            held = check.feed([(*row[:3], row.columns) for row in rows])
            sound = [row for row in rows if row.sequence_number <= check.result().last_sequence]
            foreign = archive.first_foreign(sound)
            if not held or foreign is not None:
                break
            leaves.add(rows)
            advance(len(rows))
        return archive.found(check.result(), foreign, leaves.spans)
    finally:
        trail.close()


def _begun(trail: Trail, segment: Segment) -> ChainCheck:
    """A segment starts from the stored hash of the row before it; the one before must prove that."""
    if segment.start == 1:
        return ChainCheck(segment.tenant_id, 0, GENESIS)
    before = trail.record(segment.tenant_id, segment.start - 1)
    # Without that row the segment before breaks at it, and nothing found here counts.
    return ChainCheck(segment.tenant_id, segment.start - 1, hashes_of(before)[0] if before else "missing")


def check_range(whole: Segment, workers: int, head: tuple[int, str] | None, advance: Advance) -> Found:
    """The whole range of one tenant, over so many processes. `head`: where the chain must end."""
    if whole.end - whole.start + 1 < WORTH_A_WORKER:
        workers = 1
    parts = plan_segments(whole.start, whole.end, workers) or [(whole.start, whole.end)]
    segments = [msgspec.structs.replace(whole, start=low, end=high) for low, high in parts]
    found = [check_segment(segments[0], advance)] if len(segments) == 1 else _in_processes(segments, advance)
    joined = _joined(found, head)
    if joined.first_break is None:
        joined.payload_break = unordered(joined, whole.end, head is not None)
    return joined


def _in_processes(segments: Sequence[Segment], advance: Advance) -> list[Found]:
    context = multiprocessing.get_context("spawn")
    pipes: dict[Any, int] = {}
    processes = []
    for number, segment in enumerate(segments):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(segment, theirs), daemon=True)
        process.start()
        theirs.close()
        processes.append(process)
        pipes[mine] = number
    found: dict[int, Found] = {}
    try:
        while len(found) < len(segments):
            for pipe in wait(list(pipes)):
                assert isinstance(pipe, Connection)
                kind, value = _received(pipe)
                if kind == "failed":
                    raise CommandFailed(value)
                if kind == "done":
                    found[pipes.pop(pipe)] = value
                else:
                    advance(value)
    finally:
        for process in processes:
            process.terminate() if len(found) < len(segments) else None
            process.join()
    return [found[number] for number in range(len(segments))]


def _received(pipe: Connection) -> tuple[str, Any]:
    try:
        kind, value = pipe.recv()
    except EOFError:
        return "failed", "a verifying process ended unexpectedly; try again with --workers 1"
    return kind, value


def _work(segment: Segment, pipe: Connection) -> None:
    try:
        found = check_segment(segment, lambda step: pipe.send(("step", step)))
        pipe.send(("done", found))
    except CommandFailed as error:
        pipe.send(("failed", str(error)))


def _joined(parts: Sequence[Found], head: tuple[int, str] | None) -> Found:
    """Segments in order; what lies past the first break of either kind says nothing."""
    counted: list[Found] = []
    for part in parts:
        counted.append(part)
        if part.payload_break is not None or part.result.first_break is not None:
            break
    foreign = counted[-1].payload_break
    spans = counted[0].spans
    for part in counted[1:]:
        for whole, following in zip(spans, part.spans, strict=True):
            whole.join(following)
    return Found(
        merge([part.result for part in counted], None if foreign else head),
        sum(part.payloads for part in counted),
        sum(part.shredded for part in counted),
        foreign,
        spans,
        {number: event for part in counted for number, event in part.claims.items()},
        {number: event for part in reversed(counted) for number, event in part.orders.items()},
        [number for part in counted for number in part.thoughts],
    )

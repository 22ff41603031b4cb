"""Verification in worker processes: each opens the database itself and checks one segment of one tenant.

`ledger.verify` checks the chain. This module also checks the archive: every event that names a message's
digest must have that message, and its bytes must hash to it unless they were shredded by order. Each process
returns its part of the log (`Span`); joined they give the root at any requested size.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from observatory.cli.terminal import CommandFailed
from observatory.cli.verify.log_root import LogBreak
from observatory.cli.verify.rows import ArchivedEvent, TrailReader, open_trail
from observatory.ledger.export import hashes_of
from observatory.ledger.verify import GENESIS, ChainBreak, ChainCheck, ChainResult, merge, plan_segments
from observatory.ledger.verify_log import TreeSpan
from observatory.ledger.verify_trail import EVENTS as THOUGHT_EVENTS

Advance = Callable[[int], None]
# Below this a worker process costs more than it saves.
WORTH_A_WORKER = 20_000


class Segment(msgspec.Struct, frozen=True):
    url: str
    tenant_id: str
    start: int
    end: int
    payloads: bool
    sizes: tuple[int, ...] = ()  # sizes of the log whose roots are needed


class PayloadBreak(msgspec.Struct, frozen=True):
    sequence_number: int
    sentence: str
    what: str = "payload"


class SegmentResult(msgspec.Struct):
    """The result of one segment or a whole tenant. `payloads` counts checked messages."""

    result: ChainResult
    payloads: int = 0
    shredded: int = 0
    payload_break: PayloadBreak | None = None
    spans: tuple[TreeSpan, ...] = ()  # one for each requested size
    claims: dict[int, int] = {}  # shredded message -> the event its row names
    orders: dict[int, int] = {}  # message -> the event that ordered it to be shredded
    thoughts: list[int] = []  # thought events, in order
    thinking: bool | LogBreak | None = None  # whether the stored thoughts match them

    @property
    def first_break(self) -> ChainBreak | PayloadBreak | None:
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


class ArchiveCheck:
    """Checks the archived messages of verified events."""

    def __init__(self) -> None:
        self.checked = self.shredded = 0
        self.claims: dict[int, int] = {}
        self.orders: dict[int, int] = {}
        self.thoughts: list[int] = []

    def found(
        self, result: ChainResult, foreign: PayloadBreak | None, spans: tuple[TreeSpan, ...]
    ) -> SegmentResult:
        archive = (self.checked, self.shredded, foreign)
        return SegmentResult(result, *archive, spans, self.claims, self.orders, self.thoughts)

    def first_foreign(self, rows: Iterable[ArchivedEvent]) -> PayloadBreak | None:
        for row in rows:
            problem = self._problem(row)
            if problem is not None:
                return PayloadBreak(row.sequence_number, problem)
        return None

    def _problem(self, row: ArchivedEvent) -> str | None:
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
            # Released or rejected here, archived when it was held: checked there.
            return None if body.held_sequence_number < number else f"Event {number} names a later message."
        if row.digest is None:
            return f"The message of event {number} is not in the archive."
        if named is None:
            return f"The archive has a message {number} that its event does not name."
        # A tampered column may hold anything, including text.
        if row.digest and not (isinstance(row.digest, bytes) and named == "sha256:" + row.digest.hex()):
            return f"The digest stored for message {number} is not the one its event names."
        if not row.has_payload:
            return f"The bytes of message {number} are missing, and no event ordered it."
        if row.raw is not None:
            self.checked += 1
            if isinstance(row.raw, bytes) and named == "sha256:" + sha256(row.raw).hexdigest():
                return None
            return f"The archived bytes of message {number} do not match its event."
        if row.shredded_by is None:
            return f"The bytes of message {number} are missing, and no event ordered it."
        self.shredded += 1
        self.claims[number] = row.shredded_by
        return None

    def _rewrite_problem(self, row: ArchivedEvent, named: str | None) -> str | None:
        """Content that a person put in is archived like any message, under its own event."""
        number = row.sequence_number
        if row.rewritten is None:
            return f"The content that event {number} put in the place of a message is not in the archive."
        if row.rewritten == b"":  # shredded with the message it replaced
            self.shredded += 1
            return None
        self.checked += 1
        if isinstance(row.rewritten, bytes) and named == "sha256:" + sha256(row.rewritten).hexdigest():
            return None
        return f"The content stored for the rewrite {number} is not the one its event names."


def first_unordered_shred(found: SegmentResult, end: int, is_whole: bool) -> PayloadBreak | None:
    """The first message shredded without an order; an order outside a partial range cannot be looked up."""
    for number, event in sorted(found.claims.items()):
        is_ordered = found.orders.get(number) == event
        if not is_ordered and (is_whole or not isinstance(event, int) or event <= end):
            return PayloadBreak(
                number, f"The bytes of message {number} are missing, and no event ordered it."
            )
    return None


class LogLeaves:
    """The log's leaves at several sizes: those of verified rows, in order."""

    def __init__(self, start: int, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self.spans = tuple(TreeSpan(start) for _ in sizes)

    def add(self, rows: Sequence[Any]) -> None:
        """A row's first column is its number, the third its leaf hash."""
        for span, size in zip(self.spans, self._sizes, strict=True):
            inside = rows if rows and rows[-1][0] <= size else [row for row in rows if row[0] <= size]
            span.extend([row[2] for row in inside])


def check_segment(segment: Segment, advance: Advance) -> SegmentResult:
    """Check one segment in this process."""
    trail = open_trail(segment.url)
    leaves = LogLeaves(segment.start - 1, segment.sizes)
    try:
        check = _begun(trail, segment)
        if not segment.payloads:
            for page in trail.rows(segment.tenant_id, segment.start, segment.end):
                if not check.feed(page):
                    break
                leaves.add(page)
                advance(len(page))
            return SegmentResult(check.result(), spans=leaves.spans)
        archive = ArchiveCheck()
        foreign = None
        for rows in trail.stored(segment.tenant_id, segment.start, segment.end):
            is_valid = check.feed([(*row[:3], row.columns) for row in rows])
            sound = [row for row in rows if row.sequence_number <= check.result().last_sequence]
            foreign = archive.first_foreign(sound)
            if not is_valid or foreign is not None:
                break
            leaves.add(rows)
            advance(len(rows))
        return archive.found(check.result(), foreign, leaves.spans)
    finally:
        trail.close()


def _begun(trail: TrailReader, segment: Segment) -> ChainCheck:
    """A segment starts from the stored hash of the row before it; the previous segment must prove that."""
    if segment.start == 1:
        return ChainCheck(segment.tenant_id, 0, GENESIS)
    before = trail.record(segment.tenant_id, segment.start - 1)
    # Without that row the previous segment breaks there, and this segment's result is not used.
    return ChainCheck(segment.tenant_id, segment.start - 1, hashes_of(before)[0] if before else "missing")


def check_range(
    whole: Segment, workers: int, head: tuple[int, str] | None, advance: Advance
) -> SegmentResult:
    """Check a range of one tenant in several processes. `head`: where the chain must end."""
    if whole.end - whole.start + 1 < WORTH_A_WORKER:
        workers = 1
    parts = plan_segments(whole.start, whole.end, workers) or [(whole.start, whole.end)]
    segments = [msgspec.structs.replace(whole, start=low, end=high) for low, high in parts]
    found = [check_segment(segments[0], advance)] if len(segments) == 1 else _in_processes(segments, advance)
    joined = _joined(found, head)
    if joined.first_break is None:
        joined.payload_break = first_unordered_shred(joined, whole.end, head is not None)
    return joined


def _in_processes(segments: Sequence[Segment], advance: Advance) -> list[SegmentResult]:
    context = multiprocessing.get_context("spawn")
    pipes: dict[Any, int] = {}
    processes = []
    for number, segment in enumerate(segments):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(segment, sender), daemon=True)
        process.start()
        sender.close()
        processes.append(process)
        pipes[receiver] = number
    found: dict[int, SegmentResult] = {}
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
        return "failed", "a worker process ended unexpectedly; try again with --workers 1"
    return kind, value


def _work(segment: Segment, pipe: Connection) -> None:
    try:
        found = check_segment(segment, lambda step: pipe.send(("step", step)))
        pipe.send(("done", found))
    except CommandFailed as error:
        pipe.send(("failed", str(error)))


def _joined(parts: Sequence[SegmentResult], head: tuple[int, str] | None) -> SegmentResult:
    """Join segments in order; results past the first break of either kind are dropped."""
    counted: list[SegmentResult] = []
    for part in parts:
        counted.append(part)
        if part.payload_break is not None or part.result.first_break is not None:
            break
    foreign = counted[-1].payload_break
    spans = counted[0].spans
    for part in counted[1:]:
        for whole, following in zip(spans, part.spans, strict=True):
            whole.join(following)
    return SegmentResult(
        merge([part.result for part in counted], None if foreign else head),
        sum(part.payloads for part in counted),
        sum(part.shredded for part in counted),
        foreign,
        spans,
        {number: event for part in counted for number, event in part.claims.items()},
        {number: event for part in reversed(counted) for number, event in part.orders.items()},
        [number for part in counted for number in part.thoughts],
    )

"""The input and output types of folds: committed messages and events in, rows and findings out.

Law: everything here can be rebuilt from the archive. A fold gets committed rows in sequence order
and returns rows of the derived store; folding the same event again gives the same rows. Counters are
added once per event: the cursor moves in the transaction that adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal, Protocol

import msgspec

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.otel import span_id_of
from observatory.store.keys import dedupe_key


class FoldMessage(msgspec.Struct, frozen=True, gc=False):
    """One archived message with decoded content; without `log` and `envelope` when it was shredded."""

    seq: int
    session_no: int
    session_id: str
    agent_no: int  # 0 when no agent sent it
    agent_id: str
    agent_type: str | None
    cluster_id: str | None
    message_id: str
    step_id: str
    name: str  # of the step, unique per tenant; parents refer to it
    message_type: str
    state: str  # forwarded, held, refused, rejected: as of reading
    parents: tuple[str, ...]  # names
    parent_inferred: bool
    span: str | None  # None: derived from its step id
    parent_span_id: str | None
    at_ns: int  # the gateway's clock, used for durations and windows
    entropy: float | None
    log: DecisionLog | None
    envelope: Envelope | None
    recipient_no: int = 0  # the agent it was addressed to by name, if known
    # Released with other content than it was archived with: replaces what was folded, is not counted again.
    revised: bool = False

    @property
    def span_id(self) -> str:
        """Computed on demand: few graphs use spans, all others would hash every step for nothing."""
        return span_id_of(self.step_id) if self.span is None else self.span


class FoldEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Any other event of the chain: violations, interventions, alerts."""

    seq: int
    event_type: str
    at_ns: int
    session_no: int
    agent_id: str | None  # as named in the event's body
    body: dict[str, Any]
    agent_no: int = 0  # the agent's number, if it was known by then


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Consecutive numbers of one tenant, `after` exclusive, `until` inclusive."""

    tenant_id: str
    after: int
    until: int
    messages: Sequence[FoldMessage]
    events: Sequence[FoldEvent]


class DerivedWrite(msgspec.Struct, frozen=True, gc=False):
    """Rows for one table of the derived store; each row names the same columns, `tenant_id` is filled in.

    `replace` upserts on the table's key. `add` adds the columns that are no part of the key to what is there.
    `clear` names numbers whose rows are removed first (column `seq`). `purge`: terms removed from
    the index must leave its file too, not only the results.
    """

    table: str
    rows: Sequence[dict[str, Any]]
    mode: Literal["replace", "add"] = "replace"
    clear: Sequence[int] = ()
    purge: bool = False


class Finding(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Something an operator must be notified of: the gateway submits it as a command, which checks again.

    `body` holds ids, numbers, hashes and names of agents and tools, never payload text.
    """

    kind: Literal["loop_detected", "loop_ended", "cycle", "orphan", "injection"]
    seq: int
    session_id: str
    agent_id: str
    at_ns: int
    body: dict[str, Any]


class Fold(Protocol):
    """One fold (a feature's `fold.py`); keeps only what it can read again, in bounded memory."""

    name: str

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        """The rows for these messages. Called in order; after a failure, again with the same batch."""

    def forget(self) -> None:
        """The batch was not written, or another analyst wrote it: drop everything cached."""


# Several folds need a step's keys when it arrives, and again when other steps name it.
step_key = lru_cache(maxsize=16_384)(dedupe_key)


def ended_by(event: FoldEvent) -> int | None:
    """The held message whose content is final from this event on."""
    number = event.body.get("held_sequence_number")
    return number if event.event_type in ENDINGS and isinstance(number, int) else None


def shredded_by(event: FoldEvent) -> list[int]:
    """The messages whose content this event shreds."""
    numbers = event.body.get("shredded_sequence_numbers") if event.event_type == SHREDDED else None
    return [one for one in numbers if isinstance(one, int)] if isinstance(numbers, list) else []


SHREDDED = "payload_shredded"


# Events that end a message's hold; the message is delivered again.
ENDINGS: Final = frozenset({"message_delivered", "heartbeat", "message_rejected"})

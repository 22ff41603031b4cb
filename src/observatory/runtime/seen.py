"""A committed message as the folds see it, and what folds give back.

Law: everything here can be made again from the archive. A fold is handed committed rows in sequence order
and returns rows of the derived store; whoever folds the same number again writes the same rows. Counters are
added once a number: the cursor moves in the transaction that adds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.otel import span_id_of


class Seen(msgspec.Struct, frozen=True, gc=False):
    """One archived message with its content read again; without `log` and `envelope` when it was shredded."""

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
    state: str  # forwarded, held, refused, rejected: when it was read
    parents: tuple[str, ...]  # names
    parent_inferred: bool
    span: str | None  # None: the one its step id gives
    parent_span_id: str | None
    at_ns: int  # the gateway's clock: what durations and windows go by
    entropy: float | None
    log: DecisionLog | None
    envelope: Envelope | None
    recipient_no: int = 0  # the agent it was addressed to by name, if that one is known
    # Released with other content than it was archived with: replaces what was folded before, counts no more.
    revised: bool = False

    @property
    def span_id(self) -> str:
        """Made when asked for: few graphs hang by spans, all others would hash every step in vain."""
        return span_id_of(self.step_id) if self.span is None else self.span


class Noted(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Any other event of the chain: violations, interventions, alerts."""

    seq: int
    event_type: str
    at_ns: int
    session_no: int
    agent_id: str | None  # as the event's body names it
    body: dict[str, Any]
    agent_no: int = 0  # of that agent, if it was known by then


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Consecutive numbers of one tenant, `after` exclusive, `until` inclusive."""

    tenant_id: str
    after: int
    until: int
    messages: Sequence[Seen]
    events: Sequence[Noted]


class Put(msgspec.Struct, frozen=True, gc=False):
    """Rows for one table of the derived store; each row names the same columns, `tenant_id` is filled in.

    `replace` upserts on the table's key. `add` adds the columns that are no part of the key to what is there.
    `clear` names numbers whose rows are removed first (column `seq`). `purge`: words that are taken out of
    the index must leave its file too, not only the answers.
    """

    table: str
    rows: Sequence[dict[str, Any]]
    mode: Literal["replace", "add"] = "replace"
    clear: Sequence[int] = ()
    purge: bool = False


class Finding(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Something an operator must be told: the gateway submits it as an act, which looks again under the lock.

    `body` holds ids, numbers, hashes and names of agents and tools, never payload text.
    """

    kind: Literal["loop_detected", "loop_ended", "cycle", "orphan", "injection"]
    seq: int
    session_id: str
    agent_id: str
    at_ns: int
    body: dict[str, Any]


class Fold(Protocol):
    """Lives in `daemons/folds/`; keeps only what it can read again, in bounded memory."""

    name: str

    async def fold(self, batch: Batch) -> tuple[list[Put], list[Finding]]:
        """The rows these messages make. Called in order; after a failure, again with the same batch."""

    def forget(self) -> None:
        """The batch was not written, or another analyst wrote it: drop everything remembered."""

"""kill -9 under load: nothing acknowledged is lost, nothing is stored twice, the chain verifies each time.

A few cycles of the long run (`make soak` does a hundred). The run itself fails when no kill met an open
transaction, so a pass means that transactions were really cut off. The judge is judged too: shown a record
from which something is missing, it must say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.evidence import Message, SqliteEvidence
from bench.kill import Lost, Outcome, Witness, arena, run
from bench.writers import Ack, Ledger
from observatory.ledger.chain import ChainHead, link
from observatory.ledger.verify import Row
from tests.flows.forked import Forked


@pytest.mark.req(239, 240)
@pytest.mark.parametrize(("kind", "cycles"), [("sqlite", 2), ("postgres", 1)])
def test_acknowledged_messages_survive_kill_9_exactly_once(kind: str, cycles: int, tmp_path: Path) -> None:
    """S20, S21: what was answered 202 is there after kill -9, once, as answered; repeats wrote nothing."""
    with arena(kind, tmp_path / "data", Forked) as (gateway, evidence):
        outcome = run(gateway, evidence, cycles, writers=8, seed=20_260_216, say=print)
    assert outcome.cycles >= cycles
    assert outcome.kills_in_transaction >= 1
    assert outcome.stored == outcome.acknowledged > 0
    assert outcome.resent > 0


def test_an_idle_gateway_is_not_taken_for_one_inside_a_transaction(tmp_path: Path) -> None:
    with Forked(tmp_path / "data") as gateway:
        gateway.freeze()
        try:
            assert not SqliteEvidence(tmp_path / "data" / "observatory.db").has_open_write(gateway.pid)
        finally:
            gateway.thaw()


class Paper:
    """A record in memory, with a correct chain that a case may spoil."""

    def __init__(self) -> None:
        self.chain: list[Row] = []
        self.archive: list[Message] = []
        self.ledger = Ledger()
        self._head = ChainHead.genesis()
        for number in range(1, 6):
            linked = link(self._head, event(number), "tnt_default")
            self._head = linked.head
            self.chain.append((number, linked.record, linked.leaf_hash))
            self.archive.append((number, f"msg_{number}", f"step-{number}", b"digest"))
            self.ledger.acks[f"step-{number}"] = Ack(number, f"msg_{number}", b"digest")

    def head(self) -> tuple[int, str]:
        return self._head.sequence_number, self._head.event_hash

    def events(self, after: int) -> Iterator[Row]:
        return (row for row in self.chain if row[0] > after)

    def messages(self, after: int) -> Iterator[Message]:
        return (row for row in self.archive if row[0] > after)

    def has_open_write(self, pid: int) -> bool:
        return False


def event(number: int) -> dict[str, object]:
    return {
        "audit_event_id": f"evt_{number}",
        "timestamp": "2026-02-16T14:32:00.000000000Z",
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "body": {"event_type": "message_delivered"},
        "resource": {"av.tenant.id": "tnt_default"},
        "attributes": {},
    }


def test_a_whole_record_satisfies_the_witness() -> None:
    paper = Paper()
    Witness(paper).check(paper.ledger, whole=True)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda paper: paper.archive.pop(2), "is not stored"),
        (lambda paper: paper.archive.append((6, "msg_6", "step-1", b"digest")), "stored twice"),
        (lambda paper: paper.archive.__setitem__(0, (1, "msg_9", "step-1", b"digest")), "is stored as"),
        (lambda paper: paper.archive.__setitem__(0, (1, "msg_1", "step-1", b"other")), "is stored as"),
        (lambda paper: paper.chain.pop(2), "the chain is broken"),
        (lambda paper: paper.chain.pop(), "the chain is broken"),
        (lambda paper: paper.ledger.faults.append("answered 500"), "a wrong answer"),
    ],
    ids=["lost", "twice", "other id", "other bytes", "gap", "cut tail", "wrong answer"],
)
def test_the_witness_sees_what_is_broken(spoil: Callable[[Paper], object], sentence: str) -> None:
    paper = Paper()
    spoil(paper)
    with pytest.raises(Lost, match=sentence):
        Witness(paper).check(paper.ledger, whole=True)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(cycles=3, acknowledged=9, kills_with_messages_in_flight=3),
        Outcome(cycles=3, acknowledged=9, kills_in_transaction=3),
        Outcome(cycles=3, kills_in_transaction=3, kills_with_messages_in_flight=3),
    ],
    ids=["no open transaction", "nothing in flight", "nothing acknowledged"],
)
def test_a_run_that_proves_nothing_fails(outcome: Outcome) -> None:
    with pytest.raises(Lost, match="proves nothing"):
        outcome.judge()

"""What an import makes again of insight, event by event."""

from __future__ import annotations

from typing import Any

from observatory.features.facts.types import fact_name, fact_named
from observatory.features.loops.queries import open_loops
from observatory.features.rebuild.insight import InsightRows
from observatory.ledger.chain import ChainHead
from observatory.pipeline.rows import SessionRow, TenantRow
from observatory.pipeline.state import BatchState, TenantConfig, TransactionChanges

AT = "2026-11-16T09:30:00.000000000Z"


def event(kind: str, **body: Any) -> dict[str, Any]:
    return {
        "body": {"event_type": kind, **body},
        "observed_timestamp": AT,
        "attributes": {"av.sender.entity_id": "usr_1"},
    }


class Import:
    def __init__(self) -> None:
        memory = BatchState(TenantRow(tenant_id="tnt_1", tenant_no=1), ChainHead.genesis(), TenantConfig())
        self.rows, self.changes = InsightRows(memory), TransactionChanges()
        self.session = SessionRow(session_no=1, session_id="s", trace_id="0" * 32)

    def take(self, number: int, one: dict[str, Any], in_session: bool = True) -> None:
        self.rows.apply(number, one, self.session if in_session else None, self.changes)

    def written(self, table: str) -> list[dict[str, Any]]:
        return [write.values for write in self.changes.writes if write.table == table]


def test_every_finding_told_of_moves_the_cursor_and_none_moves_it_back_s189() -> None:
    """S189: cycles and orphans, too; else the import would tell of them again."""
    new = Import()
    for number, (kind, finding) in enumerate(
        (("loop_detected", 3), ("causal_cycle_refused", 7), ("parent_unknown", 8), ("loop_ended", 5)), 1
    ):
        new.take(number, event(kind, agent_id="a", finding_id=finding))
    assert [row["value"] for row in new.written("knobs")] == ["3", "7", "8", "8"]
    assert (open_loops(new.session.loops), new.session.loop_ns) == ([], None)


def test_verdicts_and_false_marks_come_back_without_their_words() -> None:
    new, fact = Import(), fact_name(fact_named("fct_12-1") or 0)
    new.take(1, event("step_reviewed", about_sequence_number=12, verdict="wrong", note_hash="x"), False)
    new.take(2, event("fact_marked_false", fact_id=fact), False)
    new.take(3, event("fact_mark_undone", fact_id=fact), False)
    new.take(4, event("fact_marked_false", fact_id="nonsense"), False)
    (review,) = new.written("reviews")
    assert (review["sequence_number"], review["verdict"], review["reviewed_by"]) == (12, "wrong", "usr_1")
    marked, undone = new.written("fact_marks")
    assert (marked["fact_id"], marked["undone_ns"], marked["note"]) == (fact_named(fact), None, None)
    assert undone == {"undone_ns": marked["marked_ns"]}

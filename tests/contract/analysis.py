"""An analyst for contract tests: the projector and its folds over a house's own record, in this process."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from observatory.derived.seen import Batch, DerivedWrite, Finding, Fold
from observatory.derived.sqlite import derived_path_of
from observatory.derived.tables import DERIVED
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime.projector import Projector
from observatory.store.postgres import PostgresStore
from observatory.stores import all_folds, postgres_derived, sqlite_derived
from tests.contract.conftest import Harness, SqliteHarness
from tests.samples import decision_log


def derived_of(harness: Harness) -> Any:
    """Started; whoever takes it stops it."""
    derived: Any
    if isinstance(harness, SqliteHarness):
        derived = sqlite_derived(derived_path_of(harness.path))
    else:
        assert isinstance(harness.store, PostgresStore)
        derived = postgres_derived(harness.store, harness.url)
    harness.read(derived.start())
    return derived


class Analyst:
    """`with Analyst(house) as analyst:`; every `catch_up` begins as a new process would."""

    def __init__(self, harness: Harness) -> None:
        self.harness, self.derived = harness, derived_of(harness)

    def __enter__(self) -> Analyst:
        return self

    def __exit__(self, *_: object) -> None:
        self.harness.read(self.derived.stop())

    def folds(self) -> list[Fold]:
        return all_folds(self.derived, self.harness.store)

    def projector(self, page: int = 500, folds: list[Fold] | None = None) -> Projector:
        return Projector(
            self.harness.store, self.derived, self.folds() if folds is None else folds, page, 0.0
        )

    def catch_up(self, page: int = 500, rounds: int = 100_000, folds: list[Fold] | None = None) -> Projector:
        """Fold until nothing is left, or for so many rounds."""
        projector = self.projector(page, folds)

        async def run() -> None:
            for _ in range(rounds):
                if not await projector.round():
                    break

        self.harness.read(run())
        return projector

    def table(self, name: str, tenant_id: str = HOME_TENANT) -> list[dict[str, Any]]:
        """All rows of one table, by key."""
        table = DERIVED.tables[name]
        query = select(table).where(table.c.tenant_id == tenant_id).order_by(*table.primary_key.columns)
        rows = self.harness.read(self.derived.fetch(tenant_id, query))
        return [dict(row._mapping) for row in rows]

    def everything(self, tenant_id: str = HOME_TENANT) -> dict[str, list[dict[str, Any]]]:
        """Every table; sums of money are rounded, for they depend on the order of adding."""
        return {name: [_rounded(row) for row in self.table(name, tenant_id)] for name in DERIVED.tables}


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in row.items()}


def steps(analyst: Analyst, tenant_id: str = HOME_TENANT) -> list[dict[str, Any]]:
    return analyst.table("insight_steps", tenant_id)


def spoken(step: str, parent: str | None = None, session: str = "ses-1", **state: Any) -> dict[str, Any]:
    delta = {"added_to_memory": None, "tokens_consumed": 10, "cumulative_session_cost": None} | state
    return decision_log(
        meta={"session_id": session, "step_id": step, "parent_step_id": parent},
        identity={"agent_id": state.pop("agent", "alpha")} if "agent" in state else {"agent_id": "alpha"},
        state_delta={key: value for key, value in delta.items() if key != "agent"},
    )


class Counting:
    """Adds one for every message that is seen for the first time."""

    name = "counting"

    async def fold(self, batch: Batch) -> tuple[list[DerivedWrite], list[Finding]]:
        count = sum(not seen.revised for seen in batch.messages)
        row = {"minute": 1, "session_no": 1, "messages": count, "tokens": 0, "cost": 0.0}
        return [DerivedWrite("insight_session_minutes", [row], "add")], []

    def forget(self) -> None:
        pass

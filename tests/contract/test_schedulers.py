"""Three scheduler processes on one PostgreSQL, a few troubles; `make soak` has all of them."""

from __future__ import annotations

import time

import pytest

from bench import schedulers
from observatory.errors import NotDurable
from observatory.store.migrations.migrate import migrate
from observatory.store.postgres_append import PostgresTransaction
from observatory.stores import postgres_record


def test_a_leader_that_stops_half_way_through_sending_is_cut_off_s462(empty_pg: str) -> None:
    """S462: of what PostgreSQL can limit, only how long a transaction takes ends that."""
    migrate(empty_pg)
    store = postgres_record(empty_pg, lanes=1)

    def limits(tx: PostgresTransaction) -> list[str]:
        ask = "SELECT current_setting('transaction_timeout')"
        before = tx._ask(ask)[0][0]
        tx.leases({"scheduler"})
        return [before, tx._ask(ask)[0][0]]

    def hang(tx: PostgresTransaction) -> None:
        tx.leases({"scheduler"})
        tx._ask("SELECT set_config('statement_timeout', '0', true)")
        tx._ask("SELECT pg_sleep(20)")

    try:
        assert store.transact(0, limits) == ["0", "3s"]
        started = time.monotonic()
        with pytest.raises(NotDurable):
            store.transact(0, hang)
        assert time.monotonic() - started < 15
    finally:
        store.close_lane(0)


@pytest.mark.req(126, 233, 245)
def test_each_job_and_time_exactly_once_whatever_happens_to_the_leaders_s485(empty_pg: str) -> None:
    """S485: paused beyond the lease, killed, their clocks moved; `soak` raises when a promise is broken."""
    # How soon is measured on a quiet machine, by `make soak`; here every core may be busy with other tests.
    figures = schedulers.soak(empty_pg, (120, 1, 1, 1), within_s=20)
    assert "exactly once" in figures

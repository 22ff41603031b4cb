"""Three scheduler processes on one PostgreSQL, a few troubles; `make soak` has all of them."""

from __future__ import annotations

import pytest

from bench import schedulers


@pytest.mark.req(126, 233, 245)
def test_each_job_and_time_exactly_once_whatever_happens_to_the_leaders_s485(empty_pg: str) -> None:
    """S485: paused beyond the lease, killed, their clocks moved; `soak` raises when a promise is broken."""
    # How soon is measured on a quiet machine, by `make soak`; here every core may be busy with other tests.
    figures = schedulers.soak(empty_pg, (120, 1, 1, 1), within_s=20)
    assert "exactly once" in figures

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import httpx2

from observatory.derived.ports import FoldProgress
from observatory.errors import NotDurable
from observatory.http import server
from observatory.http.app import readyz
from observatory.http.request_metrics import RequestMetrics
from observatory.runtime.insight_lag import MAX_TENANTS, InsightLag
from observatory.runtime.metrics import exposition
from tests.prometheus import parsed


def test_doors_tell_answers_and_times_by_their_names_only_s583() -> None:
    """S583: whatever method a stranger sends, there are no more names than routes and methods."""
    doors = RequestMetrics()
    for number in range(200):
        doors.enter()
        doors.leave(f"BREW{number}", "other", 404, 0.001)
    for seconds in (0.005, 0.006, 0.3, 99.0):
        doors.enter()
        doors.leave("GET", "/v1/sessions/{session_id}", 200, seconds)
    doors.enter()
    doors.count(202, 3)
    with doors.socket("/v1/live"):
        families = parsed(exposition(doors.measures()))
    labels = (("endpoint", "/v1/sessions/{session_id}"), ("method", "GET"))
    times = families["observatory_http_seconds"].samples
    at = [times["observatory_http_seconds_bucket", (*labels, ("le", le))] for le in ("0.005", "0.025", "0.5")]
    assert at == [1, 2, 3]
    assert times["observatory_http_seconds_count", labels] == 4
    answers = families["observatory_http_responses_total"].samples
    other = (("endpoint", "other"), ("method", "other"), ("code", "404"))
    assert answers["observatory_http_responses_total", other] == 200 and len(answers) == 2
    assert families["observatory_http_in_flight"].samples == {("observatory_http_in_flight", ()): 1}
    assert families["observatory_sockets"].samples == {
        ("observatory_sockets", (("endpoint", "/v1/live"),)): 1
    }
    assert families["observatory_message_responses_total"].samples == {
        ("observatory_message_responses_total", (("code", "202"),)): 3
    }


def test_who_was_told_to_stop_is_not_ready_s594() -> None:
    """S594: before anything is asked of the store."""

    async def asked() -> Any:
        return await readyz.fn(app=SimpleNamespace(stopping=True))

    answer = asyncio.run(asked())
    assert answer.status_code == 503 and b"stopping" in answer.content


class Many:
    """A house of many tenants, one of them far behind."""

    def __init__(self, count: int) -> None:
        self.all = {f"tnt_{number}": 10 for number in range(count)} | {"tnt_late": 1_000}
        self.asked = 0
        self.is_away = False

    async def heads(self) -> dict[str, int]:
        if self.is_away:
            raise NotDurable("away")
        return self.all

    async def progress(self, tenant_id: str) -> FoldProgress:
        self.asked += 1
        await asyncio.sleep(0)
        return FoldProgress(seq=300 if tenant_id == "tnt_late" else 10, skipped=1)


def test_a_scrape_asks_of_few_tenants_and_finds_the_one_behind_s580() -> None:
    """S580: however many there are, and none that had been folded before."""
    harness = Many(300)
    lag = InsightLag(harness, harness)  # type: ignore[arg-type]

    def scraped() -> dict[str, float]:
        lag._next = 0.0
        return {
            one.name.removeprefix("observatory_insight_"): one.value for one in asyncio.run(lag.measures())
        }

    assert scraped()["lag_messages"] == 700 and harness.asked == MAX_TENANTS
    asyncio.run(lag.measures())
    assert harness.asked == MAX_TENANTS, "and not again at once"
    for _ in range(8):
        scraped()
    before = harness.asked
    assert scraped() == {"lag_messages": 700, "skipped": 301, "unread": 0}
    assert harness.asked == before + 1, "only who is behind is asked again"
    harness.is_away = True
    assert scraped() == {}


def test_scrapes_that_come_together_ask_once_s580() -> None:
    """S580: whoever may read can scrape as often as they like."""
    harness = Many(300)
    lag = InsightLag(harness, harness)  # type: ignore[arg-type]

    async def together() -> None:
        await asyncio.gather(*(lag.measures() for _ in range(5)))

    asyncio.run(together())
    assert harness.asked == MAX_TENANTS


def test_a_connection_is_kept_longer_than_any_client_keeps_it() -> None:
    """Else a request goes into a connection that is just being closed, and is answered by its reset."""
    expiry = httpx2.Limits().keepalive_expiry
    assert expiry is not None and max(60, expiry) < server.KEEP_ALIVE_S

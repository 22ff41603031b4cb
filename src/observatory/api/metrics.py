"""`/metrics`: what the corridor is doing, in Prometheus' text form. No tenant or agent names in labels."""

from __future__ import annotations

from observatory.api.house import House
from observatory.daemons.home import tenants
from observatory.errors import NotDurable


def exposition(house: House) -> str:
    counters = house.committer.counters
    messages, size = house.committer.waiting
    lines = [
        *_metric("observatory_committed_total", "counter", "Submissions committed", counters.committed),
        *_metric("observatory_batches_total", "counter", "Transactions committed", counters.batches),
        *_metric(
            "observatory_commit_seconds_total", "counter", "Time spent in transactions", counters.commit_s
        ),
        *_metric("observatory_batch_largest", "gauge", "Largest batch so far", counters.largest_batch),
        *_metric(
            "observatory_batches_refused_total",
            "counter",
            "Batches run again in halves",
            counters.refused_batches,
        ),
        *_metric(
            "observatory_not_durable_total",
            "counter",
            "Batches that could not be stored",
            counters.not_durable,
        ),
        *_metric("observatory_queue_messages", "gauge", "Submissions waiting", messages),
        *_metric("observatory_queue_bytes", "gauge", "Bytes waiting", size),
        *_metric("observatory_live_readers", "gauge", "Live readers", house.publisher.readers),
        *_metric("observatory_agent_channels", "gauge", "Channels of agents", house.dispatcher.channels),
        "# HELP observatory_answers_total Ingest answers by code",
        "# TYPE observatory_answers_total counter",
    ]
    answers = sorted(house.doors.answers.items())
    lines += [f'observatory_answers_total{{code="{code}"}} {count}' for code, count in answers]
    return "\n".join(lines) + "\n"


async def insight_metrics(house: House) -> str:
    """Of all tenants: the furthest behind, and what was passed over; nothing while it cannot be read."""
    lag = skipped = unread = 0
    try:
        for tenant_id in await tenants(house.store):
            progress = await house.derived.progress(tenant_id)
            head, _ = await house.store.head(tenant_id)
            lag = max(lag, head - progress.seq)
            skipped, unread = skipped + progress.skipped, unread + progress.unread
    except NotDurable:
        return ""
    lines = [
        *_metric("observatory_insight_lag_messages", "gauge", "Numbers not folded yet, of one tenant", lag),
        *_metric("observatory_insight_skipped", "gauge", "Messages a fold failed on", skipped),
        *_metric("observatory_insight_unread", "gauge", "Messages whose content could not be read", unread),
        *_metric("observatory_analyst_up", "gauge", "Whether the analyst runs", int(house.analyst.alive)),
        *_metric(
            "observatory_analyst_restarts_total", "counter", "Restarts of the analyst", house.analyst.restarts
        ),
    ]
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, text: str, value: float) -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}"]

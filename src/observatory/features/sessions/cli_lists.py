"""`observatory sessions`: lists sessions, the most recently active first."""

from __future__ import annotations

from itertools import islice
from typing import Any

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, Limit, api_session, when
from observatory.cli.terminal import show_json, show_table

LARGEST_PAGE = 1_000


def sessions(*, limit: Limit = 20, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List sessions, the most recently active first, with held messages, cost and alerts."""
    with api_session(gateway, json) as client:
        page = max(1, min(limit, LARGEST_PAGE))
        rows = list(islice(client.items("/v1/sessions", limit=page), max(limit, 0)))
    if json:
        show_json(rows)
        return
    lines = [
        (
            row["session_id"],
            row["agents_count"],
            row["messages"],
            row["held"],
            f"{row['cost']:g}",
            _alerts(row),
            when(row["last_at"]),
        )
        for row in rows
    ]
    columns = ("SESSION", "AGENTS", "MESSAGES", "HELD", "COST", "ALERTS", "LAST SEEN")
    show_table(columns, lines, "no sessions yet")


def _alerts(row: dict[str, Any]) -> str:
    """Active alerts, the worst first; empty when there are none."""
    alerts = [row["severity"]] if row["severity"] != "normal" else []
    alerts += ["second detector"] if row["loop_detected_at"] else []
    alerts += [f"stuck ({row['stuck_reason']})"] if row["stuck"] else []
    return ", ".join(alerts)

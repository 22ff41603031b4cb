"""`observatory sessions`: what there is to act on, newest first."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, hand, when
from observatory.cli.terminal import show_json, show_table

Limit = Annotated[int, Parameter(help="At most so many, the newest.")]
LARGEST_PAGE = 1_000


def sessions(*, limit: Limit = 20, json: Json = False, gateway: Gateway = ANY) -> None:
    """Sessions, the most recently active first, with what is held, what they cost and what is wrong."""
    with hand(gateway, json) as door:
        page = max(1, min(limit, LARGEST_PAGE))
        rows = list(islice(door.items("/v1/sessions", limit=page), max(limit, 0)))
    if json:
        show_json(rows)
        return
    shown = [
        (
            row["session_id"],
            row["agents_count"],
            row["messages"],
            row["held"],
            f"{row['cost']:g}",
            _alarm(row),
            when(row["last_at"]),
        )
        for row in rows
    ]
    columns = ("SESSION", "AGENTS", "MESSAGES", "HELD", "COST", "ALARM", "LAST SEEN")
    show_table(columns, shown, "there are no sessions yet")


def _alarm(row: dict[str, Any]) -> str:
    """Words, the worst first; nothing while all is well."""
    said = [row["severity"]] if row["severity"] != "normal" else []
    said += ["second detector"] if row["loop_detected_at"] else []
    said += [f"stuck ({row['stuck_reason']})"] if row["stuck"] else []
    return ", ".join(said)

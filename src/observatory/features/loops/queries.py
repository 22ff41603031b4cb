"""Parsers for a session's loop columns."""

from __future__ import annotations

import msgspec

from observatory.features.loops.types import Loop


def open_loops(text: str | None) -> list[Loop]:
    """Parses the column `loops` of a session, oldest first."""
    return loops_of(text) if text else []


def last_agent(window: str | None) -> int:
    """Number of the agent whose step was scored last; 0 when there is none."""
    head = (window or "").partition("\n")[0].partition("!")[0]
    return int(head) if head else 0


loops_of = msgspec.json.Decoder(list[Loop]).decode

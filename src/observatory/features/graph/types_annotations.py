"""Annotations of steps and sessions as the API returns them."""

from __future__ import annotations

from typing import Any, Literal

from observatory.derived.seen import FoldMessage
from observatory.protocol.clock import from_ns

Outcome = Literal["ok", "wrong", "unsure"]


def annotation_item(row: dict[str, Any], seen: FoldMessage) -> dict[str, Any]:
    return annotation_fields(row, seen.session_id, seen.step_id)


def annotation_fields(row: dict[str, Any], session_id: str, step_id: str | None) -> dict[str, Any]:
    return {
        "annotation_id": row["annotation_id"],
        "session_id": session_id,
        "sequence_number": row["sequence_number"],
        "step_id": step_id,
        "author_id": row["author_id"],
        "label": row["label"],
        "category": row["category"],
        "text": row["text"],
        "created_at": from_ns(row["created_ns"]),
    }

"""`observatory thoughts`: why a session did what it did, record by record, and the seal over it."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, hand, path_of, session_of, when
from observatory.cli.terminal import note, show_json, show_table

PAGE = 1_000
WORDS = 72
Verify = Annotated[bool, Parameter(negative=(), help="Recompute the chain first; the record keeps it.")]
Row = dict[str, Any]


def thoughts(session: str, *, verify: Verify = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """The thoughts of a session in order: what was planned, seen, chosen and learned."""
    with hand(gateway, json) as door:
        name = session_of(door, session)
        found = _whole(door, path_of("sessions", name, "thoughts"))
        if verify:
            found["verified"] = door.ask("POST", path_of("sessions", name, "thoughts", "verify"))
    if json:
        show_json(found)
        return
    rows = [
        (
            item["index"],
            when(item["created_at"]),
            item["type"],
            item["task_id"],
            _words(item),
            item["record_id"],
        )
        for item in found["items"]
    ]
    show_table(("", "AT", "TYPE", "TASK", "WORDS", "RECORD"), rows, "nothing was recorded yet")
    if verify:
        broken = found["verified"]["first_broken_index"]
        held = found["verified"]["valid"]
        gone = found["verified"].get("shredded", 0)
        but = f"; the words of {gone} records were shredded by order" if gone else ""
        note(f"the chain holds{but}" if held else f"the chain is BROKEN at record {broken}")
    head = found["session"]
    grade = "proof-grade" if head["proof_grade"] else "not proof-grade"
    seal = f"sealed {when(head['sealed_at'])}, root {head['root']}" if head["root"] else "not sealed"
    note(f"{head['records']} records of {head['caller']}, {grade}, {seal}")


def _whole(door: Api, path: str) -> Row:
    page = door.ask("GET", path, limit=PAGE)
    found: Row = {"session": page["session"], "items": page["items"]}
    while page["next"] is not None:
        page = door.ask("GET", path, start=page["next"], limit=PAGE)
        found["items"] += page["items"]
    return found


def _words(item: Row) -> str:
    """The first thing it must say, and of a decision why."""
    content = item["content"]
    if content is None:
        return f"(shredded by event {item['shredded_by']})"
    first = {"plan": "trajectory", "analysis": "observation", "decision": "choice", "reflection": "happened"}
    said = [content.get(first[item["type"]]), content.get("why")]
    texts = [", ".join(map(str, one)) if isinstance(one, list) else str(one) for one in said if one]
    text = "; ".join(texts)
    return text if len(text) <= WORDS else text[: WORDS - 1] + "…"

"""`observatory thoughts`: the reasoning records of a session, their chain and their seal."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, api_session, path_of, session_of, when
from observatory.cli.terminal import note, show_json, show_table

PAGE = 1_000
WORDS = 72
Verify = Annotated[bool, Parameter(negative=(), help="Recompute the chain first; the result is recorded.")]
Row = dict[str, Any]


def thoughts(
    session: str, *, verify: Verify = False, json: Json = False, gateway: GatewayOptions = ANY
) -> None:
    """List the thoughts of a session in order: plans, analyses, decisions and reflections."""
    with api_session(gateway, json) as client:
        name = session_of(client, session)
        result = _whole(client, path_of("sessions", name, "thoughts"))
        if verify:
            result["verified"] = client.ask("POST", path_of("sessions", name, "thoughts", "verify"))
    if json:
        show_json(result)
        return
    rows = [
        (
            item["index"],
            when(item["created_at"]),
            item["type"],
            item["task_id"],
            _excerpt(item),
            item["record_id"],
        )
        for item in result["items"]
    ]
    show_table(("", "AT", "TYPE", "TASK", "EXCERPT", "RECORD"), rows, "no records yet")
    if verify:
        broken = result["verified"]["first_broken_index"]
        valid = result["verified"]["valid"]
        shredded = result["verified"].get("shredded", 0)
        suffix = f"; the content of {_count(shredded)} was shredded by order" if shredded else ""
        note(f"the chain is valid{suffix}" if valid else f"the chain is BROKEN at record {broken}")
    head = result["session"]
    grade = "proof-grade" if head["proof_grade"] else "not proof-grade"
    seal = f"sealed {when(head['sealed_at'])}, root {head['root']}" if head["root"] else "not sealed"
    note(f"{_count(head['records'])} of {head['caller']}, {grade}, {seal}")


def _count(records: int) -> str:
    return f"{records:,} record{'' if records == 1 else 's'}"


def _whole(client: GatewayApi, path: str) -> Row:
    page = client.ask("GET", path, limit=PAGE)
    result: Row = {"session": page["session"], "items": page["items"]}
    while page["next"] is not None:
        page = client.ask("GET", path, start=page["next"], limit=PAGE)
        result["items"] += page["items"]
    return result


def _excerpt(item: Row) -> str:
    """The first required member of the content, and for a decision its reason."""
    content = item["content"]
    if content is None:
        return f"(shredded by event {item['shredded_by']})"
    first = {"plan": "trajectory", "analysis": "observation", "decision": "choice", "reflection": "happened"}
    values = [content.get(first[item["type"]]), content.get("why")]
    texts = [", ".join(map(str, one)) if isinstance(one, list) else str(one) for one in values if one]
    text = "; ".join(texts)
    return text if len(text) <= WORDS else text[: WORDS - 1] + "…"

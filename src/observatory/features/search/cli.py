"""`observatory search`: find messages by words, meaning and filters, and who spoke of something."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, hand, when
from observatory.cli.terminal import note, printable, say, show_json, show_table


def search(
    *words: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="E.g. 'agent:planner since:1h \"Project X\"'")
    ],
    mode: Annotated[Literal["hybrid", "text", "semantic"], Parameter(help="How to look.")] = "hybrid",
    agents: Annotated[bool, Parameter(negative=(), help="Who spoke of it, instead of where.")] = False,
    limit: Annotated[int, Parameter(help="How many hits at most (1–1,000).")] = 20,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Search everything archived. Quote the question: 'status:failure since:1h "exact words" ~meaning'."""
    question = " ".join(words)
    group = "agent" if agents else None
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/search", q=question, mode=mode, limit=limit, group=group)
    if json:
        show_json(answer)
        return
    if agents:
        rows = [
            (one["agent_id"], one["count"], when(one["first_at"]), when(one["last_at"]), _quote(one["best"]))
            for one in answer["items"]
        ]
        show_table(("AGENT", "HITS", "FIRST", "LAST", "SAID"), rows, "nobody spoke of it")
    else:
        _show(answer["items"])
    for sentence in answer["warnings"]:
        note(printable(sentence))
    if answer["behind"]:
        note(f"the index is {answer['behind']:,} numbers behind the record")
    if not agents:
        more = ", --limit shows more" if answer["next_cursor"] else ""
        note(f"{answer['hits']:,} hits{' or more' if answer['capped'] else ''}{more}")


def _show(items: list[dict[str, Any]]) -> None:
    if not items:
        note("nothing was found")
    for item in items:
        did = item["tool"] or item["message_type"]
        head = f"{item['sequence_number']}  {when(item['at'])}  {item['agent_id'] or '–'}  {did}"
        status = f"  {item['status']}" if item["status"] else ""
        held = f"  ({item['state']})" if item["state"] != "forwarded" else ""
        say(printable(f"{head}{status}{held}"))
        say(
            f"    {_quote(item)}",
            f"    session {printable(item['session_id'] or '–')}, step {printable(item['step_id'])}",
        )


def _quote(item: dict[str, Any] | None) -> str:
    """With the words that matched between »«: colour is never the only sign."""
    if item is not None and item["snippet"] is None:
        return "(not quoted: only the first 100 of a page are)"
    if item is None or not item["snippet"]["text"]:
        return "(its content is gone)"
    text, made, at = item["snippet"]["text"], "", 0
    for start, end in item["snippet"]["matches"]:
        made, at = made + text[at:start] + "»" + text[start:end] + "«", end
    return printable(made + text[at:])

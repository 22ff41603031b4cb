"""`observatory search`: find messages by words, meaning and filters, or the agents that mention something."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, api_session, when
from observatory.cli.terminal import note, printable, say, show_json, show_table


def search(
    *words: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="E.g. 'agent:planner since:1h \"Project X\"'")
    ],
    mode: Annotated[
        Literal["hybrid", "text", "semantic"], Parameter(help="Match words, meaning, or both.")
    ] = "hybrid",
    agents: Annotated[bool, Parameter(negative=(), help="List agents instead of messages.")] = False,
    limit: Annotated[int, Parameter(help="Show at most this many hits (1–1,000).")] = 20,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Search the archive. Quote the query: 'status:failure since:1h "exact words" ~meaning'."""
    query = " ".join(words)
    group = "agent" if agents else None
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/search", q=query, mode=mode, limit=limit, group=group)
    if json:
        show_json(answer)
        return
    if agents:
        rows = [
            (one["agent_id"], one["count"], when(one["first_at"]), when(one["last_at"]), _quote(one["best"]))
            for one in answer["items"]
        ]
        show_table(("AGENT", "HITS", "FIRST", "LAST", "QUOTE"), rows, "no agents found")
    else:
        _show(answer["items"])
    for sentence in answer["warnings"]:
        note(printable(sentence))
    if answer["behind"]:
        note(f"index lag: {answer['behind']:,} event{'' if answer['behind'] == 1 else 's'}")
    if not agents:
        more = ", --limit shows more" if answer["next_cursor"] else ""
        noun = "hit" if answer["hits"] == 1 else "hits"
        note(f"{answer['hits']:,} {noun}{' or more' if answer['capped'] else ''}{more}")


def _show(items: list[dict[str, Any]]) -> None:
    if not items:
        note("no messages found")
    for item in items:
        action = item["tool"] or item["message_type"]
        head = f"{item['sequence_number']}  {when(item['at'])}  {item['agent_id'] or '–'}  {action}"
        status = f"  {item['status']}" if item["status"] else ""
        state = f"  ({item['state']})" if item["state"] != "forwarded" else ""
        say(printable(f"{head}{status}{state}"))
        say(
            f"    {_quote(item)}",
            f"    session {printable(item['session_id'] or '–')}, step {printable(item['step_id'])}",
        )


def _quote(item: dict[str, Any] | None) -> str:
    """The snippet with matches between »«: colour is never the only mark."""
    if item is not None and item["snippet"] is None:
        return "(no snippet: only the first 100 hits of a page have one)"
    if item is None or not item["snippet"]["text"]:
        return "(content shredded)"
    text, quote, at = item["snippet"]["text"], "", 0
    for start, end in item["snippet"]["matches"]:
        quote, at = quote + text[at:start] + "»" + text[start:end] + "«", end
    return printable(quote + text[at:])

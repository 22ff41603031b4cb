"""`observatory capabilities`: whose work an agent gets, as operators gave it (S1145)."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, hand, path_of, tell
from observatory.cli.terminal import note, show_json, show_table

SETTING = "/v1/settings/routing"
Words = Annotated[str, Parameter(help="Capabilities by name; a cluster as cluster:ID.")]

capabilities = App(name="capabilities", help="Whose work agents get: list, grant, revoke, mode.")


@capabilities.command(name="list")
def list_capabilities(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Each agent with what it was given, and what it only asks for."""
    with hand(gateway, json) as door:
        rows = [row for row in door.items("/v1/agents") if row["granted"] or row["requested"]]
        mode = door.ask("GET", SETTING)["capabilities"]
    if json:
        names = ("agent_id", "entity_id", "capabilities", "granted", "requested")
        show_json([{name: row[name] for name in names} for row in rows])
        return
    shown = [(row["agent_id"], *(", ".join(row[one]) for one in ("granted", "requested"))) for row in rows]
    show_table(("AGENT", "GRANTED", "REQUESTED"), shown, "nothing was given to an agent, and none asks")
    note(MEANING[mode])


MEANING = {
    "self": "capabilities: self. Agents get the work they say they can do; `mode granted` changes that",
    "granted": "capabilities: granted. Agents get only the work that was given to them",
}


@capabilities.command(name="grant")
def grant(agent: str, *words: Words, json: Json = False, gateway: Gateway = ANY) -> None:
    """Give an agent the work of capabilities or clusters."""
    _change(agent, {"grant": list(words)}, json, gateway)


@capabilities.command(name="revoke")
def revoke(agent: str, *words: Words, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take it back: from the next message on it gets none of it."""
    _change(agent, {"revoke": list(words)}, json, gateway)


@capabilities.command(name="mode")
def mode(
    word: Annotated[
        Literal["self", "granted"] | None,
        Parameter(help="self: who says it can do it; granted: whom it was given to."),
    ] = None,
    *,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Who is asked for work; with a word it is changed, from the next message on."""
    with hand(gateway, json) as door:
        asked = {} if word is None else {"capabilities": word}
        answer = door.ask("PUT", SETTING, asked) if asked else door.ask("GET", SETTING)
    tell(answer, json, MEANING[answer["capabilities"]])


def _change(agent: str, body: dict[str, list[str]], json: bool, gateway: Gateway) -> None:
    with hand(gateway, json) as door:
        answer = door.ask("POST", path_of("agents", agent, "grants"), body)
    tell(answer, json, f"{answer['agent_id']} gets work for: {', '.join(answer['granted']) or 'nothing'}")

"""`observatory route`: how work for a capability is shared out, and its circuits."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, path_of, tell, when
from observatory.cli.terminal import Misused, show_json, show_table

route = App(name="route", help="Traffic weights and circuits of capabilities: list, set, circuits, circuit.")


@route.command(name="list")
def list_routes(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Traffic weights of every capability that has any."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/routes"))
    if json:
        show_json(rows)
        return
    shown = [
        (row["capability"], target, f"{weight:g}", f"{row['shares'][target]:.1%}", when(row["updated_at"]))
        for row in rows
        for target, weight in row["weights"].items()
    ]
    show_table(("CAPABILITY", "TARGET", "WEIGHT", "SHARE", "CHANGED"), shown, "no capability has weights")


@route.command(name="set")
def set_route(
    capability: str,
    *weights: Annotated[str, Parameter(help="TARGET=WEIGHT; a target is cluster:C or an agent.")],
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Share out the work for a capability anew: `route set summarizer cluster:new=10 cluster:old=90`."""
    given = _weights(weights)
    with hand(gateway, json) as door:
        shares = ", ".join(f"{target}={weight:g}" for target, weight in given.items())
        confirm(f"Send new work for {capability} to {shares}?", yes)
        answer = door.ask("PUT", "/v1/routes", {"capability": capability, "weights": given})
    shares = ", ".join(f"{target} {share:.1%}" for target, share in answer["shares"].items())
    tell(answer, json, f"{capability}: {shares}")


@route.command(name="circuits")
def circuits(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The circuit of every capability that has one."""
    with hand(gateway, json) as door:
        rows = list(door.items("/v1/breakers"))
    if json:
        show_json(rows)
        return
    shown = [
        (row["capability"], row["state"], row["successes"], row["failures"], row["reason"], row["forced_by"])
        for row in rows
    ]
    show_table(
        ("CAPABILITY", "CIRCUIT", "GOOD", "FAILED", "REASON", "BY HAND"),
        shown,
        "no capability has a circuit yet",
    )


@route.command(name="circuit")
def circuit(
    capability: str,
    state: Literal["open", "closed"],
    *,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Open a capability's circuit by hand (its work waits), or close it."""
    with hand(gateway, json) as door:
        if state == "open":
            confirm(f"Let all work for {capability} wait?", yes)
        answer = door.ask("POST", path_of("breakers", capability), {"state": state})
    tell(answer, json, f"the circuit of {capability} is {answer['state']}")


def _weights(texts: tuple[str, ...]) -> dict[str, float]:
    given: dict[str, float] = {}
    for text in texts:
        target, equals, weight = text.rpartition("=")
        try:
            given[target] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not target or not math.isfinite(given[target]):
            raise Misused(f"{text!r} is not TARGET=WEIGHT, as in cluster:blue=80")
    if len(given) < len(texts) or not given:
        raise Misused("name each target once, as TARGET=WEIGHT")
    return given

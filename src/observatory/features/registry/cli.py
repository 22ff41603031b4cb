"""`observatory route`: traffic weights and circuit breakers of capabilities."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, path_of, print_result, when
from observatory.cli.terminal import InvalidArguments, show_json, show_table

route = App(name="route", help="Traffic weights and circuits of capabilities: list, set, circuits, circuit.")


@route.command(name="list")
def list_routes(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List the traffic weights of every capability that has any."""
    with api_session(gateway, json) as client:
        rows = list(client.items("/v1/routes"))
    if json:
        show_json(rows)
        return
    lines = [
        (row["capability"], target, f"{weight:g}", f"{row['shares'][target]:.1%}", when(row["updated_at"]))
        for row in rows
        for target, weight in row["weights"].items()
    ]
    show_table(("CAPABILITY", "TARGET", "WEIGHT", "SHARE", "CHANGED"), lines, "no capability has weights")


@route.command(name="set")
def set_route(
    capability: str,
    *weights: Annotated[str, Parameter(help="TARGET=WEIGHT; a target is cluster:C or an agent.")],
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Set the traffic weights of a capability: `route set summarizer cluster:new=10 cluster:old=90`."""
    given = _weights(weights)
    with api_session(gateway, json) as client:
        shares = ", ".join(f"{target}={weight:g}" for target, weight in given.items())
        confirm(f"Send new work for {capability} to {shares}?", yes)
        answer = client.ask("PUT", "/v1/routes", {"capability": capability, "weights": given})
    shares = ", ".join(f"{target} {share:.1%}" for target, share in answer["shares"].items())
    print_result(answer, json, f"{capability}: {shares}")


@route.command(name="circuits")
def circuits(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List the circuit of every capability that has one."""
    with api_session(gateway, json) as client:
        rows = list(client.items("/v1/breakers"))
    if json:
        show_json(rows)
        return
    lines = [
        (row["capability"], row["state"], row["successes"], row["failures"], row["reason"], row["forced_by"])
        for row in rows
    ]
    show_table(
        ("CAPABILITY", "CIRCUIT", "SUCCEEDED", "FAILED", "REASON", "FORCED BY"),
        lines,
        "no capability has a circuit yet",
    )


@route.command(name="circuit")
def circuit(
    capability: str,
    state: Literal["open", "closed"],
    *,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Force a capability's circuit open (its work waits), or close it."""
    with api_session(gateway, json) as client:
        if state == "open":
            confirm(f"Open the circuit of {capability}? All its work will wait.", yes)
        answer = client.ask("POST", path_of("breakers", capability), {"state": state})
    print_result(answer, json, f"the circuit of {capability} is {answer['state']}")


def _weights(texts: tuple[str, ...]) -> dict[str, float]:
    given: dict[str, float] = {}
    for text in texts:
        target, equals, weight = text.rpartition("=")
        try:
            given[target] = float(weight)
        except ValueError:
            equals = ""
        if not equals or not target or not math.isfinite(given[target]):
            raise InvalidArguments(f"{text!r} is not TARGET=WEIGHT, as in cluster:blue=80")
    if len(given) < len(texts) or not given:
        raise InvalidArguments("name each target once, as TARGET=WEIGHT")
    return given

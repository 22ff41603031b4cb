"""`observatory log-key`: show and rotate the key that signs the logs."""

from __future__ import annotations

from cyclopts import App

from observatory.cli.gateway_client import ANY, GatewayOptions, api
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import JsonOutput, Yes, confirm
from observatory.cli.terminal import note, say, show_json

log_key = App(name="log-key", help="The key that signs the logs: show, rotate.")


@log_key.command(name="show")
def show(*, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """List the verification keys of your tenant's log, oldest first."""
    with api(gateway) as client:
        rows = client.ask("GET", "/v1/audit/log")["vkeys"]
    columns: dict[str, Cell] = {
        "VERIFICATION KEY": "vkey",
        "SIGNS FROM EVENT": "since_sequence",
        "SINCE": at("created_at"),
        "STATE": lambda row: "current" if row["current"] else "retired",
    }
    show_rows(rows, json, columns, "nothing is signed yet")


@log_key.command(name="rotate")
def rotate(*, yes: Yes = False, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """Create a new key. The next checkpoint of every log is signed by both, then by the new one alone."""
    confirm("Sign every log with a new key from now on?", yes)
    with api(gateway) as client:
        answer = client.ask("POST", "/v1/audit/log/rotate")
    if json:
        show_json(answer)
        return
    note("a new key signs from now on; give its verification key to everyone who verifies your log")
    say(answer["vkey"])

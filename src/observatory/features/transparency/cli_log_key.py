"""`observatory log-key`: by which key the logs are signed, and letting another follow it."""

from __future__ import annotations

from cyclopts import App

from observatory.cli.gateway_client import ANY, Gateway, api
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import Yes, confirm
from observatory.cli.terminal import note, say, show_json
from observatory.features.access.cli import Json

log_key = App(name="log-key", help="The key that signs the logs: show, rotate.")


@log_key.command(name="show")
def show(*, gateway: Gateway = ANY, json: Json = False) -> None:
    """The verification keys of your tenant's log, oldest first."""
    with api(gateway) as door:
        rows = door.ask("GET", "/v1/audit/log")["vkeys"]
    columns: dict[str, Cell] = {
        "VERIFICATION KEY": "vkey",
        "SIGNS FROM EVENT": "since_sequence",
        "SINCE": at("created_at"),
        "STATE": lambda row: "in force" if row["current"] else "followed",
    }
    show_rows(rows, json, columns, "nothing is signed yet")


@log_key.command(name="rotate")
def rotate(*, yes: Yes = False, gateway: Gateway = ANY, json: Json = False) -> None:
    """Make a new key. The next checkpoint of every log is signed by both, then by the new one alone."""
    confirm("Let a new key sign every log from here on?", yes)
    with api(gateway) as door:
        told = door.ask("POST", "/v1/audit/log/rotate")
    if json:
        show_json(told)
        return
    note("a new key signs from here on; give its verification key to whoever checks your log")
    say(told["vkey"])

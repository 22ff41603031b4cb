"""`observatory detectors`: show and change the settings of the loop and injection detectors."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayOptions
from observatory.cli.prompts import Json, api_session, pairs_of, print_result
from observatory.cli.terminal import InvalidArguments, note, show_json, show_table

detectors = App(name="detectors", help="Detector settings: show, set.")
PATH = "/v1/settings/detectors"


@detectors.default
def show(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show the settings in force."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", PATH)
    if json:
        show_json(answer)
        return
    settings = {name: value for name, value in answer.items() if not name.startswith("updated_")}
    sections = {name: settings.pop(name) for name in [*settings] if isinstance(settings[name], dict)}
    inner = ((f"{name}.{one}", value) for name, part in sections.items() for one, value in part.items())
    rows = [*settings.items(), *inner]
    show_table(("SETTING", "VALUE"), [(name, _text(value)) for name, value in rows])
    by = answer["updated_by"]
    note("defaults in use" if by is None else f"set by {by} at {answer['updated_at']}")


@detectors.command(name="set")
def change(
    *settings: Annotated[str, Parameter(help="name=value, e.g. window=8 or loops.rounds=4.")],
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Change settings; `name=default` restores the default. Effective from the next message."""
    body: dict[str, Any] = {}
    for name, value in pairs_of(settings, "window=8").items():
        section, dot, inner = name.partition(".")
        value = None if value == "default" else value
        if dot:
            body.setdefault(section, {})[inner] = value
        else:
            body[name] = value
    if not body:
        raise InvalidArguments("name at least one setting, e.g. `observatory detectors set window=8`")
    with api_session(gateway, json) as client:
        answer = client.ask("PUT", PATH, body)
    print_result(answer, json, f"set: {', '.join(settings)}; effective from the next message")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

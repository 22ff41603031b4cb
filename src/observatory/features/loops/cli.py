"""`observatory detectors`: what the detectors go by, shown and set."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Gateway
from observatory.cli.prompts import Json, hand, pairs_of, tell
from observatory.cli.terminal import Misused, note, show_json, show_table

detectors = App(name="detectors", help="What the detectors go by: show, set.")
PATH = "/v1/settings/detectors"


@detectors.default
def show(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """The settings in force."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", PATH)
    if json:
        show_json(answer)
        return
    told = {name: value for name, value in answer.items() if not name.startswith("updated_")}
    sections = {name: told.pop(name) for name in [*told] if isinstance(told[name], dict)}
    inner = ((f"{name}.{one}", value) for name, part in sections.items() for one, value in part.items())
    shown = [*told.items(), *inner]
    show_table(("SETTING", "VALUE"), [(name, _text(value)) for name, value in shown])
    by = answer["updated_by"]
    note("these are the defaults" if by is None else f"set by {by} at {answer['updated_at']}")


@detectors.command(name="set")
def change(
    *settings: Annotated[str, Parameter(help="name=value, e.g. window=8 or loops.rounds=4.")],
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Set some of them; `name=default` takes the default again. It counts for the next message."""
    body: dict[str, Any] = {}
    for name, value in pairs_of(settings, "window=8").items():
        section, dot, inner = name.partition(".")
        value = None if value == "default" else value
        if dot:
            body.setdefault(section, {})[inner] = value
        else:
            body[name] = value
    if not body:
        raise Misused("name at least one setting, e.g. `observatory detectors set window=8`")
    with hand(gateway, json) as door:
        answer = door.ask("PUT", PATH, body)
    tell(answer, json, f"set: {', '.join(settings)}; it counts for the next message")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

"""`observatory keys bind`: give agents keys of their own instead of a shared agent key (S1144).

The SDKs look for the file it writes first (`sdk/credentials.py`): nothing in an agent's code changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions, api, folder_of
from observatory.cli.terminal import CommandFailed, say, show_json
from observatory.features.access.cli import keys
from observatory.features.access.data_folder import write_private
from observatory.sdk.credentials import own_file


@keys.command(name="bind")
def bind_keys(
    agent: str,
    *more: str,
    to: Annotated[
        str | None, Parameter(help="Folder to write into: the OBSERVATORY_DATA of the agent's process.")
    ] = None,
    json: Annotated[bool, Parameter(negative=(), help="Print JSON.")] = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Give each agent its own key, where its SDK finds it; unbound keys can then no longer read its inbox."""
    folder = Path(to).expanduser() if to else folder_of(gateway.data)
    with api(gateway) as client:
        made = [_bind(client, folder, one) for one in dict.fromkeys([agent, *more])]
    if json:
        show_json(made)
        return
    for one in made:
        say(f"{one['agent_id']} has a key of its own: {one['file']} ({one['key_id']})")


def _bind(client: GatewayApi, folder: Path, agent_id: str) -> dict[str, str]:
    file = own_file(folder, agent_id)
    # Before a key is created that could not be stored.
    try:
        for directory in (folder, file.parent.parent, file.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(file.with_name("probe.json"), {})
        file.with_name("probe.json").unlink()
    except OSError as error:
        raise CommandFailed(f"{file.parent} cannot be written ({error.strerror})") from None
    body = {"role": "agent", "agent_id": agent_id, "label": f"key of {agent_id}"}
    key = client.ask("POST", "/v1/keys", body)
    credentials = {"url": client.url, "agent_key": key["key"], "agent_id": agent_id}
    write_private(file, credentials if client.trust.ca is None else credentials | {"ca": client.trust.ca})
    return {"agent_id": agent_id, "key_id": key["key_id"], "file": str(file)}

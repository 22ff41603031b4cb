"""Where the gateway is and with which key to knock.

Order: explicit arguments, `OBSERVATORY_URL` + `OBSERVATORY_KEY`, the `agent.json` of the `OBSERVATORY_DATA`
folder, that of `~/.observatory`. A URL and a key are looked for separately, so a URL given by hand may use a
key from the environment; but a key from a file is used only for that file's URL: it must never be sent to a
stranger. An agent that was bound (`observatory keys bind`) has an `agent.json` of its own below the folder.

Law: `credentials.json` holds the keys of the people who govern agents. Nothing here opens it (S980).

Over https: whom to trust (`ca=`, `OBSERVATORY_CA`) and what to show (`cert=`, `cert_key=`,
`OBSERVATORY_CERT`, `OBSERVATORY_CERT_KEY`); the folder's own gateway says in its file which authority is its.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.protocol import nats, nats_wire
from observatory.sdk.errors import NotConfigured
from observatory.sdk.spool import file_stem

AGENT_FILE = "agent.json"


class Trust(NamedTuple):
    """Files, in PEM: whose certificates are believed instead of the system's, and what we show of our own."""

    ca: str | None = None
    cert: str | None = None
    cert_key: str | None = None


NOTHING = Trust()


class Door(NamedTuple):
    url: str
    key: str
    data: Path
    """The folder that holds the spool."""
    trust: Trust = NOTHING

    @property
    def is_nats(self) -> bool:
        return nats.is_nats(self.url)

    @property
    def place(self) -> str:
        """The URL as it may be shown and kept: NATS has its user and password in it."""
        return nats.address(self.url).shown if self.is_nats else self.url

    def __repr__(self) -> str:
        return f"Door(url={self.place!r}, data={str(self.data)!r})"


class AgentFile(msgspec.Struct, omit_defaults=True):
    """What `agent.json` holds. `agent_id`: whose key it is, where it is bound."""

    url: str
    agent_key: str
    ca: str | None = None
    agent_id: str | None = None


def own_file(folder: Path, agent_id: str) -> Path:
    """Where the bound key of one agent lies in a data folder."""
    return folder / "agents" / file_stem(f"{agent_id}~" if agent_id in (".", "..") else agent_id) / AGENT_FILE


def find_door(
    url: str | None = None,
    key: str | None = None,
    data: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    trust: Trust = NOTHING,
    agent_id: str | None = None,
) -> Door:
    """The gateway's address and key, or `NotConfigured` with a sentence that says what to do.

    `agent_id`: the only agent that will use it, so a key bound to it comes before the folder's own.
    """
    given = data or environ.get("OBSERVATORY_DATA")
    folder = Path(given).expanduser() if given else Path.home() / ".observatory"
    url, key = url or environ.get("OBSERVATORY_URL"), key or environ.get("OBSERVATORY_KEY")
    authority = None
    if not (url and key):
        own = None if agent_id is None else own_file(folder, agent_id)
        path = own if own is not None and own.exists() else folder / AGENT_FILE
        url, key, authority = _from_file(path, url, key)
    return Door(_checked(url), key, folder, find_trust(trust, environ, authority))


def own_door(door: Door, agent_id: str) -> Door:
    """The same gateway with the key that is bound to this agent, if the folder has one: its inbox takes no
    other (S1142), also where several agents of a process send through one outbox."""
    try:
        found = msgspec.json.decode(own_file(door.data, agent_id).read_bytes(), type=AgentFile)
    except (OSError, msgspec.MsgspecError):
        return door
    return door._replace(key=found.agent_key) if found.url.rstrip("/") == door.url else door


def find_trust(
    given: Trust = NOTHING, environ: Mapping[str, str] = os.environ, authority: str | None = None
) -> Trust:
    """`authority` is what the file of the gateway's own folder says, if the URL is out of it."""
    cert = given.cert or environ.get("OBSERVATORY_CERT") or None
    cert_key = given.cert_key or environ.get("OBSERVATORY_CERT_KEY") or None
    if cert is None and cert_key is not None:
        raise NotConfigured("A certificate's key but no certificate: set OBSERVATORY_CERT or pass cert=.")
    return Trust(given.ca or environ.get("OBSERVATORY_CA") or authority, cert, cert_key)


def _from_file(path: Path, url: str | None, key: str | None) -> tuple[str, str, str | None]:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=AgentFile)
    except FileNotFoundError:
        raise NotConfigured(_missing(path, url, key)) from None
    except OSError as exc:
        told = f"{path} cannot be read ({exc.strerror}): run as its owner, or set {_BOTH}."
        raise NotConfigured(told) from exc
    except msgspec.MsgspecError:
        # Its text could quote the file, which holds keys: not chained.
        told = f"{path} is no file of an agent's key: start `observatory serve` again or set {_BOTH}."
        raise NotConfigured(told) from None
    if url and url.rstrip("/") != found.url.rstrip("/"):
        raise NotConfigured(
            f"No key for {_shown(url)}: {path} is for {found.url}. Set OBSERVATORY_KEY or pass key=."
        )
    return found.url, key or found.agent_key, found.ca


_BOTH = "OBSERVATORY_URL and OBSERVATORY_KEY"


def _missing(path: Path, url: str | None, key: str | None) -> str:
    if url:
        return f"No key for {_shown(url)}: set OBSERVATORY_KEY or pass key= (an agent key, `obs_…`)."
    if key:
        return "A key but no gateway: set OBSERVATORY_URL or pass url= (for example http://127.0.0.1:4800)."
    if (path.parent / "credentials.json").exists():
        return (
            f"{path} does not exist: restart the gateway (`observatory serve`), which writes it, or set "
            f"{_BOTH}. credentials.json holds keys for people; agents do not read it."
        )
    return (
        f"No gateway found: {_BOTH} are not set and {path} does not exist. Start one with "
        f"`observatory serve`, or set {_BOTH}, or point OBSERVATORY_DATA at the folder of a running one."
    )


def _shown(url: str) -> str:
    try:
        return nats.address(url).shown if nats.is_nats(url) else url
    except nats.BadAddress:
        return "that address"


def _checked(url: str) -> str:
    if nats.is_nats(url):
        try:
            nats.address(url)
            nats_wire.check_installed()
        except (nats.BadAddress, nats_wire.NoNats) as exc:
            raise NotConfigured(f"The gateway cannot be reached by NATS: {exc}.") from None
        return url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotConfigured(
            f"{url!r} is not a gateway's address: it must look like http://127.0.0.1:4800 or nats://127.0.0.1:4222."
        )
    return url.rstrip("/")

"""Finds the gateway's URL, key and TLS files: `find_door`.

Order: explicit arguments, `OBSERVATORY_URL` + `OBSERVATORY_KEY`, `agent.json` in the `OBSERVATORY_DATA`
folder, `agent.json` in `~/.observatory`. URL and key are looked up separately, so an explicit URL can use a
key from the environment; but a key from a file is used only for that file's URL: it must never be sent to a
third party. A bound agent (`observatory keys bind`) has its own `agent.json` below the folder.

Rule: `credentials.json` holds the keys of people who govern agents. Nothing here opens it (S980).

For https: the certificate authority (`ca=`, `OBSERVATORY_CA`) and the client certificate (`cert=`,
`cert_key=`, `OBSERVATORY_CERT`, `OBSERVATORY_CERT_KEY`); the gateway's `agent.json` names its own authority.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from observatory.protocol import nats
from observatory.protocol import nats_connection as nats_wire
from observatory.sdk.errors import NotConfigured
from observatory.sdk.spool import file_stem

AGENT_FILE = "agent.json"


class Trust(NamedTuple):
    """PEM files: the authority to trust instead of the system's, and the client certificate and key."""

    ca: str | None = None
    cert: str | None = None
    cert_key: str | None = None


SYSTEM_TRUST = Trust()


class GatewayCredentials(NamedTuple):
    url: str
    key: str
    data: Path
    """The folder that holds the spool."""
    trust: Trust = SYSTEM_TRUST

    @property
    def is_nats(self) -> bool:
        return nats.is_nats(self.url)

    @property
    def display_url(self) -> str:
        """The URL without secrets, for logs and files: a NATS URL contains user and password."""
        return nats.address(self.url).shown if self.is_nats else self.url

    def __repr__(self) -> str:
        return f"GatewayCredentials(url={self.display_url!r}, data={str(self.data)!r})"


class AgentFile(msgspec.Struct, omit_defaults=True):
    """The content of `agent.json`. `agent_id`: the agent a bound key belongs to."""

    url: str
    agent_key: str
    ca: str | None = None
    agent_id: str | None = None


def own_file(folder: Path, agent_id: str) -> Path:
    """The path of an agent's bound key in a data folder."""
    return folder / "agents" / file_stem(f"{agent_id}~" if agent_id in (".", "..") else agent_id) / AGENT_FILE


def find_credentials(
    url: str | None = None,
    key: str | None = None,
    data: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    trust: Trust = SYSTEM_TRUST,
    agent_id: str | None = None,
) -> GatewayCredentials:
    """The gateway's address and key, or `NotConfigured` with a message that says what to do.

    `agent_id`: the only agent that will use it, so a key bound to it takes precedence over the folder's key.
    """
    given = data or environ.get("OBSERVATORY_DATA")
    folder = Path(given).expanduser() if given else Path.home() / ".observatory"
    url, key = url or environ.get("OBSERVATORY_URL"), key or environ.get("OBSERVATORY_KEY")
    authority = None
    if not (url and key):
        own = None if agent_id is None else own_file(folder, agent_id)
        path = own if own is not None and own.exists() else folder / AGENT_FILE
        url, key, authority = _from_file(path, url, key)
    return GatewayCredentials(_checked(url), key, folder, find_trust(trust, environ, authority))


def credentials_of_agent(credentials: GatewayCredentials, agent_id: str) -> GatewayCredentials:
    """The same gateway with the key bound to this agent, if the folder has one: its inbox accepts no other
    key (S1142), also when several agents of a process share one outbox."""
    try:
        own = msgspec.json.decode(own_file(credentials.data, agent_id).read_bytes(), type=AgentFile)
    except (OSError, msgspec.MsgspecError):
        return credentials
    return credentials._replace(key=own.agent_key) if own.url.rstrip("/") == credentials.url else credentials


def find_trust(
    given: Trust = SYSTEM_TRUST, environ: Mapping[str, str] = os.environ, authority: str | None = None
) -> Trust:
    """`authority` comes from the gateway's `agent.json`, if the URL does too."""
    cert = given.cert or environ.get("OBSERVATORY_CERT") or None
    cert_key = given.cert_key or environ.get("OBSERVATORY_CERT_KEY") or None
    if cert is None and cert_key is not None:
        raise NotConfigured("A certificate key but no certificate: set OBSERVATORY_CERT or pass cert=.")
    return Trust(given.ca or environ.get("OBSERVATORY_CA") or authority, cert, cert_key)


def _from_file(path: Path, url: str | None, key: str | None) -> tuple[str, str, str | None]:
    try:
        file = msgspec.json.decode(path.read_bytes(), type=AgentFile)
    except FileNotFoundError:
        raise NotConfigured(_missing(path, url, key)) from None
    except OSError as exc:
        message = f"{path} cannot be read ({exc.strerror}): run as its owner, or set {_BOTH}."
        raise NotConfigured(message) from exc
    except msgspec.MsgspecError:
        # Not chained: its text could quote the file, which holds keys.
        message = f"{path} is not a valid agent key file: restart `observatory serve` or set {_BOTH}."
        raise NotConfigured(message) from None
    if url and url.rstrip("/") != file.url.rstrip("/"):
        raise NotConfigured(
            f"No key for {_display(url)}: {path} is for {file.url}. Set OBSERVATORY_KEY or pass key=."
        )
    return file.url, key or file.agent_key, file.ca


_BOTH = "OBSERVATORY_URL and OBSERVATORY_KEY"


def _missing(path: Path, url: str | None, key: str | None) -> str:
    if url:
        return f"No key for {_display(url)}: set OBSERVATORY_KEY or pass key= (an agent key, `obs_…`)."
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


def _display(url: str) -> str:
    try:
        return nats.address(url).shown if nats.is_nats(url) else url
    except nats.InvalidNatsAddress:
        return "that address"


def _checked(url: str) -> str:
    if nats.is_nats(url):
        try:
            nats.address(url)
            nats_wire.check_installed()
        except (nats.InvalidNatsAddress, nats_wire.NatsUnavailable) as exc:
            raise NotConfigured(f"The gateway cannot be reached by NATS: {exc}.") from None
        return url.rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotConfigured(
            f"{url!r} is not a gateway address: it must look like http://127.0.0.1:4800 or nats://127.0.0.1:4222."
        )
    return url.rstrip("/")

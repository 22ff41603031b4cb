"""`observatory tls`: issue certificates from a small built-in authority, for a first try."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from observatory.cli.terminal import CommandFailed, InvalidArguments, say
from observatory.protocol.certificates import make_binding

if TYPE_CHECKING:
    from observatory.features.certificates import authority

tls = App(name="tls", help="Issue certificates from a small local authority: init, agent, server.")
LONGEST_DAYS = 3_650
Days = Annotated[int, Parameter(help="Validity of issued certificates, in days.")]
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}").fullmatch
RESERVED = ("ca", "server")
HERE = ("localhost", "127.0.0.1", "::1")


@tls.command(name="init")
def init(
    folder: Annotated[Path, Parameter(help="Created if missing.")],
    *,
    host: Annotated[
        list[str] | None,
        Parameter(help="A name or address of the gateway; localhost is always included.", negative=()),
    ] = None,
    agent: Annotated[
        list[str] | None, Parameter(help="An agent that gets a certificate too.", negative=())
    ] = None,
    days: Days = 90,
) -> None:
    """Create an authority, a certificate for the gateway, and one for each named agent."""
    from observatory.features.certificates import authority

    agents = list(dict.fromkeys(agent or []))
    _check(days, agents)
    for name in host or []:
        _check_host(name)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (folder / "ca.crt").exists() or (folder / "ca.key").exists():
            raise CommandFailed(
                f"{folder} already contains an authority; `observatory tls agent` issues more"
            )
        root = authority.make_authority("Observatory authority")
        authority.write_pair(folder, "ca", root)
        hosts = list(dict.fromkeys([*HERE, *(host or [])]))
        until = datetime.now(UTC) + timedelta(days=days)
        served = authority.issue(root, (host or ["localhost"])[0], "server", hosts, until=until)
        authority.write_pair(folder, "server", served, root.pem)
        for name in agents:
            _issue(folder, root, name, until, replace=False)
    except FileExistsError as error:
        raise CommandFailed(f"{error} already exists and was not changed") from None
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written ({error.strerror})") from None
    say(
        f"{folder}: an authority and a certificate for {', '.join(hosts)}, valid until {until:%Y-%m-%d}",
        f"  start:   observatory serve --tls-cert {folder}/server.crt --tls-key {folder}/server.key \\",
        f"             --tls-client-ca {folder}/ca.crt --tls-client-certs optional",
        f"  clients: OBSERVATORY_CA={folder}/ca.crt",
        f"  an agent's certificate: observatory tls agent {folder} NAME",
        f"  keep {folder}/ca.key secret: its holder can impersonate any agent",
    )


@tls.command(name="agent")
def agent(
    folder: Annotated[Path, Parameter(help="The folder of `observatory tls init`.")],
    name: Annotated[str, Parameter(help="The agent's id.")],
    *,
    days: Days = 90,
) -> None:
    """Issue or renew an agent's certificate: the files are replaced, the name in it stays."""
    _check(days, [name])
    from observatory.features.certificates import authority

    root = _authority(folder)
    until = datetime.now(UTC) + timedelta(days=days)
    try:
        _issue(folder, root, name, until, replace=True)
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written ({error.strerror})") from None
    say(
        f"{folder}/{name}.crt and {name}.key are valid until {until:%Y-%m-%d}",
        f"  the agent:  OBSERVATORY_CERT={folder}/{name}.crt OBSERVATORY_CERT_KEY={folder}/{name}.key",
        f"  bind it:    observatory certificates bind {name} --uri {authority.agent_uri(name)}",
    )


@tls.command(name="server")
def server(
    folder: Annotated[Path, Parameter(help="The folder of `observatory tls init`.")],
    *,
    host: Annotated[
        list[str] | None,
        Parameter(help="An additional name or address of the gateway; existing ones stay.", negative=()),
    ] = None,
    days: Days = 90,
) -> None:
    """Renew the gateway's certificate; a running gateway reloads it by itself."""
    _check(days, [])
    for name in host or []:
        _check_host(name)
    from observatory.features.certificates import authority

    root = _authority(folder)
    try:
        known = authority.hosts_of(folder)
    except (OSError, ValueError):
        known = []
    hosts = list(dict.fromkeys([*(known or HERE), *(host or [])]))
    until = datetime.now(UTC) + timedelta(days=days)
    made = authority.issue(root, hosts[0], "server", hosts, until=until)
    try:
        authority.write_pair(folder, "server", made, root.pem, replace=True)
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written ({error.strerror})") from None
    say(f"{folder}/server.crt and server.key, for {', '.join(hosts)}, are valid until {until:%Y-%m-%d}")


def _authority(folder: Path) -> authority.CertificatePair:
    from observatory.features.certificates import authority

    try:
        return authority.read_authority(folder)
    except (OSError, ValueError):
        raise CommandFailed(
            f"{folder} contains no authority; create one with `observatory tls init`"
        ) from None


def _issue(
    folder: Path, root: authority.CertificatePair, name: str, until: datetime, *, replace: bool
) -> None:
    from observatory.features.certificates import authority

    made = authority.issue(root, name, "agent", [authority.agent_uri(name)], until=until)
    authority.write_pair(folder, name, made, replace=replace)


def _check_host(name: str) -> None:
    try:
        ip_address(name)
    except ValueError:
        try:
            make_binding("dns", name)
        except ValueError:
            raise InvalidArguments(f"--host {name!r} is neither a host name nor an address") from None


def _check(days: int, names: list[str]) -> None:
    if not 1 <= days <= LONGEST_DAYS:
        raise InvalidArguments(f"--days must be a number from 1 to {LONGEST_DAYS}")
    for name in names:
        if not _FILE(name) or name.lower() in RESERVED:  # some file systems ignore case
            raise InvalidArguments(
                "the agent's name becomes a file name: use letters, digits, dot, dash and underscore, "
                "at most 64, and neither ca nor server"
            )

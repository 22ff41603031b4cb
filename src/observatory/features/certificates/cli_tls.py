"""`observatory tls`: certificates for a first hour, from a small authority of one's own."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from observatory.cli.terminal import CommandFailed, Misused, say
from observatory.protocol.certificates import bound_to

if TYPE_CHECKING:
    from observatory.features.certificates import authority

tls = App(name="tls", help="Certificates of a small authority of one's own: init, agent, server.")
LONGEST_DAYS = 3_650
Days = Annotated[int, Parameter(help="How long what is issued is good, in days.")]
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}").fullmatch
RESERVED = ("ca", "server")
HERE = ("localhost", "127.0.0.1", "::1")


@tls.command(name="init")
def init(
    folder: Annotated[Path, Parameter(help="Made if it is not there.")],
    *,
    host: Annotated[
        list[str] | None,
        Parameter(help="A name or address of the gateway; localhost is always one.", negative=()),
    ] = None,
    agent: Annotated[
        list[str] | None, Parameter(help="An agent that gets a certificate too.", negative=())
    ] = None,
    days: Days = 90,
) -> None:
    """Make an authority, a certificate for the gateway, and one for each agent named."""
    from observatory.features.certificates import authority

    agents = list(dict.fromkeys(agent or []))
    _check(days, agents)
    for name in host or []:
        _check_host(name)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (folder / "ca.crt").exists() or (folder / "ca.key").exists():
            raise CommandFailed(f"{folder} holds an authority already; `observatory tls agent` issues more")
        root = authority.make_authority("Observatory authority")
        authority.write_pair(folder, "ca", root)
        hosts = list(dict.fromkeys([*HERE, *(host or [])]))
        until = datetime.now(UTC) + timedelta(days=days)
        served = authority.issue(root, (host or ["localhost"])[0], "server", hosts, until=until)
        authority.write_pair(folder, "server", served, root.pem)
        for name in agents:
            _issue(folder, root, name, until, replace=False)
    except FileExistsError as error:
        raise CommandFailed(f"{error} is there already and was left as it is") from None
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written ({error.strerror})") from None
    say(
        f"an authority and a certificate for {', '.join(hosts)} are in {folder}, good until {until:%Y-%m-%d}",
        f"  start:   observatory serve --tls-cert {folder}/server.crt --tls-key {folder}/server.key \\",
        f"             --tls-client-ca {folder}/ca.crt --tls-client-certs optional",
        f"  clients: OBSERVATORY_CA={folder}/ca.crt",
        f"  an agent's certificate: observatory tls agent {folder} NAME",
        f"  keep {folder}/ca.key to yourself: who has it can be any agent",
    )


@tls.command(name="agent")
def agent(
    folder: Annotated[Path, Parameter(help="The folder of `observatory tls init`.")],
    name: Annotated[str, Parameter(help="The agent's id.")],
    *,
    days: Days = 90,
) -> None:
    """Issue a certificate for an agent, or renew it: the files are replaced, the name in it stays."""
    _check(days, [name])
    from observatory.features.certificates import authority

    root = _authority(folder)
    until = datetime.now(UTC) + timedelta(days=days)
    try:
        _issue(folder, root, name, until, replace=True)
    except OSError as error:
        raise CommandFailed(f"{folder} cannot be written ({error.strerror})") from None
    say(
        f"{folder}/{name}.crt and {name}.key are good until {until:%Y-%m-%d}",
        f"  the agent:  OBSERVATORY_CERT={folder}/{name}.crt OBSERVATORY_CERT_KEY={folder}/{name}.key",
        f"  bind it:    observatory certificates bind {name} --uri {authority.name_of(name)}",
    )


@tls.command(name="server")
def server(
    folder: Annotated[Path, Parameter(help="The folder of `observatory tls init`.")],
    *,
    host: Annotated[
        list[str] | None,
        Parameter(help="A further name or address of the gateway; those it has stay.", negative=()),
    ] = None,
    days: Days = 90,
) -> None:
    """Renew the gateway's own certificate; a running gateway takes it over by itself."""
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
    say(f"{folder}/server.crt and server.key, for {', '.join(hosts)}, are good until {until:%Y-%m-%d}")


def _authority(folder: Path) -> authority.Pair:
    from observatory.features.certificates import authority

    try:
        return authority.read_authority(folder)
    except (OSError, ValueError):
        raise CommandFailed(f"{folder} holds no authority; make one with `observatory tls init`") from None


def _issue(folder: Path, root: authority.Pair, name: str, until: datetime, *, replace: bool) -> None:
    from observatory.features.certificates import authority

    made = authority.issue(root, name, "agent", [authority.name_of(name)], until=until)
    authority.write_pair(folder, name, made, replace=replace)


def _check_host(name: str) -> None:
    try:
        ip_address(name)
    except ValueError:
        try:
            bound_to("dns", name)
        except ValueError:
            raise Misused(f"--host {name!r} is neither a host's name nor an address") from None


def _check(days: int, names: list[str]) -> None:
    if not 1 <= days <= LONGEST_DAYS:
        raise Misused(f"--days is a number from 1 to {LONGEST_DAYS}")
    for name in names:
        if not _FILE(name) or name.lower() in RESERVED:  # of names that some disks do not tell apart
            raise Misused(
                "an agent's name becomes a file's here: letters, digits, dot, dash and underscore, "
                "at most 64, and neither ca nor server"
            )

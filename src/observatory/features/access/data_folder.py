"""The data folder's two files of keys, and what a first start makes: the home tenant, two people, three keys.

Law (S980): `credentials.json` holds the keys of people, `agent.json` what an agent needs and nothing else.
Both are written at every start, their owner's alone, and whole or not at all. A folder that lost its
credentials gets new ones, audited like the first. Keys that the database does not know are set aside
(S1181), but an empty database next to them is refused before it is touched (S1180).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import msgspec

from observatory.errors import StartupError
from observatory.features.access import commands as access
from observatory.features.access.routes_keys import make_key, make_user
from observatory.http.answers import Refusal
from observatory.http.app_state import House
from observatory.pipeline.state import HOME_TENANT, Principal
from observatory.protocol import clock
from observatory.protocol.credentials import public_id
from observatory.settings import Settings

CREDENTIALS = "credentials.json"
AGENT_FILE = "agent.json"
LINK_FILE = "login.url"  # where a login link is that may not be printed
KEYS = ("admin_key", "operator_key", "agent_key")
log = logging.getLogger("observatory")


def refuse_empty(settings: Settings) -> None:
    """A folder with keys had a record, and rules with it. An empty database in its place is a wrong URL, a
    lost file or a move without the record: beginning again there would govern nobody and say nothing."""
    folder, own = settings.folder, settings.folder / "observatory.db"
    if not (folder / CREDENTIALS).exists():
        return
    take_along = (
        f"move the record there first (`observatory copy --from sqlite:///{own.absolute()} --to URL`)"
        if settings.is_postgres and own.exists()
        else "name the database that belongs to it (--db), or put that back"
    )
    raise StartupError(
        f"the database is empty, but {folder / CREDENTIALS} holds the keys of another one; nothing was "
        f"changed: {take_along}, or begin a new record in another folder (--data)"
    )


def refuse_broken(settings: Settings) -> None:
    """Before anything is started: what agents find is written from `agent_key` (S1291)."""
    path = settings.folder / CREDENTIALS
    known = _read(path)
    if known is not None and not isinstance(known.get("agent_key"), str):
        raise StartupError(
            f"{path} has no agent_key; put it back, or remove the file to get new keys for everybody"
        )


async def furnish(house: House) -> None:
    """What a first start makes. A folder that lost its credentials gets new ones, audited like the first."""
    head, _ = await house.store.head(HOME_TENANT)
    keeper = house.principal_of_house(HOME_TENANT)
    if head == 0:  # of several gateways that start at once on an empty database one makes it
        await house.act(access.create_tenant(keeper, HOME_TENANT, "Default", house.clock()))
    path = house.settings.folder / CREDENTIALS
    known = _read(path)
    if known is not None and not await _knows(house, known):
        _set_aside(path, clock.from_ns(house.clock()))
        known = None
    if known is None:
        known = {"tenant_id": HOME_TENANT}
        for name, label in (("admin", "Administrator"), ("operator", "Operator")):
            user = await _person(house, keeper, name, label)
            known[f"{name}_key"], _ = await make_key(
                house, keeper, role=name, label=f"{name} key of this folder", user_id=user["user_id"]
            )
        known["agent_key"], _ = await make_key(house, keeper, role="agent", label="agent key of this folder")
    told = {"url": house.url} | {k: v for k, v in known.items() if k not in ("url", "ca")}
    authority = None if house.certificates.tls is None else house.certificates.tls.own_authority
    trusted = {} if authority is None else {"ca": authority}
    for file in path.parent.glob(f"agents/*/{AGENT_FILE}"):  # of bound agents: the address may be another
        _readdress(file, {"url": house.url} | trusted)
    write_private(path.with_name(AGENT_FILE), {"url": house.url, "agent_key": known["agent_key"]} | trusted)
    write_private(path, told | trusted)  # last: who waits for it finds the others


def _readdress(file: Path, to: dict[str, Any]) -> None:
    """An agent may write its own file: one that is broken is left, and stops no gateway (S1272)."""
    try:
        bound = _read(file)
    except StartupError as error:
        log.warning("%s", error)
        return
    if bound is not None:
        bound.pop("ca", None)
        write_private(file, bound | to)


async def _knows(house: House, known: dict[str, Any]) -> bool:
    """Whether any of the folder's keys is, or was, one of this database."""
    for name in KEYS:
        public = public_id(str(known.get(name, "")))
        if public is not None and await house.store.rows(HOME_TENANT, "api_keys", public_id=public):
            return True
    return False


def _set_aside(path: Path, moment: str) -> None:
    """What was for another database stays readable for its owner, under a name nobody looks for."""
    stamp = "".join(one for one in moment[:19] if one.isalnum())
    for file in (path, path.with_name(AGENT_FILE), *path.parent.glob(f"agents/*/{AGENT_FILE}")):
        if file.exists():
            file.rename(file.with_name(f"{file.name}.before-{stamp}"))
    log.warning(
        "the keys in %s are of another database; they are kept as %s.before-%s, and new ones are made",
        path, path.name, stamp,
    )  # fmt: skip


async def _person(house: House, keeper: Principal, name: str, label: str) -> dict[str, Any]:
    """Whoever has this name, made if there is nobody; by another gateway, perhaps, in the same moment."""
    rows = await house.store.rows(HOME_TENANT, "users", name=name)
    if rows:
        return rows[0]
    try:
        return await make_user(house, keeper, name, label, name)
    except Refusal:
        rows = await house.store.rows(HOME_TENANT, "users", name=name)
        if not rows:
            raise
        return rows[0]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StartupError(f"{path} cannot be read; mend it, or remove it to get new keys") from error


def write_private(path: Path, value: dict[str, Any]) -> None:
    write_bytes_private(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def write_bytes_private(path: Path, text: bytes) -> None:
    """Written beside and renamed: a crash leaves the old file or the new one. Never readable by others."""
    beside = path.with_suffix(".new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)

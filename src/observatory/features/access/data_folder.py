"""The data folder's credential files, and the first start: the home tenant, two users, three keys.

Law (S980): `credentials.json` holds the keys of people, `agent.json` what an agent needs and nothing else.
Both are written at every start, readable by their owner only, and whole or not at all. A folder that lost its
credentials gets new ones, audited like the first. Keys that the database does not know are set aside
(S1181), but an empty database next to them is refused before it is changed (S1180).
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
from observatory.http.app_state import AppState
from observatory.pipeline.state import HOME_TENANT, Principal
from observatory.protocol import clock
from observatory.protocol.credentials import public_id
from observatory.settings import Settings

CREDENTIALS = "credentials.json"
AGENT_FILE = "agent.json"
LINK_FILE = "login.url"  # holds a login link that may not be printed
KEYS = ("admin_key", "operator_key", "agent_key")
log = logging.getLogger("observatory")


def refuse_empty(settings: Settings) -> None:
    """A folder with keys had a record, and policies in it. An empty database in its place is a wrong URL, a
    lost file or a move without the record: starting again there would silently enforce nothing."""
    folder, own = settings.folder, settings.folder / "observatory.db"
    if not (folder / CREDENTIALS).exists():
        return
    advice = (
        f"move the record there first (`observatory copy --from sqlite:///{own.absolute()} --to URL`)"
        if settings.is_postgres and own.exists()
        else "name the database that belongs to it (--db), or put it back"
    )
    raise StartupError(
        f"the database is empty, but {folder / CREDENTIALS} holds the keys of another one; nothing was "
        f"changed: {advice}, or begin a new record in another folder (--data)"
    )


def refuse_broken(settings: Settings) -> None:
    """Checked before anything starts: the agents' file is written from `agent_key` (S1291)."""
    path = settings.folder / CREDENTIALS
    known = _read(path)
    if known is not None and not isinstance(known.get("agent_key"), str):
        raise StartupError(
            f"{path} has no agent_key; put it back, or remove the file to create new keys for all users"
        )


async def complete_first_start(app: AppState) -> None:
    """The first start. A folder that lost its credentials gets new ones, audited like the first."""
    head, _ = await app.store.head(HOME_TENANT)
    actor = app.gateway_principal(HOME_TENANT)
    if head == 0:  # of several gateways that start at once on an empty database one creates it
        await app.act(access.create_tenant(actor, HOME_TENANT, "Default", app.clock()))
    path = app.settings.folder / CREDENTIALS
    known = _read(path)
    if known is not None and not await _knows(app, known):
        _set_aside(path, clock.from_ns(app.clock()))
        known = None
    if known is None:
        known = {"tenant_id": HOME_TENANT}
        for name, label in (("admin", "Administrator"), ("operator", "Operator")):
            user = await _ensure_user(app, actor, name, label)
            known[f"{name}_key"], _ = await make_key(
                app, actor, role=name, label=f"{name} key of this folder", user_id=user["user_id"]
            )
        known["agent_key"], _ = await make_key(app, actor, role="agent", label="agent key of this folder")
    credentials = {"url": app.url} | {k: v for k, v in known.items() if k not in ("url", "ca")}
    authority = None if app.tls is None else app.tls.own_authority
    trusted = {} if authority is None else {"ca": authority}
    for file in path.parent.glob(f"agents/*/{AGENT_FILE}"):  # of bound agents: the address may have changed
        _readdress(file, {"url": app.url} | trusted)
    write_private(path.with_name(AGENT_FILE), {"url": app.url, "agent_key": known["agent_key"]} | trusted)
    write_private(path, credentials | trusted)  # last: a script that waits for it finds the other files


def _readdress(file: Path, to: dict[str, Any]) -> None:
    """Update the URL in a bound agent's file. An agent may write it: a broken one is left alone (S1272)."""
    try:
        bound = _read(file)
    except StartupError as error:
        log.warning("%s", error)
        return
    if bound is not None:
        bound.pop("ca", None)
        write_private(file, bound | to)


async def _knows(app: AppState, known: dict[str, Any]) -> bool:
    """Whether any of the folder's keys is, or was, one of this database."""
    for name in KEYS:
        public = public_id(str(known.get(name, "")))
        if public is not None and await app.store.rows(HOME_TENANT, "api_keys", public_id=public):
            return True
    return False


def _set_aside(path: Path, moment: str) -> None:
    """Rename the files of another database, so that their owner can still read them."""
    stamp = "".join(one for one in moment[:19] if one.isalnum())
    for file in (path, path.with_name(AGENT_FILE), *path.parent.glob(f"agents/*/{AGENT_FILE}")):
        if file.exists():
            file.rename(file.with_name(f"{file.name}.before-{stamp}"))
    log.warning(
        "the keys in %s are of another database; they are kept as %s.before-%s, and new ones are created",
        path, path.name, stamp,
    )  # fmt: skip


async def _ensure_user(app: AppState, actor: Principal, name: str, label: str) -> dict[str, Any]:
    """The user of this name, created if missing; another gateway may create it at the same moment."""
    rows = await app.store.rows(HOME_TENANT, "users", name=name)
    if rows:
        return rows[0]
    try:
        return await make_user(app, actor, name, label, name)
    except Refusal:
        rows = await app.store.rows(HOME_TENANT, "users", name=name)
        if not rows:
            raise
        return rows[0]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StartupError(f"{path} cannot be read; fix it, or remove it to create new keys") from error


def write_private(path: Path, value: dict[str, Any]) -> None:
    write_bytes_private(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def write_bytes_private(path: Path, text: bytes) -> None:
    """Write atomically: a crash leaves the old or the new file. Never readable by others."""
    temporary = path.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)

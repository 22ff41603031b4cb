"""Tenants, users, keys, versions and login links: over HTTP, with an admin's key, audited like any act."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway, api
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import Yes, confirm, when
from observatory.cli.terminal import CommandFailed, note, say, show_json
from observatory.protocol.clock import from_ns

Role = Literal["viewer", "auditor", "approver", "operator", "admin", "agent"]
Status = Literal["current", "previous", "retired"]
Json = Annotated[bool, Parameter(negative=(), help="Print JSON.")]

keys = App(name="keys", help="API keys: list, create, bind, revoke.")
logins = App(name="logins", help="Sign-ins: list, end.")
users = App(name="users", help="People: list, create, disable.")
tenants = App(name="tenants", help="Tenants: list, create.")
versions = App(name="versions", help="Which capability versions are accepted: list, set.")


@keys.command(name="list")
def list_keys(*, gateway: Gateway = ANY, json: Json = False) -> None:
    """The tenant's keys, without their secrets."""
    with api(gateway) as door:
        rows = list(door.items("/v1/keys"))
    columns: dict[str, Cell] = {
        "KEY": "key_id",
        "ROLE": "role",
        "BOUND TO": lambda row: row["agent_id"] or row["user_id"],
        "LABEL": "label",
        "CREATED": at("created_at"),
        "EXPIRES": lambda row: when(row["expires_at"]) or "never",
        "STATE": lambda row: f"revoked {when(row['revoked_at'])}" if row["revoked_at"] else "good",
    }
    show_rows(rows, json, columns, "no key was made")


@keys.command(name="create")
def create_key(
    *,
    gateway: Gateway = ANY,
    role: Role = "agent",
    agent: Annotated[str | None, Parameter(help="Bind an agent's key to this agent.")] = None,
    user: Annotated[str | None, Parameter(help="The person it belongs to, by name or id.")] = None,
    label: str = "key",
    expires: Annotated[str | None, Parameter(help="A time with zone, or 30d, 12h, 90m.")] = None,
    json: Json = False,
) -> None:
    """Make a key; its secret is printed this once, alone on stdout."""
    with api(gateway) as door:
        body: dict[str, Any] = {
            "role": role,
            "label": label,
            "agent_id": agent,
            "expires_at": _expiry(expires),
        }
        body["user_id"] = _user_id(door, user) if user else None
        made = door.ask("POST", "/v1/keys", body)
    if json:
        show_json(made)
        return
    note(f"{made['key_id']} ({role}): keep this secret now, it is shown only once")
    say(made["key"])


@keys.command(name="revoke")
def revoke_key(key_id: str, *, yes: Yes = False, gateway: Gateway = ANY) -> None:
    """Revoke a key: it is refused from the next message on."""
    confirm(f"Revoke {key_id}, for good?", yes)
    with api(gateway) as door:
        door.ask("DELETE", f"/v1/keys/{_part(key_id)}")
    say(f"{key_id} is revoked")


@users.command(name="list")
def list_users(*, gateway: Gateway = ANY, json: Json = False) -> None:
    """People of the tenant and their roles."""
    with api(gateway) as door:
        rows = list(door.items("/v1/users"))
    columns: dict[str, Cell] = {
        "USER": "user_id",
        "NAME": "name",
        "ROLE": "role",
        "SHOWN AS": "display_name",
        "STATE": lambda row: "disabled" if row["disabled_at"] else "good",
    }
    show_rows(rows, json, columns, "nobody is known")


@users.command(name="create")
def create_user(
    name: str,
    *,
    gateway: Gateway = ANY,
    role: Role = "viewer",
    display_name: str | None = None,
    json: Json = False,
) -> None:
    """Add a person; prints the one-time link that signs them in."""
    with api(gateway) as door:
        made = door.ask(
            "POST", "/v1/users", {"name": name, "role": role, "display_name": display_name or name}
        )
    if json:
        show_json(made)
        return
    note(f"{made['user_id']} ({name}, {role}): send them this link, it works once")
    say(made["invite_url"])


@users.command(name="disable")
def disable_user(user: str, *, yes: Yes = False, gateway: Gateway = ANY) -> None:
    """Disable a person (by name or id) and all their keys."""
    confirm(f"Disable {user}, with all keys and sign-ins, for good?", yes)
    with api(gateway) as door:
        door.ask("POST", f"/v1/users/{_part(_user_id(door, user))}/disable")
    say(f"{user} is disabled, with all keys and sign-ins")


@tenants.command(name="list")
def list_tenants(*, gateway: Gateway = ANY, json: Json = False) -> None:
    """The tenants you may see."""
    with api(gateway) as door:
        rows = list(door.items("/v1/tenants"))
    columns = {"TENANT": "tenant_id", "SHOWN AS": "display_name", "CREATED": at("created_at")}
    show_rows(rows, json, columns, "there is no tenant")


@tenants.command(name="create")
def create_tenant(
    display_name: str,
    *,
    gateway: Gateway = ANY,
    tenant: Annotated[str | None, Parameter(help="Its id, tnt_…; made up if not given.")] = None,
    json: Json = False,
) -> None:
    """Make a tenant with its first admin; the admin's key is printed this once."""
    with api(gateway) as door:
        made = door.ask("POST", "/v1/tenants", {"display_name": display_name, "tenant_id": tenant})
    if json:
        show_json(made)
        return
    note(f"{made['tenant_id']} is made; keep its admin key now, it is shown only once")
    say(made["key"])


@versions.command(name="list")
def list_versions(*, gateway: Gateway = ANY, agent_type: str | None = None, json: Json = False) -> None:
    """The version registry."""
    with api(gateway) as door:
        rows = list(door.items("/v1/versions", agent_type=agent_type))
    columns: dict[str, Cell] = {
        "AGENT TYPE": "agent_type",
        "VERSION": "version",
        "STATUS": "status",
        "FIELDS": lambda row: ", ".join(row["fields"] or ()) or "all",
        "CHANGED": at("updated_at"),
    }
    show_rows(rows, json, columns, "no version is registered")


@versions.command(name="set")
def set_version(
    agent_type: str, version: str, status: Status, *, gateway: Gateway = ANY, json: Json = False
) -> None:
    """Set one version of an agent type; a new current one makes the old one previous, that one retired."""
    with api(gateway) as door:
        known = {
            row["version"]: {"version": row["version"], "status": row["status"], "fields": row["fields"]}
            for row in door.items("/v1/versions", agent_type=agent_type)
            if row["status"] != "unknown"
        }
        before = known.pop(version, {"fields": None})
        for row in known.values():
            row["status"] = _moved(row["status"], status)
        rows = [{"version": version, "status": status, "fields": before["fields"]}, *known.values()]
        answer = door.ask("PUT", "/v1/versions", {"agent_type": agent_type, "versions": rows})
    if json:
        show_json(answer["items"])
        return
    say(*(f"{agent_type} {row['version']}: {row['status']}" for row in answer["items"]))


@logins.command(name="list")
def list_logins(*, gateway: Gateway = ANY, json: Json = False) -> None:
    """Who is signed in, and links that were not followed yet."""
    with api(gateway) as door:
        rows = list(door.items("/v1/logins"))
        people = {row["user_id"]: row["name"] for row in door.items("/v1/people")}
    columns: dict[str, Cell] = {
        "SIGN-IN": "login_id",
        "WHO": lambda row: people.get(row["user_id"], row["user_id"]),
        "KIND": "kind",
        "SINCE": at("created_at"),
        "LAST USED": lambda row: when(row["last_used_at"]) or "",
        "ENDS": at("expires_at"),
        "KEY": lambda row: row["key_id"] or "the gateway's",
    }
    show_rows(rows, json, columns, "nobody is signed in")


@logins.command(name="end")
def end_login(login: str, *, gateway: Gateway = ANY) -> None:
    """End a sign-in at once, or a link before it is followed."""
    with api(gateway) as door:
        door.ask("DELETE", f"/v1/logins/{_part(login)}")
    say(f"{login} is ended")


def login(
    *, gateway: Gateway = ANY, user: Annotated[str | None, Parameter(help="A person, by name or id.")] = None
) -> None:
    """Print a fresh one-time login link: the operator's own, or with an admin's key anyone's."""
    with api(gateway, "admin" if user else "operator") as door:
        body = {"user_id": _user_id(door, user) if user else None}
        say(door.ask("POST", "/v1/logins", body)["url"])


def _moved(status: str, new: Status) -> str:
    """N and N-1: there is room for one of each, so what stood there moves down."""
    if new == "current":
        return "previous" if status == "current" else "retired"
    return "retired" if status == new else status


def _user_id(door: Api, user: str) -> str:
    if user.startswith("usr_"):
        return user
    for row in door.items("/v1/users"):
        if row["name"] == user:
            return str(row["user_id"])
    raise CommandFailed(f"there is no user {user}; `observatory users list` shows them")


def _part(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise CommandFailed("an id is letters, digits, - and _; copy it from the list")
    return text


def _expiry(text: str | None) -> str | None:
    spans = {"d": 86_400, "h": 3_600, "m": 60}
    found = re.fullmatch(r"(\d{1,6})([dhm])", text or "")
    if found is None:
        return text
    return from_ns(time.time_ns() + int(found[1]) * spans[found[2]] * 1_000_000_000)

"""Commands for tenants, users, keys, versions and logins: over HTTP, with an admin's key, and audited."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions, api
from observatory.cli.listing import Cell, at, show_rows
from observatory.cli.prompts import JsonOutput, Yes, confirm, when
from observatory.cli.terminal import CommandFailed, note, say, show_json
from observatory.protocol.clock import from_ns

Role = Literal["viewer", "auditor", "approver", "operator", "admin", "agent"]
Status = Literal["current", "previous", "retired"]

keys = App(name="keys", help="API keys: list, create, bind, revoke.")
logins = App(name="logins", help="Sign-ins: list, end.")
users = App(name="users", help="People: list, create, disable.")
tenants = App(name="tenants", help="Tenants: list, create.")
versions = App(name="versions", help="Which capability versions are accepted: list, set.")


@keys.command(name="list")
def list_keys(*, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """The tenant's keys, without their secrets."""
    with api(gateway) as client:
        rows = list(client.items("/v1/keys"))
    columns: dict[str, Cell] = {
        "KEY": "key_id",
        "ROLE": "role",
        "BOUND TO": lambda row: row["agent_id"] or row["user_id"],
        "LABEL": "label",
        "CREATED": at("created_at"),
        "EXPIRES": lambda row: when(row["expires_at"]) or "never",
        "STATE": lambda row: f"revoked {when(row['revoked_at'])}" if row["revoked_at"] else "active",
    }
    show_rows(rows, json, columns, "no keys")


@keys.command(name="create")
def create_key(
    *,
    gateway: GatewayOptions = ANY,
    role: Role = "agent",
    agent: Annotated[str | None, Parameter(help="Bind an agent's key to this agent.")] = None,
    user: Annotated[str | None, Parameter(help="The user it belongs to, by name or id.")] = None,
    label: str = "key",
    expires: Annotated[str | None, Parameter(help="A time with zone, or 30d, 12h, 90m.")] = None,
    json: JsonOutput = False,
) -> None:
    """Create a key; its secret is printed only once, alone on stdout."""
    with api(gateway) as client:
        body: dict[str, Any] = {
            "role": role,
            "label": label,
            "agent_id": agent,
            "expires_at": _expiry(expires),
        }
        body["user_id"] = _user_id(client, user) if user else None
        made = client.ask("POST", "/v1/keys", body)
    if json:
        show_json(made)
        return
    note(f"{made['key_id']} ({role}): keep this secret now, it is shown only once")
    say(made["key"])


@keys.command(name="revoke")
def revoke_key(key_id: str, *, yes: Yes = False, gateway: GatewayOptions = ANY) -> None:
    """Revoke a key: it is refused from the next message on."""
    confirm(f"Revoke {key_id} permanently?", yes)
    with api(gateway) as client:
        client.ask("DELETE", f"/v1/keys/{_part(key_id)}")
    say(f"{key_id} is revoked")


@users.command(name="list")
def list_users(*, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """People of the tenant and their roles."""
    with api(gateway) as client:
        rows = list(client.items("/v1/users"))
    columns: dict[str, Cell] = {
        "USER": "user_id",
        "NAME": "name",
        "ROLE": "role",
        "DISPLAY NAME": "display_name",
        "STATE": lambda row: "disabled" if row["disabled_at"] else "active",
    }
    show_rows(rows, json, columns, "no users")


@users.command(name="create")
def create_user(
    name: str,
    *,
    gateway: GatewayOptions = ANY,
    role: Role = "viewer",
    display_name: str | None = None,
    json: JsonOutput = False,
) -> None:
    """Add a person; prints the one-time link that signs them in."""
    with api(gateway) as client:
        made = client.ask(
            "POST", "/v1/users", {"name": name, "role": role, "display_name": display_name or name}
        )
    if json:
        show_json(made)
        return
    note(f"{made['user_id']} ({name}, {role}): send them this link, it works once")
    say(made["invite_url"])


@users.command(name="disable")
def disable_user(user: str, *, yes: Yes = False, gateway: GatewayOptions = ANY) -> None:
    """Disable a person (by name or id) and all their keys."""
    confirm(f"Disable {user}, with all keys and sign-ins, permanently?", yes)
    with api(gateway) as client:
        client.ask("POST", f"/v1/users/{_part(_user_id(client, user))}/disable")
    say(f"{user} is disabled, with all keys and sign-ins")


@tenants.command(name="list")
def list_tenants(*, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """The tenants you may see."""
    with api(gateway) as client:
        rows = list(client.items("/v1/tenants"))
    columns = {"TENANT": "tenant_id", "DISPLAY NAME": "display_name", "CREATED": at("created_at")}
    show_rows(rows, json, columns, "no tenants")


@tenants.command(name="create")
def create_tenant(
    display_name: str,
    *,
    gateway: GatewayOptions = ANY,
    tenant: Annotated[str | None, Parameter(help="Its id, tnt_…; generated if not given.")] = None,
    json: JsonOutput = False,
) -> None:
    """Create a tenant with its first admin; the admin's key is printed only once."""
    with api(gateway) as client:
        made = client.ask("POST", "/v1/tenants", {"display_name": display_name, "tenant_id": tenant})
    if json:
        show_json(made)
        return
    note(f"{made['tenant_id']} is created; keep its admin key now, it is shown only once")
    say(made["key"])


@versions.command(name="list")
def list_versions(
    *, gateway: GatewayOptions = ANY, agent_type: str | None = None, json: JsonOutput = False
) -> None:
    """The version registry."""
    with api(gateway) as client:
        rows = list(client.items("/v1/versions", agent_type=agent_type))
    columns: dict[str, Cell] = {
        "AGENT TYPE": "agent_type",
        "VERSION": "version",
        "STATUS": "status",
        "FIELDS": lambda row: ", ".join(row["fields"] or ()) or "all",
        "CHANGED": at("updated_at"),
    }
    show_rows(rows, json, columns, "no versions")


@versions.command(name="set")
def set_version(
    agent_type: str, version: str, status: Status, *, gateway: GatewayOptions = ANY, json: JsonOutput = False
) -> None:
    """Set the status of a version; a new current one makes the old one previous, and that one retired."""
    with api(gateway) as client:
        known = {
            row["version"]: {"version": row["version"], "status": row["status"], "fields": row["fields"]}
            for row in client.items("/v1/versions", agent_type=agent_type)
            if row["status"] != "unknown"
        }
        before = known.pop(version, {"fields": None})
        for row in known.values():
            row["status"] = _moved(row["status"], status)
        rows = [{"version": version, "status": status, "fields": before["fields"]}, *known.values()]
        answer = client.ask("PUT", "/v1/versions", {"agent_type": agent_type, "versions": rows})
    if json:
        show_json(answer["items"])
        return
    say(*(f"{agent_type} {row['version']}: {row['status']}" for row in answer["items"]))


@logins.command(name="list")
def list_logins(*, gateway: GatewayOptions = ANY, json: JsonOutput = False) -> None:
    """Sign-ins, and login links that were not used yet."""
    with api(gateway) as client:
        rows = list(client.items("/v1/logins"))
        people = {row["user_id"]: row["name"] for row in client.items("/v1/people")}
    columns: dict[str, Cell] = {
        "SIGN-IN": "login_id",
        "WHO": lambda row: people.get(row["user_id"], row["user_id"]),
        "KIND": "kind",
        "SINCE": at("created_at"),
        "LAST USED": lambda row: when(row["last_used_at"]) or "",
        "ENDS": at("expires_at"),
        "KEY": lambda row: row["key_id"] or "the gateway's",
    }
    show_rows(rows, json, columns, "no sign-ins")


@logins.command(name="end")
def end_login(login: str, *, gateway: GatewayOptions = ANY) -> None:
    """End a sign-in at once, or a link before it is used."""
    with api(gateway) as client:
        client.ask("DELETE", f"/v1/logins/{_part(login)}")
    say(f"{login} is ended")


def login(
    *,
    gateway: GatewayOptions = ANY,
    user: Annotated[str | None, Parameter(help="A person, by name or id.")] = None,
) -> None:
    """Print a fresh one-time login link: the operator's own, or with an admin's key anyone's."""
    with api(gateway, "admin" if user else "operator") as client:
        body = {"user_id": _user_id(client, user) if user else None}
        say(client.ask("POST", "/v1/logins", body)["url"])


def _moved(status: str, new: Status) -> str:
    """One current and one previous version (N and N-1): the old ones move down."""
    if new == "current":
        return "previous" if status == "current" else "retired"
    return "retired" if status == new else status


def _user_id(client: GatewayApi, user: str) -> str:
    if user.startswith("usr_"):
        return user
    for row in client.items("/v1/users"):
        if row["name"] == user:
            return str(row["user_id"])
    raise CommandFailed(f"user {user} not found; `observatory users list` shows them")


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

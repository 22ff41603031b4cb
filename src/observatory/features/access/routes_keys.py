"""Creating users and keys: their rows, and the limits of a new key.

Law (S1186): a new key may do no more than the key it is created with, and ends no later. Secrets are created
here and returned once; only hashes are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from observatory.features.access import commands as access
from observatory.http.answers import Refusal
from observatory.http.app_state import AppState
from observatory.http.authentication import PERMISSIONS, allows
from observatory.pipeline.state import Principal, Role, SubmissionResult
from observatory.protocol import clock
from observatory.protocol.credentials import digest, new_key, public_id
from observatory.protocol.identity import mint

Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)",
        extra={"expects": "1 to 128 characters without control characters"},
    ),
]


async def make_user(app: AppState, who: Principal, name: str, display_name: str, role: str) -> dict[str, Any]:
    now_ns = app.clock()
    user = {
        "tenant_id": who.tenant_id,
        "user_id": mint("usr_", now_ns),
        "name": name,
        "display_name": display_name,
        "role": role,
        "created_ns": now_ns,
    }
    checked(await app.act(access.create_user(who, user, now_ns)))
    return user


async def make_key(
    app: AppState,
    who: Principal,
    *,
    role: str,
    label: str,
    user_id: str | None = None,
    agent_id: str | None = None,
    scopes: list[str] | None = None,
    expires_ns: int | None = None,
    user_role: str | None = None,
) -> tuple[str, dict[str, Any]]:
    now_ns, key = app.clock(), new_key()
    row = {
        "tenant_id": who.tenant_id,
        "key_id": mint("key_", now_ns),
        "public_id": public_id(key),
        "key_hash": digest(key),
        "role": role,
        "scopes": msgspec.json.encode(scopes or []).decode(),
        "user_id": user_id,
        "agent_id": agent_id,
        "label": label,
        "created_ns": now_ns,
        "created_by": who.entity_id,
        "expires_ns": expires_ns,
    }
    checked(await app.act(access.create_key(who, row, now_ns, user_role)))
    return key, row


def checked(verdict: SubmissionResult) -> SubmissionResult:
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")
    return verdict


async def existing_user(app: AppState, principal: Principal, user_id: str) -> dict[str, Any]:
    rows = await app.store.rows(principal.tenant_id, "users", user_id=user_id)
    if not rows:
        raise Refusal(404, "not_found", "no user of this tenant has that id")
    return rows[0]


async def source_key(app: AppState, who: Principal) -> dict[str, Any] | None:
    """The row of the key that `who` uses, or signed in with; None for the gateway itself."""
    key_id: str | None = who.key_id
    if who.is_browser:
        rows = await app.store.rows(who.tenant_id, "logins", login_id=who.key_id)
        key_id = rows[0]["key_id"] if rows else None
    rows = await app.store.rows(who.tenant_id, "api_keys", key_id=key_id) if key_id else []
    return rows[0] if rows else None


def scopes_within(who: Principal, role: Role, requested: Sequence[str]) -> list[str]:
    """The scopes of a new key of this role; those of the creating key where none are requested."""
    if not who.scopes:
        return [*requested]
    granted = PERMISSIONS[role] & set(requested or who.scopes)
    beyond = sorted(one for one in PERMISSIONS[role] & set(requested) if not allows(who, one))
    if beyond or not granted:
        raise Refusal(
            403,
            "not_allowed",
            f"a key may do no more than the one it is created with: that one has {', '.join(who.scopes)}",
        )
    return sorted(granted)


async def end_within(app: AppState, who: Principal, text: str | None) -> int | None:
    """When a new key expires: as requested, or with the key it is created with."""
    wanted_ns = _expiry(text, app.clock())
    key = await source_key(app, who)
    latest_ns = None if key is None else key["expires_ns"]
    if latest_ns is not None and wanted_ns is not None and wanted_ns > latest_ns:
        latest = clock.from_ns(latest_ns)
        raise Refusal(422, "bad_time", f"expires_at is after the end of the key it is created with, {latest}")
    return wanted_ns or latest_ns


def _expiry(text: str | None, now_ns: int) -> int | None:
    if text is None:
        return None
    expires_ns = clock.to_ns(text)
    if expires_ns <= now_ns:
        raise Refusal(422, "bad_time", "expires_at is in the past")
    return expires_ns

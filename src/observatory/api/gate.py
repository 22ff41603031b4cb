"""How a reading or commanding door learns who asks, and refuses whom it must."""

from __future__ import annotations

from typing import Any

from observatory.api.answers import Refusal
from observatory.api.auth import Permission, allows
from observatory.api.house import Call, House
from observatory.api.shown import CERTIFICATE
from observatory.gateway import access
from observatory.state import Principal


async def principal_of(request: Call, house: House) -> Principal:
    headers = dict(request.scope["headers"])
    shown: Any = request.scope.get(CERTIFICATE)
    principal = await house.auth.identify(headers, may_be_cached=False, certificate=shown)
    if principal is None:
        raise Refusal(401, "unauthorized", "send a valid key as 'Authorization: Bearer obs_…', or sign in")
    request.scope["observatory.who"] = principal  # type: ignore[typeddict-unknown-key]  # for the log
    by_cookie = b"authorization" not in headers
    if by_cookie and not house.auth.origin_is_ours(headers):
        raise Refusal(403, "foreign_origin", "this page may not act for the signed-in user")
    return principal


async def need(request: Call, house: House, permission: Permission) -> Principal:
    """The principal, if it may; a refusal is audited and says what was missing."""
    principal = await principal_of(request, house)
    if not allows(principal, permission):
        await house.act(access.denied(principal, permission, house.clock()))
        raise Refusal(403, "not_allowed", f"the role {principal.role} has no permission to {permission}")
    return principal

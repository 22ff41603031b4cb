"""How a reading or commanding door learns who asks, and refuses whom it must."""

from __future__ import annotations

from typing import Any, Final

from litestar.handlers import BaseRouteHandler

from observatory.features.access import commands as access
from observatory.http.answers import Refusal
from observatory.http.app_state import Call, House
from observatory.http.authentication import Permission, allows
from observatory.http.client_certificate import CERTIFICATE
from observatory.pipeline.state import Principal

# `opt` of a route that answers without a key, or asks for one itself.
OPEN: Final = {"open": True}
BODILESS: Final = ("GET", "HEAD")
WHO: Final = "observatory.who"


async def admit(request: Call, house: House, route: BaseRouteHandler) -> None:
    """Before anything of a request is read or judged its key must be good (S1005).

    With a body still to come the door looks again once it is there: a key may have ended meanwhile.
    """
    if route.opt.get("open") or request.method == "OPTIONS":
        return
    await _identify(request, house, may_be_cached=request.method not in BODILESS)


async def principal_of(request: Call, house: House) -> Principal:
    known: Principal | None = request.scope.get(WHO)  # type: ignore[assignment]
    if known is not None and request.method in BODILESS:
        return known
    return await _identify(request, house)


async def _identify(request: Call, house: House, may_be_cached: bool = False) -> Principal:
    headers = dict(request.scope["headers"])
    shown: Any = request.scope.get(CERTIFICATE)
    principal = await house.auth.identify(headers, may_be_cached=may_be_cached, certificate=shown)
    if principal is None:
        raise Refusal(401, "unauthorized", "send a valid key as 'Authorization: Bearer obs_…', or sign in")
    request.scope[WHO] = principal  # type: ignore[typeddict-unknown-key]  # for the log
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

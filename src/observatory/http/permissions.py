"""Who sends a request, and whether that role has the permission the endpoint needs."""

from __future__ import annotations

from typing import Any, Final

from litestar.handlers import BaseRouteHandler

from observatory.http.answers import Refusal
from observatory.http.app_state import AppState, Call
from observatory.http.authentication import Permission, allows
from observatory.http.client_certificate import CERTIFICATE
from observatory.pipeline.authority import denied
from observatory.pipeline.state import Principal

# `opt` of a route that needs no key, or checks one itself.
OPEN: Final = {"open": True}
BODILESS: Final = ("GET", "HEAD")
WHO: Final = "observatory.who"


async def require_key(request: Call, app: AppState, route: BaseRouteHandler) -> None:
    """Before a request is read or validated its key must be valid (S1005).

    With a body still to come the endpoint checks again once it is there: a key may have ended meanwhile.
    """
    if route.opt.get("open") or request.method == "OPTIONS":
        return
    await _identify(request, app, may_be_cached=request.method not in BODILESS)


async def principal_of(request: Call, app: AppState) -> Principal:
    known: Principal | None = request.scope.get(WHO)  # type: ignore[assignment]
    if known is not None and request.method in BODILESS:
        return known
    return await _identify(request, app)


async def _identify(request: Call, app: AppState, may_be_cached: bool = False) -> Principal:
    headers = dict(request.scope["headers"])
    shown: Any = request.scope.get(CERTIFICATE)
    principal = await app.auth.identify(headers, may_be_cached=may_be_cached, certificate=shown)
    if principal is None:
        raise Refusal(401, "unauthorized", "send a valid key as 'Authorization: Bearer obs_…', or sign in")
    request.scope[WHO] = principal  # type: ignore[typeddict-unknown-key]  # for the log
    by_cookie = b"authorization" not in headers
    if by_cookie and not app.auth.is_origin_allowed(headers):
        raise Refusal(403, "foreign_origin", "this page may not act for the signed-in user")
    return principal


async def require_permission(request: Call, app: AppState, permission: Permission) -> Principal:
    """The principal, if it has the permission; a refusal is audited and names the missing permission."""
    principal = await principal_of(request, app)
    if not allows(principal, permission):
        await app.act(denied(principal, permission, app.clock()))
        raise Refusal(403, "not_allowed", f"the role {principal.role} has no permission to {permission}")
    return principal

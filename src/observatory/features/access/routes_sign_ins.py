"""Sign-in endpoints: one-time links, browser sign-ins, and ending them.

Laws (S1182-S1187): a sign-in ends with the key its link was created with, after `cookie_hours` at the latest,
and when it was not used for `idle_minutes`; nothing prolongs it. Only a key creates a link: a stolen
browser cookie cannot renew itself. A link is used up by the button on its page, not by opening the page.
"""

from __future__ import annotations

import re
from html import escape
from time import time_ns
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import Response, Router, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Redirect

from observatory.features.access import commands as access
from observatory.features.access.routes_keys import Name, checked, existing_user, source_key
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.authentication import PERMISSIONS, allows, cookie_name
from observatory.http.permissions import OPEN, principal_of, require_permission
from observatory.http.web_ui import PAGES, safe_redirect_target
from observatory.pipeline.state import Principal
from observatory.protocol import clock
from observatory.protocol.credentials import digest, new_token
from observatory.protocol.identity import mint

HOUR_NS = 3600 * 1_000_000_000
MINUTE_NS = 60 * 1_000_000_000
USED = "this login link was used or has expired; run `observatory login` for a new one"
NO_KEY = (
    "a signed-in browser cannot create a login link, or a sign-in would never end; "
    "use a key: `observatory login --user NAME` on the gateway's machine"
)
MARKS = re.compile(r"\b(?:NAME|ROLE|ACTION)\b")
LoginToken = FromQuery[str]
NextPage = Annotated[str, QueryParameter(name="next")]


class NewLogin(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    user_id: Name | None = None


@post("/logins", summary="Create a one-time login link", operation_id="create_login")
async def create_login(request: Call, app: Here, data: JSONBody[NewLogin]) -> Response[bytes]:
    """For yourself with any key of your own; for others with an admin's. The sign-in ends with that key."""
    principal = await principal_of(request, app)
    if principal.is_browser:
        raise Refusal(403, "not_allowed", NO_KEY)
    user_id = data.user_id or principal.user_id
    if user_id is None:
        raise Refusal(422, "no_user", "this key belongs to no user; name one with user_id")
    if user_id != principal.user_id:
        principal = await require_permission(request, app, "admin")
    user = await existing_user(app, principal, user_id)
    if not may_sign_in(principal, user["role"]):
        raise Refusal(403, "not_allowed", "this key may do less than its user; a link takes a full one")
    return json({"url": await make_login(app, principal, user_id), "user_id": user_id}, 201)


@get("/logins", summary="Active sign-ins and links", operation_id="list_logins")
async def list_logins(request: Call, app: Here, user_id: FromQuery[str | None] = None) -> Response[bytes]:
    """Your own; an admin sees everyone's."""
    principal = await require_permission(request, app, "read")
    filter_user = user_id if allows(principal, "admin") else principal.user_id
    named = {} if filter_user is None else {"user_id": filter_user}
    rows = await app.store.rows(principal.tenant_id, "logins", ended_ns=None, **named)
    if not allows(principal, "admin") and principal.user_id is None:
        rows = []
    items = [_shown(row, principal) for row in await _valid(app, principal.tenant_id, rows)]
    return json({"items": items, "next_cursor": None})


@delete("/logins/{login_id:str}", summary="End a sign-in at once", status_code=200, operation_id="end_login")
async def end_login(request: Call, app: Here, login_id: FromPath[str]) -> Response[bytes]:
    """Your own; an admin ends anyone's. Its open pages and sockets are refused from now on."""
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "logins", login_id=login_id, ended_ns=None)
    if not rows or (rows[0]["user_id"] != principal.user_id and not allows(principal, "admin")):
        raise Refusal(404, "not_found", "no sign-in of yours has that id")
    act = access.sign_out(principal, login_id, rows[0]["user_id"], app.clock())
    return json(checked(await app.act(act)).answer)


@get("/login", include_in_schema=False, opt=OPEN)
async def login_page(
    request: Call, app: Here, token: LoginToken = "", next_page: NextPage = "/"
) -> Response[Any]:
    """The page of a login link, also for link previews: the link is not used up yet."""
    found = await app.auth.by_link(token)
    if found is None:
        return _used(request)
    who = found[0]
    user = (await app.store.rows(who.tenant_id, "users", user_id=who.user_id))[0]
    values = {
        "NAME": user["display_name"] or user["name"],
        "ROLE": who.role,
        "ACTION": "/login?" + urlencode({"token": token, "next": safe_redirect_target(next_page)}),
    }
    text = (PAGES / "login.html").read_text("utf-8")
    return Response(MARKS.sub(lambda mark: escape(values[mark[0]]), text), media_type="text/html")


@post("/login", include_in_schema=False, opt=OPEN, status_code=303)
async def login(request: Call, app: Here, token: LoginToken = "", next_page: NextPage = "/") -> Response[Any]:
    """Exchange the link's token for the browser's cookie; the token is then invalid."""
    if not app.auth.is_origin_allowed(dict(request.scope["headers"])):
        raise Refusal(
            403, "foreign_origin", "a page of another site cannot sign in here; open the link itself"
        )
    found = await app.auth.by_link(token)
    if found is None:
        return _used(request)
    principal, link = found
    now_ns, secret = app.clock(), new_token()
    key = await source_key(app, principal)
    ends_ns = _end(now_ns + app.settings.cookie_hours * HOUR_NS, key)
    row = {
        "token_hash": digest(secret),
        "kind": "cookie",
        "created_ns": now_ns,
        "seen_ns": now_ns,
        "expires_ns": ends_ns,
    }
    verdict = await app.act(access.sign_in(principal, link["login_id"], row, now_ns))
    if verdict.code != 200:
        raise Refusal(
            verdict.code, verdict.answer.reason, "the sign-in could not be stored; try the link again"
        )
    secure = app.settings.are_cookies_secure
    cookie = Cookie(
        key=cookie_name(secure),
        value=secret,
        httponly=True,
        samesite="lax",
        secure=secure,
        path="/",
        max_age=max(1, (ends_ns - now_ns) // 1_000_000_000),
    )
    return Redirect(safe_redirect_target(next_page), status_code=303, cookies=[cookie])


@get("/logout", include_in_schema=False)
async def logout(request: Call, app: Here) -> Response[Any]:
    principal = await principal_of(request, app)
    if principal.is_browser:
        mine = principal.key_id, principal.user_id or ""
        await app.act(access.sign_out(principal, *mine, app.clock()))
    return Redirect("/", status_code=303)


def may_sign_in(who: Principal, role: str) -> bool:
    """A sign-in gets all permissions of its user; a key with fewer must not gain them by a link."""
    return not who.scopes and PERMISSIONS[role] <= PERMISSIONS[who.role]


async def make_login(app: AppState, who: Principal, user_id: str) -> str:
    now_ns, token = app.clock(), new_token()
    key = await source_key(app, who)
    row = {
        "tenant_id": who.tenant_id,
        "login_id": mint("log_", now_ns),
        "token_hash": digest(token),
        "user_id": user_id,
        "kind": "link",
        "created_ns": now_ns,
        "expires_ns": _end(now_ns + app.settings.login_minutes * MINUTE_NS, key),
        "key_id": None if key is None else key["key_id"],
    }
    checked(await app.act(access.issue_login(who, row, now_ns)))
    return f"{app.url}/login?token={token}"


def _end(requested_ns: int, key: dict[str, Any] | None) -> int:
    """The end, no later than that of the key it comes from."""
    return min(requested_ns, (key or {}).get("expires_ns") or requested_ns)


async def _valid(app: AppState, tenant_id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The logins that are valid now."""
    keys = await app.store.rows(tenant_id, "api_keys")
    users = await app.store.rows(tenant_id, "users")
    now_ns = time_ns()
    ended = {
        key["key_id"] for key in keys if key["revoked_ns"] or (key["expires_ns"] or now_ns + 1) <= now_ns
    }
    ended |= {user["user_id"] for user in users if user["disabled_ns"] is not None}
    return [
        row for row in rows if not {row["key_id"], row["user_id"]} & ended and app.auth.is_login_valid(row)
    ]


def _used(request: Call) -> Response[Any]:
    if "text/html" in request.headers.get("accept", ""):  # a person: the page explains it, and accepts a key
        return Redirect("/?login=used", status_code=303)
    raise Refusal(401, "unauthorized", USED)


def _shown(row: dict[str, Any], who: Principal) -> dict[str, Any]:
    seen_ns = row["seen_ns"]
    return {
        "login_id": row["login_id"],
        "user_id": row["user_id"],
        "kind": "link" if row["kind"] == "link" else "browser",
        "key_id": row["key_id"],
        "created_at": clock.from_ns(row["created_ns"]),
        "expires_at": clock.from_ns(row["expires_ns"]),
        "last_used_at": None if seen_ns is None else clock.from_ns(seen_ns),
        "current": row["login_id"] == who.key_id,
    }


sign_ins = Router(path="/v1", route_handlers=[create_login, list_logins, end_login], tags=["God Mode"])
SIGN_IN = [login_page, login, logout]

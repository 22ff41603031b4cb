"""Inbound webhooks over HTTP: hooks, their signature schemes and mappings, and the log of calls.

Reading needs the read permission; changing a hook needs admin. A secret is shown once, in the answer that
created it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.hooks import commands as hooks
from observatory.features.hooks import mapping, signatures
from observatory.features.hooks.commands import Row, mapping_of
from observatory.features.hooks.commands_calls import CALL
from observatory.features.hooks.signatures import InvalidSecret, Scheme, Status
from observatory.features.hooks.types import (
    HookChange,
    HookRotation,
    HookTarget,
    HookTrial,
    HookTried,
    NewHookBody,
)
from observatory.features.hooks.types_mapping import HookMapping, Outcome
from observatory.features.hooks.types_rows import HookRows
from observatory.http.answers import (
    Cursor,
    InvalidRequest,
    Limit,
    Refusal,
    encode_cursor,
    json,
    read_id_cursor,
)
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.protocol.clock import from_ns
from observatory.protocol.responses import Fault


@get("/webhooks/in", summary="List inbound webhooks", operation_id="list_hooks")
async def list_hooks(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "hooks", removed_ns=None)
    return json({"items": [_item(app, row) for row in rows], "next_cursor": None})


@post(
    "/webhooks/in", summary="Create an inbound webhook; its secret is shown once", operation_id="create_hook"
)
async def create_hook(request: Call, app: Here, data: JSONBody[NewHookBody]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    _check(data.mapping)
    secret = _secret(data.scheme, data.secret)
    hook = hooks.NewHook(data.name, data.scheme, data.mapping, data.window_s, secret)
    verdict = await app.command(hooks.create(principal, hook, app.clock()))
    if verdict.code != 201:
        return json(verdict.answer, verdict.code)
    return json(_item(app, verdict.answer) | {"secret": secret}, 201)


@get("/webhooks/in/{hook_id:str}", summary="Get an inbound webhook", operation_id="get_hook")
async def get_hook(request: Call, app: Here, hook_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    return json(_item(app, await _hook(app, principal.tenant_id, hook_id)))


@patch(
    "/webhooks/in/{hook_id:str}",
    summary="Change a webhook's name, mapping or window, or disable it",
    operation_id="change_hook",
)
async def change_hook(
    request: Call, app: Here, hook_id: FromPath[str], data: JSONBody[HookChange]
) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    given = {name: value for name, value in msgspec.structs.asdict(data).items() if value is not None}
    was = given.pop("was", None)
    if data.mapping is not None:
        _check(data.mapping)
    verdict = await app.command(hooks.change(principal, hook_id, given, app.clock(), was))
    return json(_item(app, verdict.answer) if verdict.code == 200 else verdict.answer, verdict.code)


@post(
    "/webhooks/in/{hook_id:str}/rotate",
    summary="Rotate a webhook's secret; the new one is shown once, the previous one stays valid for a while",
    status_code=200,
    operation_id="rotate_hook",
)
async def rotate_hook(
    request: Call, app: Here, hook_id: FromPath[str], data: JSONBody[HookRotation]
) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    row = await _hook(app, principal.tenant_id, hook_id)
    secret = _secret(row["scheme"], data.secret)
    verdict = await app.command(hooks.rotate(principal, hook_id, secret, data.overlap_s, app.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json(_item(app, verdict.answer) | {"secret": secret})


@delete(
    "/webhooks/in/{hook_id:str}",
    summary="Remove an inbound webhook",
    status_code=200,
    operation_id="remove_hook",
)
async def remove_hook(request: Call, app: Here, hook_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    verdict = await app.command(hooks.remove(principal, hook_id, app.clock()))
    return json(verdict.answer, verdict.code)


@post(
    "/webhooks/in/test",
    summary="Test a mapping with a body; nothing is sent or stored",
    status_code=200,
    operation_id="try_hook",
)
async def try_hook(request: Call, app: Here, data: JSONBody[HookTrial]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    if (data.mapping is None) == (data.hook_id is None):
        raise Refusal(422, "bad_request", "give either a mapping or a hook_id")
    hook_mapping, scheme = data.mapping, data.scheme
    if data.hook_id is not None:
        row = await _hook(app, principal.tenant_id, data.hook_id)
        hook_mapping, scheme = mapping_of(row), row["scheme"]
    assert hook_mapping is not None
    faults = mapping.check(hook_mapping)
    found = faults[0] if faults else await asyncio.to_thread(mapping.apply, hook_mapping, data.body, scheme)
    if isinstance(found, mapping.IgnoredCall):
        return json(HookTried(outcome="ignored"))
    if isinstance(found, Fault):
        return json(HookTried(outcome="unmapped", fault=found))
    return json(
        HookTried(
            outcome="taken",
            intent=found.intent,
            target=HookTarget(kind=found.kind, name=found.name),
            payload=found.payload,
            session=found.session,
            delivery_id=found.delivery_id,
        )
    )


@get("/webhooks/in/calls", summary="List calls, newest first", operation_id="list_hook_calls")
async def list_hook_calls(
    request: Call,
    app: Here,
    hook_id: Annotated[
        str | None, QueryParameter(description="Only calls of this hook; it may be removed.")
    ] = None,
    signature: Annotated[Status | None, QueryParameter()] = None,
    outcome: Annotated[Outcome | None, QueryParameter()] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    before = read_id_cursor(cursor, CALL)
    rows = await _rows(app).calls_page(principal.tenant_id, before, limit + 1, hook_id, signature, outcome)
    more = encode_cursor(rows[limit - 1]["call_id"].encode()) if len(rows) > limit else None
    return json({"items": [_logged(row) for row in rows[:limit]], "next_cursor": more})


@get("/webhooks/in/calls/{call_id:str}", summary="Get a call, with its body", operation_id="get_hook_call")
async def get_hook_call(request: Call, app: Here, call_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "read")
    rows = await app.store.rows(principal.tenant_id, "hook_calls", call_id=call_id)
    if not rows:
        raise Refusal(404, "not_found", "no call of this tenant has that id")
    row = rows[0]
    body = None if row["body"] is None else bytes(row["body"]).decode(errors="ignore")
    return json(_logged(row) | {"body": body, "body_cut": bool(row["body_cut"])})


def _rows(app: AppState) -> HookRows:
    assert isinstance(app.store, HookRows)
    return app.store


async def _hook(app: AppState, tenant_id: str, hook_id: str) -> Row:
    rows = await app.store.rows(tenant_id, "hooks", hook_id=hook_id, removed_ns=None)
    if not rows:
        raise Refusal(404, "not_found", "no hook of this tenant has that id")
    return rows[0]


def _check(hook_mapping: HookMapping) -> None:
    faults = mapping.check(hook_mapping)
    if faults:
        named = tuple(Fault(f"mapping.{fault.path}", fault.problem) for fault in faults)
        raise InvalidRequest(422, named, "bad_mapping")


def _secret(scheme: Scheme, given: str | None) -> str:
    if given is None:
        return signatures.new_secret(scheme)
    try:
        signatures.key_of(scheme, given)
    except InvalidSecret as error:
        raise Refusal(422, "bad_secret", str(error)) from error
    return given


def _item(app: AppState, row: Row) -> dict[str, Any]:
    until_ns = row["old_until_ns"]
    return {
        "hook_id": row["hook_id"],
        "name": row["name"],
        "scheme": row["scheme"],
        "mapping": msgspec.Raw(row["mapping"].encode()),
        "window_s": row["window_s"],
        "state": row["state"],
        "url": f"{app.url}/v1/webhooks/{row['hook_id']}",
        "signatures": {
            "valid": row["valid_calls"],
            "invalid": row["invalid_calls"],
            "missing": row["missing_calls"],
            "last": row["last_signature"],
        },
        "old_secret_until": from_ns(until_ns) if until_ns and until_ns > app.clock() else None,
        "last_called_at": from_ns(row["called_ns"]) if row["called_ns"] else None,
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


CALL_COLUMNS = (
    "call_id", "hook_id", "caller", "signature", "outcome", "reason", "delivery_id", "message_id",
    "session_id", "body_hash", "body_bytes", "calls", "repeats",
)  # fmt: skip


def _logged(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in CALL_COLUMNS} | {
        "at": from_ns(row["at_ns"]),
        "repeated_at": from_ns(row["repeated_ns"]) if row["repeated_ns"] else None,
        "headers": msgspec.Raw((row["headers"] or "{}").encode()),
    }


hooks_router = Router(
    path="/v1",
    route_handlers=[
        list_hooks,
        create_hook,
        get_hook,
        change_hook,
        rotate_hook,
        remove_hook,
        try_hook,
        list_hook_calls,
        get_hook_call,
    ],
    tags=["Webhooks in"],
)

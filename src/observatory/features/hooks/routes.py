"""Hooks: where the outside may call, how its calls are signed, what they become, and the log of them.

Reading is for everybody who reads; opening the house to the outside is an admin's. A secret is told once, by
the answer that made it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, patch, post
from litestar.params import FromPath, JSONBody, QueryParameter

from observatory.features.hooks import commands as hooks
from observatory.features.hooks import mapping
from observatory.features.hooks.commands import Row, mapping_of
from observatory.features.hooks.commands_calls import CALL
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
from observatory.http.answers import Cursor, InvalidRequest, Limit, Refusal, json, read_id_cursor, sealed
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.protocol import signatures
from observatory.protocol.answers import Fault
from observatory.protocol.clock import from_ns
from observatory.protocol.signatures import BadSecret, Scheme, Status


@get("/webhooks/in", summary="Hooks that the outside may call", operation_id="list_hooks")
async def list_hooks(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await house.store.rows(who.tenant_id, "hooks", removed_ns=None)
    return json({"items": [_item(house, row) for row in rows], "next_cursor": None})


@post("/webhooks/in", summary="Open a hook; its secret is shown once", operation_id="create_hook")
async def create_hook(request: Call, house: Here, data: JSONBody[NewHookBody]) -> Response[bytes]:
    who = await need(request, house, "admin")
    _check(data.mapping)
    secret = _secret(data.scheme, data.secret)
    hook = hooks.NewHook(data.name, data.scheme, data.mapping, data.window_s, secret)
    verdict = await house.command(hooks.create(who, hook, house.clock()))
    if verdict.code != 201:
        return json(verdict.answer, verdict.code)
    return json(_item(house, verdict.answer) | {"secret": secret}, 201)


@get("/webhooks/in/{hook_id:str}", summary="One hook", operation_id="get_hook")
async def get_hook(request: Call, house: Here, hook_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    return json(_item(house, await _hook(house, who.tenant_id, hook_id)))


@patch(
    "/webhooks/in/{hook_id:str}",
    summary="Change a hook's name, mapping or window, or disable it",
    operation_id="change_hook",
)
async def change_hook(
    request: Call, house: Here, hook_id: FromPath[str], data: JSONBody[HookChange]
) -> Response[bytes]:
    who = await need(request, house, "admin")
    given = {name: value for name, value in msgspec.structs.asdict(data).items() if value is not None}
    was = given.pop("was", None)
    if data.mapping is not None:
        _check(data.mapping)
    verdict = await house.command(hooks.change(who, hook_id, given, house.clock(), was))
    return json(_item(house, verdict.answer) if verdict.code == 200 else verdict.answer, verdict.code)


@post(
    "/webhooks/in/{hook_id:str}/rotate",
    summary="Give a hook another secret, shown once; the one before is taken for a while longer",
    status_code=200,
    operation_id="rotate_hook",
)
async def rotate_hook(
    request: Call, house: Here, hook_id: FromPath[str], data: JSONBody[HookRotation]
) -> Response[bytes]:
    who = await need(request, house, "admin")
    row = await _hook(house, who.tenant_id, hook_id)
    secret = _secret(row["scheme"], data.secret)
    verdict = await house.command(hooks.rotate(who, hook_id, secret, data.overlap_s, house.clock()))
    if verdict.code != 200:
        return json(verdict.answer, verdict.code)
    return json(_item(house, verdict.answer) | {"secret": secret})


@delete("/webhooks/in/{hook_id:str}", summary="Remove a hook", status_code=200, operation_id="remove_hook")
async def remove_hook(request: Call, house: Here, hook_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    verdict = await house.command(hooks.remove(who, hook_id, house.clock()))
    return json(verdict.answer, verdict.code)


@post(
    "/webhooks/in/test",
    summary="What a mapping makes of a body; nothing is sent or kept",
    status_code=200,
    operation_id="try_hook",
)
async def try_hook(request: Call, house: Here, data: JSONBody[HookTrial]) -> Response[bytes]:
    who = await need(request, house, "admin")
    if (data.mapping is None) == (data.hook_id is None):
        raise Refusal(422, "bad_request", "name a mapping or a hook_id, and not both")
    wanted, scheme = data.mapping, data.scheme
    if data.hook_id is not None:
        row = await _hook(house, who.tenant_id, data.hook_id)
        wanted, scheme = mapping_of(row), row["scheme"]
    assert wanted is not None
    faults = mapping.check(wanted)
    found = faults[0] if faults else await asyncio.to_thread(mapping.apply, wanted, data.body, scheme)
    if isinstance(found, mapping.Ignored):
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


@get("/webhooks/in/calls", summary="The log of calls, newest first", operation_id="list_hook_calls")
async def list_hook_calls(
    request: Call,
    house: Here,
    hook_id: Annotated[str | None, QueryParameter(description="Of this hook, removed ones too.")] = None,
    signature: Annotated[Status | None, QueryParameter()] = None,
    outcome: Annotated[Outcome | None, QueryParameter()] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    who = await need(request, house, "read")
    before = read_id_cursor(cursor, CALL)
    rows = await _rows(house).calls_page(who.tenant_id, before, limit + 1, hook_id, signature, outcome)
    more = sealed(rows[limit - 1]["call_id"].encode()) if len(rows) > limit else None
    return json({"items": [_logged(row) for row in rows[:limit]], "next_cursor": more})


@get("/webhooks/in/calls/{call_id:str}", summary="One call, with its body", operation_id="get_hook_call")
async def get_hook_call(request: Call, house: Here, call_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "read")
    rows = await house.store.rows(who.tenant_id, "hook_calls", call_id=call_id)
    if not rows:
        raise Refusal(404, "not_found", "no call of this tenant has that id")
    row = rows[0]
    body = None if row["body"] is None else bytes(row["body"]).decode(errors="ignore")
    return json(_logged(row) | {"body": body, "body_cut": bool(row["body_cut"])})


def _rows(house: House) -> HookRows:
    assert isinstance(house.store, HookRows)
    return house.store


async def _hook(house: House, tenant_id: str, hook_id: str) -> Row:
    rows = await house.store.rows(tenant_id, "hooks", hook_id=hook_id, removed_ns=None)
    if not rows:
        raise Refusal(404, "not_found", "no hook of this tenant has that id")
    return rows[0]


def _check(wanted: HookMapping) -> None:
    faults = mapping.check(wanted)
    if faults:
        named = tuple(Fault(f"mapping.{fault.path}", fault.problem) for fault in faults)
        raise InvalidRequest(422, named, "bad_mapping")


def _secret(scheme: Scheme, given: str | None) -> str:
    if given is None:
        return signatures.new_secret(scheme)
    try:
        signatures.key_of(scheme, given)
    except BadSecret as error:
        raise Refusal(422, "bad_secret", str(error)) from error
    return given


def _item(house: House, row: Row) -> dict[str, Any]:
    until_ns = row["old_until_ns"]
    return {
        "hook_id": row["hook_id"],
        "name": row["name"],
        "scheme": row["scheme"],
        "mapping": msgspec.Raw(row["mapping"].encode()),
        "window_s": row["window_s"],
        "state": row["state"],
        "url": f"{house.url}/v1/webhooks/{row['hook_id']}",
        "signatures": {
            "valid": row["valid_calls"],
            "invalid": row["invalid_calls"],
            "missing": row["missing_calls"],
            "last": row["last_signature"],
        },
        "old_secret_until": from_ns(until_ns) if until_ns and until_ns > house.clock() else None,
        "last_called_at": from_ns(row["called_ns"]) if row["called_ns"] else None,
        "created_at": from_ns(row["created_ns"]),
        "created_by": row["created_by"],
        "updated_at": from_ns(row["updated_ns"]),
        "updated_by": row["updated_by"],
    }


SAID = (
    "call_id", "hook_id", "caller", "signature", "outcome", "reason", "delivery_id", "message_id",
    "session_id", "body_hash", "body_bytes", "calls", "repeats",
)  # fmt: skip


def _logged(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in SAID} | {
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

"""Commands for inbound webhooks: create, change, rotate the secret, remove (rules S520–S522).

Law: a hook without a secret accepts nothing, and there is no default secret. A secret is shown when it is
created, and is in no event and no later answer. Every change to what a hook accepts increments its version: a
call judged by an older version is judged again. How calls are processed is described in `commands_calls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.hooks.signatures import Scheme
from observatory.features.hooks.types_mapping import HookMapping
from observatory.pipeline.concurrency import conflict_if_stale
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

HOOK: Final = "whk_"
MAX_HOOKS: Final = 100  # of a tenant: they are all read when one is called
Row = dict[str, Any]


class NewHook(NamedTuple):
    name: str
    scheme: Scheme
    mapping: HookMapping  # checked
    window_s: int
    secret: str  # checked


def reads_hooks(tenant_id: str) -> ReadSet:
    reads = ReadSet()
    reads.row("hooks", tenant_id)
    return reads


def hooks_of(uow: UnitOfWork, tenant_id: str) -> dict[str, Row]:
    rows = uow.memory.rows.setdefault("hooks", {})
    return {
        hook_id: row for (owner, hook_id), row in rows.items() if owner == tenant_id and not row["removed_ns"]
    }


def unknown_hook() -> SubmissionResult:
    return SubmissionResult(404, Refused(reason="not_found", detail="no hook of this tenant has that id"))


def _name_taken(name: str) -> SubmissionResult:
    return SubmissionResult(409, Refused(reason="name_taken", detail="a hook with that name already exists"))


def create(principal: Principal, hook: NewHook, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = hooks_of(uow, principal.tenant_id)
        if any(row["name"] == hook.name for row in known.values()):
            return _name_taken(hook.name)
        if len(known) >= MAX_HOOKS:
            detail = f"a tenant has at most {MAX_HOOKS} hooks"
            return SubmissionResult(409, Refused(reason="too_many_hooks", detail=detail))
        row: Row = {
            "tenant_id": principal.tenant_id,
            "hook_id": mint(HOOK, now_ns),
            "name": hook.name,
            "scheme": hook.scheme,
            "mapping": encode_mapping(hook.mapping),
            "window_s": hook.window_s,
            "state": "active",
            "version": 1,
            "secret": hook.secret,
            "old_secret": None,
            "old_until_ns": None,
            "valid_calls": 0,
            "invalid_calls": 0,
            "missing_calls": 0,
            "last_signature": None,
            "refused_count": 0,
            "refused_ns": None,
            "called_ns": None,
            "created_ns": uow.now_ns,
            "created_by": principal.entity_id,
            "updated_ns": uow.now_ns,
            "updated_by": principal.entity_id,
            "removed_ns": None,
        }
        uow.memory.rows["hooks"][principal.tenant_id, row["hook_id"]] = (
            row  # for later commands of this batch
        )
        event = _event(uow, principal, "hook_created", f"hook {hook.name} opened", row, _public_columns(row))
        return SubmissionResult(201, row, [event], [RowWrite("hooks", row)])

    return Command(principal, now_ns, decide, reads_hooks(principal.tenant_id), size=8_192)


def change(
    principal: Principal, hook_id: str, given: Mapping[str, Any], now_ns: int, was: str | None = None
) -> Command:
    """`given` has the columns to change: name, mapping (a struct), window_s, state."""
    columns = dict(given)
    if "mapping" in columns:
        columns["mapping"] = encode_mapping(columns["mapping"])

    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = hooks_of(uow, principal.tenant_id)
        row = known.get(hook_id)
        if row is None:
            return unknown_hook()
        refused = conflict_if_stale(was, row["updated_ns"])
        if refused is not None:
            return refused
        new = {name: value for name, value in columns.items() if row[name] != value}
        if not new:
            return SubmissionResult(200, row)
        if any(one["name"] == new.get("name") for one in known.values()):
            return _name_taken(new["name"])
        columns_now = _public_columns(row | new)
        detail = {"changed": {name: columns_now[name] for name in sorted(new)}}
        return _update(uow, principal, row, new, "hook_changed", f"hook {row['name']} changed", detail)

    return Command(principal, now_ns, decide, reads_hooks(principal.tenant_id), size=8_192)


def rotate(principal: Principal, hook_id: str, secret: str, overlap_s: int, now_ns: int) -> Command:
    """The previous secret stays valid for `overlap_s`; an older one ends now."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = hooks_of(uow, principal.tenant_id).get(hook_id)
        if row is None:
            return unknown_hook()
        until_ns = uow.now_ns + overlap_s * 1_000_000_000
        old = (row["secret"], until_ns) if overlap_s else (None, None)
        new = {"secret": secret, "old_secret": old[0], "old_until_ns": old[1]}
        detail = {"old_until": from_ns(until_ns) if overlap_s else None}
        return _update(
            uow, principal, row, new, "hook_secret_rotated", f"hook {row['name']} has a new secret", detail
        )

    return Command(principal, now_ns, decide, reads_hooks(principal.tenant_id))


def remove(principal: Principal, hook_id: str, now_ns: int) -> Command:
    """Its secrets are deleted with it; its log is kept."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = hooks_of(uow, principal.tenant_id).get(hook_id)
        if row is None:
            return unknown_hook()
        new = {"secret": None, "old_secret": None, "old_until_ns": None, "removed_ns": uow.now_ns}
        verdict = _update(uow, principal, row, new, "hook_removed", f"hook {row['name']} removed", {})
        return msgspec.structs.replace(verdict, answer={"hook_id": hook_id, "removed": True})

    return Command(principal, now_ns, decide, reads_hooks(principal.tenant_id))


def _update(
    uow: UnitOfWork,
    principal: Principal,
    row: Row,
    new: Row,
    event_type: str,
    summary: str,
    detail: dict[str, Any],
) -> SubmissionResult:
    new = new | {"version": row["version"] + 1, "updated_ns": uow.now_ns, "updated_by": principal.entity_id}
    row |= new
    event = _event(uow, principal, event_type, summary, row, detail)
    where = {"tenant_id": principal.tenant_id, "hook_id": row["hook_id"]}
    return SubmissionResult(200, row, [event], [RowWrite("hooks", new, where)])


def _event(
    uow: UnitOfWork, principal: Principal, event_type: str, summary: str, row: Row, detail: dict[str, Any]
) -> EventDraft:
    named = {"hook_id": row["hook_id"], "hook_name": row["name"]}
    return gateway_event(
        principal.tenant_id,
        event_type,
        f"{summary} by {principal.entity_id}",
        uow.now_ns,
        principal,
        named | detail,
    )


def _public_columns(row: Row) -> dict[str, Any]:
    """The columns of a hook that events may contain."""
    columns = {name: row[name] for name in ("name", "scheme", "window_s", "state")}
    return columns | {"mapping": msgspec.json.decode(row["mapping"])}


def encode_mapping(mapping: HookMapping) -> str:
    return msgspec.json.encode(mapping).decode()


def mapping_of(row: Row) -> HookMapping:
    return msgspec.json.decode(row["mapping"], type=HookMapping)


def secrets_of(row: Row, now_ns: int) -> list[str]:
    """The secrets valid now; the newest first."""
    secrets = [row["secret"]] if row["secret"] else []
    if row["old_secret"] and row["old_until_ns"] is not None and row["old_until_ns"] > now_ns:
        secrets.append(row["old_secret"])
    return secrets

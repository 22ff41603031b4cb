"""Acts of webhooks in: hooks are opened, changed, given another secret, closed (rules S520–S522).

Law: a hook without a secret takes nothing, and there is no default one. A secret is shown by who made it and
stands in no event and no answer afterwards. Whatever changes what a hook lets in moves its version: a call
that was judged by an older one is judged again. How calls are taken is told in `hook_calls.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.hooks.types_mapping import HookMapping
from observatory.pipeline.concurrency import stale
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import mint
from observatory.protocol.signatures import Scheme

HOOK: Final = "whk_"
MOST_HOOKS: Final = 100  # of a tenant: they are all read when one is called
Row = dict[str, Any]


class NewHook(NamedTuple):
    name: str
    scheme: Scheme
    mapping: HookMapping  # checked
    window_s: int
    secret: str  # checked


def wants_hooks(tenant_id: str) -> Wants:
    wants = Wants()
    wants.row("hooks", tenant_id)
    return wants


def hooks_of(desk: Desk, tenant_id: str) -> dict[str, Row]:
    rows = desk.memory.rows.setdefault("hooks", {})
    return {
        hook_id: row for (owner, hook_id), row in rows.items() if owner == tenant_id and not row["removed_ns"]
    }


def unknown() -> Verdict:
    return Verdict(404, Refused(reason="not_found", detail="no hook of this tenant has that id"))


def _taken(name: str) -> Verdict:
    return Verdict(409, Refused(reason="name_taken", detail="another hook is called so already"))


def create(who: Principal, hook: NewHook, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        known = hooks_of(desk, who.tenant_id)
        if any(row["name"] == hook.name for row in known.values()):
            return _taken(hook.name)
        if len(known) >= MOST_HOOKS:
            detail = f"a tenant has at most {MOST_HOOKS} hooks"
            return Verdict(409, Refused(reason="too_many_hooks", detail=detail))
        row: Row = {
            "tenant_id": who.tenant_id,
            "hook_id": mint(HOOK, now_ns),
            "name": hook.name,
            "scheme": hook.scheme,
            "mapping": written(hook.mapping),
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
            "created_ns": desk.now_ns,
            "created_by": who.entity_id,
            "updated_ns": desk.now_ns,
            "updated_by": who.entity_id,
            "removed_ns": None,
        }
        desk.memory.rows["hooks"][who.tenant_id, row["hook_id"]] = row  # for others of this batch
        event = _told(desk, who, "hook_created", f"hook {hook.name} opened", row, _shown(row))
        return Verdict(201, row, [event], [Write("hooks", row)])

    return Act(who, now_ns, decide, wants_hooks(who.tenant_id), size=8_192)


def change(
    who: Principal, hook_id: str, given: Mapping[str, Any], now_ns: int, was: str | None = None
) -> Act:
    """`given` holds the columns that are wanted otherwise: name, mapping (a struct), window_s, state."""
    wanted = dict(given)
    if "mapping" in wanted:
        wanted["mapping"] = written(wanted["mapping"])

    def decide(desk: Desk) -> Verdict:
        known = hooks_of(desk, who.tenant_id)
        row = known.get(hook_id)
        if row is None:
            return unknown()
        refused = stale(was, row["updated_ns"])
        if refused is not None:
            return refused
        new = {name: value for name, value in wanted.items() if row[name] != value}
        if not new:
            return Verdict(200, row)
        if any(one["name"] == new.get("name") for one in known.values()):
            return _taken(new["name"])
        shown = _shown(row | new)
        detail = {"changed": {name: shown[name] for name in sorted(new)}}
        return _update(desk, who, row, new, "hook_changed", f"hook {row['name']} changed", detail)

    return Act(who, now_ns, decide, wants_hooks(who.tenant_id), size=8_192)


def rotate(who: Principal, hook_id: str, secret: str, overlap_s: int, now_ns: int) -> Act:
    """What was signed with the secret before is taken for `overlap_s` longer; an older one ends now."""

    def decide(desk: Desk) -> Verdict:
        row = hooks_of(desk, who.tenant_id).get(hook_id)
        if row is None:
            return unknown()
        until_ns = desk.now_ns + overlap_s * 1_000_000_000
        old = (row["secret"], until_ns) if overlap_s else (None, None)
        new = {"secret": secret, "old_secret": old[0], "old_until_ns": old[1]}
        detail = {"old_until": from_ns(until_ns) if overlap_s else None}
        return _update(
            desk, who, row, new, "hook_secret_rotated", f"hook {row['name']} has a new secret", detail
        )

    return Act(who, now_ns, decide, wants_hooks(who.tenant_id))


def remove(who: Principal, hook_id: str, now_ns: int) -> Act:
    """Its secrets go with it; its log stays."""

    def decide(desk: Desk) -> Verdict:
        row = hooks_of(desk, who.tenant_id).get(hook_id)
        if row is None:
            return unknown()
        new = {"secret": None, "old_secret": None, "old_until_ns": None, "removed_ns": desk.now_ns}
        verdict = _update(desk, who, row, new, "hook_removed", f"hook {row['name']} removed", {})
        return msgspec.structs.replace(verdict, answer={"hook_id": hook_id, "removed": True})

    return Act(who, now_ns, decide, wants_hooks(who.tenant_id))


def _update(
    desk: Desk, who: Principal, row: Row, new: Row, event_type: str, summary: str, detail: dict[str, Any]
) -> Verdict:
    new = new | {"version": row["version"] + 1, "updated_ns": desk.now_ns, "updated_by": who.entity_id}
    row |= new
    event = _told(desk, who, event_type, summary, row, detail)
    where = {"tenant_id": who.tenant_id, "hook_id": row["hook_id"]}
    return Verdict(200, row, [event], [Write("hooks", new, where)])


def _told(
    desk: Desk, who: Principal, event_type: str, summary: str, row: Row, detail: dict[str, Any]
) -> Draft:
    named = {"hook_id": row["hook_id"], "hook_name": row["name"]}
    return notice(
        who.tenant_id, event_type, f"{summary} by {who.entity_id}", desk.now_ns, who, named | detail
    )


def _shown(row: Row) -> dict[str, Any]:
    """What of a hook may be told."""
    told = {name: row[name] for name in ("name", "scheme", "window_s", "state")}
    return told | {"mapping": msgspec.json.decode(row["mapping"])}


def written(mapping: HookMapping) -> str:
    return msgspec.json.encode(mapping).decode()


def mapping_of(row: Row) -> HookMapping:
    return msgspec.json.decode(row["mapping"], type=HookMapping)


def secrets_of(row: Row, now_ns: int) -> list[str]:
    """In force now; the newest first."""
    found = [row["secret"]] if row["secret"] else []
    if row["old_secret"] and row["old_until_ns"] is not None and row["old_until_ns"] > now_ns:
        found.append(row["old_secret"])
    return found

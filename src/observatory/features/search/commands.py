"""Saved views: questions people keep, as audited acts (rules S280, S281).

Law: the record holds who, when, which view and whether it is shared, and the *hash* of name and question:
they may quote a payload. A name is an owner's once; removing a view hides it and frees the name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import mint

MOST_VIEWS = 200  # of one owner, removed ones not counted: so many rows are loaded


def _hash(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def _of(desk: Desk, owner_id: str) -> list[dict[str, Any]]:
    rows = desk.memory.rows.get("saved_views", {}).values()
    return [row for row in rows if row["owner_id"] == owner_id and row["removed_ns"] is None]


def _wants(owner_id: str) -> Wants:
    wants = Wants()
    wants.row("saved_views", owner_id)
    return wants


def save(who: Principal, name: str, query: str, shared: bool, now_ns: int) -> Act:
    view_id = mint("viw_", now_ns)

    def decide(desk: Desk) -> Verdict:
        mine = _of(desk, who.entity_id)
        if any(row["name"] == name for row in mine):
            detail = "you have a view of that name; remove it first or choose another name"
            return Verdict(409, Refused(reason="name_taken", detail=detail))
        if len(mine) >= MOST_VIEWS:
            detail = f"you have {MOST_VIEWS} views; remove one first"
            return Verdict(409, Refused(reason="too_many", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "view_id": view_id,
            "owner_id": who.entity_id,
            "name": name,
            "query": query,
            "shared": int(shared),
            "created_ns": desk.now_ns,
            "removed_ns": None,
        }
        # Known to whoever comes later in this batch: a name is taken from here on.
        desk.memory.rows.setdefault("saved_views", {})[who.entity_id, view_id] = row
        told = {"view_id": view_id, "name_hash": _hash(name), "query_hash": _hash(query), "shared": shared}
        summary = f"view {view_id} saved by {who.entity_id}"
        event = notice(who.tenant_id, "view_saved", summary, desk.now_ns, who, told)
        return Verdict(201, row, [event], [Write("saved_views", row)])

    return Act(who, now_ns, decide, _wants(who.entity_id))


def remove(who: Principal, owner_id: str, view_id: str, now_ns: int, *, operates: bool = False) -> Act:
    """By its owner; a shared one by whoever `operates`, too: its role and its key's scopes allow it."""

    def decide(desk: Desk) -> Verdict:
        row = next((row for row in _of(desk, owner_id) if row["view_id"] == view_id), None)
        is_mine = owner_id == who.entity_id
        if row is None or not (is_mine or row["shared"]):
            detail = "no view that you can see has that id"
            return Verdict(404, Refused(reason="not_found", detail=detail))
        if not is_mine and not operates:
            detail = "a shared view is removed by its owner, an operator or an admin"
            return Verdict(403, Refused(reason="not_yours", detail=detail))
        row["removed_ns"] = desk.now_ns
        where = {"tenant_id": who.tenant_id, "view_id": view_id}
        told = {"view_id": view_id, "owner_id": owner_id, "name_hash": _hash(row["name"])}
        summary = f"view {view_id} removed by {who.entity_id}"
        event = notice(who.tenant_id, "view_removed", summary, desk.now_ns, who, told)
        gone = Write("saved_views", {"removed_ns": desk.now_ns}, where)
        return Verdict(200, {"view_id": view_id, "removed": True}, [event], [gone])

    return Act(who, now_ns, decide, _wants(owner_id))

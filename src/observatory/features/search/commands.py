"""Commands on saved views: search queries stored under a name (rules S280, S281).

Law: the record has who, when, which view, whether it is shared, and the *hash* of name and query: these may
quote a payload. Names are unique per owner; removing a view hides it and frees its name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import mint
from observatory.protocol.responses import Refused

MAX_VIEWS = 200  # of one owner, removed ones not counted: every save loads them all


def _hash(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def _of(uow: UnitOfWork, owner_id: str) -> list[dict[str, Any]]:
    rows = uow.memory.rows.get("saved_views", {}).values()
    return [row for row in rows if row["owner_id"] == owner_id and row["removed_ns"] is None]


def _wants(owner_id: str) -> ReadSet:
    read_set = ReadSet()
    read_set.row("saved_views", owner_id)
    return read_set


def save(who: Principal, name: str, query: str, shared: bool, now_ns: int) -> Command:
    view_id = mint("viw_", now_ns)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        own = _of(uow, who.entity_id)
        if any(row["name"] == name for row in own):
            detail = "you already have a view with that name; remove it first or choose another name"
            return SubmissionResult(409, Refused(reason="name_taken", detail=detail))
        if len(own) >= MAX_VIEWS:
            detail = f"you already have {MAX_VIEWS} views; remove one first"
            return SubmissionResult(409, Refused(reason="too_many", detail=detail))
        row = {
            "tenant_id": who.tenant_id,
            "view_id": view_id,
            "owner_id": who.entity_id,
            "name": name,
            "query": query,
            "shared": int(shared),
            "created_ns": uow.now_ns,
            "removed_ns": None,
        }
        # Visible to later commands of this batch: the name is taken from here on.
        uow.memory.rows.setdefault("saved_views", {})[who.entity_id, view_id] = row
        ids = {"view_id": view_id, "name_hash": _hash(name), "query_hash": _hash(query), "shared": shared}
        summary = f"view {view_id} saved by {who.entity_id}"
        event = gateway_event(who.tenant_id, "view_saved", summary, uow.now_ns, who, ids)
        return SubmissionResult(201, row, [event], [RowWrite("saved_views", row)])

    return Command(who, now_ns, decide, _wants(who.entity_id))


def remove(who: Principal, owner_id: str, view_id: str, now_ns: int, *, operates: bool = False) -> Command:
    """Removes one's own view, or a shared one if `operates`: role and key scopes allow `operate`."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = next((row for row in _of(uow, owner_id) if row["view_id"] == view_id), None)
        is_mine = owner_id == who.entity_id
        if row is None or not (is_mine or row["shared"]):
            detail = "no view that you can see has that id"
            return SubmissionResult(404, Refused(reason="not_found", detail=detail))
        if not is_mine and not operates:
            detail = "a shared view can be removed by its owner, an operator or an admin"
            return SubmissionResult(403, Refused(reason="not_yours", detail=detail))
        row["removed_ns"] = uow.now_ns
        where = {"tenant_id": who.tenant_id, "view_id": view_id}
        ids = {"view_id": view_id, "owner_id": owner_id, "name_hash": _hash(row["name"])}
        summary = f"view {view_id} removed by {who.entity_id}"
        event = gateway_event(who.tenant_id, "view_removed", summary, uow.now_ns, who, ids)
        gone = RowWrite("saved_views", {"removed_ns": uow.now_ns}, where)
        return SubmissionResult(200, {"view_id": view_id, "removed": True}, [event], [gone])

    return Command(who, now_ns, decide, _wants(owner_id))

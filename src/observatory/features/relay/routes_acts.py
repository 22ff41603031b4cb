"""HTTP route of the audit trail of God Mode: what people did, newest first.

Read by sender: people's commands are few however much their agents send, and the record is indexed by sender.
The events are the record's own, byte for byte; events that the gateway itself writes are in the full log.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from litestar import Response, Router, get
from litestar.params import QueryParameter

from observatory.features.archive.queries import events_page
from observatory.http.answers import Cursor, Limit, read_cursor
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.ports import EventFilter, StoredEvent

About = Literal["kill_switch", "instructions", "access", "budgets"]
ACTS: dict[About, tuple[str, ...]] = {
    "kill_switch": ("kill_switch_requested", "kill_switch_engaged", "kill_switch_released"),
    "instructions": ("instruction_issued",),
    "access": (
        "tenant_created",
        "user_created",
        "user_disabled",
        "role_changed",
        "key_created",
        "key_revoked",
        "login_issued",
        "permission_denied",
    ),
    "budgets": ("budget_set",),
}
AT_ONCE = 500
MAX_PEOPLE = 10_000  # users, then the newest keys: as many as one query may name
MAX_SCANNED = 10_000


@get("/audit/acts", summary="What people did in God Mode, newest first", operation_id="audit_acts")
async def audit_acts(
    request: Call,
    app: Here,
    about: Annotated[About | None, QueryParameter(description="Only this control; all without it.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Events of people and of keys without a user; a page may be short and still have a next one."""
    principal = await require_permission(request, app, "read")
    kinds = [name for one in ((about,) if about else ACTS) for name in ACTS[one]]
    matches = re.compile(f'"event_type":"(?:{"|".join(kinds)})"'.encode()).search
    senders, before = await _people(app, principal.tenant_id), read_cursor(cursor)
    found: list[StoredEvent] = []
    scanned, is_over = 0, not senders
    while not is_over and len(found) <= limit and scanned < MAX_SCANNED:
        where = EventFilter(before=before, senders=senders)
        batch = await app.store.events(principal.tenant_id, where, AT_ONCE, newest_first=True)
        found += [event for event in batch if matches(event.record)]
        scanned, is_over = scanned + len(batch), len(batch) < AT_ONCE
        before = batch[-1].sequence_number if batch else before
    return events_page(found, limit, None if is_over else before)


async def _people(app: AppState, tenant_id: str) -> tuple[str, ...]:
    users = await app.store.rows(tenant_id, "users")
    keys = await app.store.rows(tenant_id, "api_keys", user_id=None)
    unowned = sorted((key for key in keys if key["role"] != "agent"), key=lambda key: -key["created_ns"])
    senders = [user["user_id"] for user in users] + [key["key_id"] for key in unowned]
    return tuple(sorted(senders[:MAX_PEOPLE]))


acts = Router(path="/v1", route_handlers=[audit_acts], tags=["God Mode"])

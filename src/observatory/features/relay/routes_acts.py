"""What people did in God Mode, newest first: the trail beside the levers.

Found by who did it: people's acts are few however much their agents say, and the record is indexed by sender.
The events are the record's own, byte for byte; stages that the house itself writes are in the whole log.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from litestar import Response, Router, get
from litestar.params import QueryParameter

from observatory.features.archive.routes import events_page
from observatory.http.answers import Cursor, Limit, read_cursor
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
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
MOST_PEOPLE = 10_000  # users, then the newest keys: as many as one question may name
MOST_LOOKED_AT = 10_000


@get("/audit/acts", summary="What people did in God Mode, newest first", operation_id="audit_acts")
async def audit_acts(
    request: Call,
    house: Here,
    about: Annotated[About | None, QueryParameter(description="One lever only; all without it.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response[bytes]:
    """Of people and of keys that belong to nobody; a page may be short and still have a next one."""
    principal = await need(request, house, "read")
    kinds = [name for one in ((about,) if about else ACTS) for name in ACTS[one]]
    is_meant = re.compile(f'"event_type":"(?:{"|".join(kinds)})"'.encode()).search
    senders, before = await _people(house, principal.tenant_id), read_cursor(cursor)
    found: list[StoredEvent] = []
    looked_at, is_over = 0, not senders
    while not is_over and len(found) <= limit and looked_at < MOST_LOOKED_AT:
        where = EventFilter(before=before, senders=senders)
        some = await house.store.events(principal.tenant_id, where, AT_ONCE, newest_first=True)
        found += [event for event in some if is_meant(event.record)]
        looked_at, is_over = looked_at + len(some), len(some) < AT_ONCE
        before = some[-1].sequence_number if some else before
    return events_page(found, limit, None if is_over else before)


async def _people(house: House, tenant_id: str) -> tuple[str, ...]:
    users = await house.store.rows(tenant_id, "users")
    keys = await house.store.rows(tenant_id, "api_keys", user_id=None)
    loose = sorted((key for key in keys if key["role"] != "agent"), key=lambda key: -key["created_ns"])
    found = [user["user_id"] for user in users] + [key["key_id"] for key in loose]
    return tuple(sorted(found[:MOST_PEOPLE]))


acts = Router(path="/v1", route_handlers=[audit_acts], tags=["God Mode"])

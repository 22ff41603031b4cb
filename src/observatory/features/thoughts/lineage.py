"""Who took part in a session of the mesh: who began it, and whom those who took part wrote to there (S1146).

To speak in it once is not to take part: every agent that knows its id can do that. What is said to the whole
room (`session:<id>`) invites nobody, for who spoke once hears it too. Nor does what an agent brought about
itself: a reminder it asked for there, and the answer to its own question (S1401).
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.schedule.reminders import INTENT
from observatory.http.app_state import House
from observatory.pipeline.ports import EventFilter
from observatory.protocol.identity import agent_entity_id

EVENTS = 1_000  # of one agent in the session, oldest first
AGENTS = 50  # links from who asks back to who began it
SCHEDULER = "sys_scheduler"
Event = dict[str, Any]


async def took_part(house: House, tenant_id: str, session_id: str, entity_id: str) -> bool:
    rows = await house.store.rows(tenant_id, "sessions", session_id=session_id)
    if not rows:
        return True  # the mesh has no such session
    first, trace_id = rows[0]["first_seq"], rows[0]["trace_id"]
    where = EventFilter(after=first - 1, before=first + 1)
    begun = {_sender(event) for event in await _events(house, tenant_id, where, 1)}
    todo, seen = [entity_id], {entity_id}
    while todo and len(seen) <= AGENTS:
        one = todo.pop()
        if one in begun:
            return True
        found = await _events(house, tenant_id, EventFilter(trace_id=trace_id, entity_id=one), EVENTS)
        for event in found:
            inviter = await _inviter(house, tenant_id, event, one)
            if inviter is not None and not inviter.startswith("agt_"):
                if await _is_own_doing(house, tenant_id, event):
                    continue
                return True  # a person, or the gateway
            if inviter is not None and inviter not in seen:
                seen.add(inviter)
                todo.append(inviter)
    return False


async def _inviter(house: House, tenant_id: str, event: Event, entity_id: str) -> str | None:
    """Who wrote to this agent itself: by name, or by a capability or cluster it was chosen for."""
    kind, sender = event["body"]["event_type"], _sender(event)
    if kind == "message_delivered" and sender != entity_id:
        return sender if event["attributes"].get("av.recipient.entity_id") == entity_id else None
    if kind != "message_read" or sender != entity_id or event["body"]["message_id"] is None:
        return None
    told = await house.store.message(tenant_id, event["body"]["message_id"])
    if told is None or told.raw is None:
        return None
    identity = msgspec.json.decode(told.raw).get("identity") or {}
    to, by = identity.get("recipient"), identity.get("agent_id")
    addressed = isinstance(to, str) and to.startswith(("type:", "cluster:"))
    return agent_entity_id(tenant_id, by) if addressed and isinstance(by, str) else None


async def _is_own_doing(house: House, tenant_id: str, event: Event) -> bool:
    """Whether the agent it was written to asked for it; of a reminder the message says so."""
    if event["body"].get("message_type") == "decision_response":
        return True
    if _sender(event) != SCHEDULER:
        return False
    told = await house.store.message(tenant_id, event["body"]["message_id"])
    if told is None or told.raw is None:
        return True
    metadata = msgspec.json.decode(told.raw).get("metadata") or {}
    return bool(metadata.get("intent") == INTENT)


def _sender(event: Event) -> str | None:
    found: str | None = event["attributes"].get("av.sender.entity_id")
    return found


async def _events(house: House, tenant_id: str, where: EventFilter, limit: int) -> list[Event]:
    found = await house.store.events(tenant_id, where, limit, False)
    return [msgspec.json.decode(stored.record) for stored in found]

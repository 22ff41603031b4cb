"""Which agents took part in a session: its first sender, and agents that participants wrote to (S1146).

Sending one message there is not enough: every agent that knows the session's id can do that. Messages to the
whole session (`session:<id>`) invite no one, for they reach every agent that ever sent there. Nor do messages
an agent caused itself: a reminder it requested there, and the answer to its own question (S1401).
"""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.features.schedule.reminders import INTENT
from observatory.http.app_state import AppState
from observatory.pipeline.ports import EventFilter
from observatory.protocol.identity import agent_entity_id

EVENTS = 1_000  # of one agent in the session, oldest first
AGENTS = 50  # links from the asking agent back to the first sender
SCHEDULER = "sys_scheduler"
Event = dict[str, Any]


async def took_part(app: AppState, tenant_id: str, session_id: str, entity_id: str) -> bool:
    rows = await app.store.rows(tenant_id, "sessions", session_id=session_id)
    if not rows:
        return True  # the mesh has no such session
    first, trace_id = rows[0]["first_seq"], rows[0]["trace_id"]
    where = EventFilter(after=first - 1, before=first + 1)
    starters = {_sender(event) for event in await _events(app, tenant_id, where, 1)}
    queue, seen = [entity_id], {entity_id}
    while queue and len(seen) <= AGENTS:
        one = queue.pop()
        if one in starters:
            return True
        events = await _events(app, tenant_id, EventFilter(trace_id=trace_id, entity_id=one), EVENTS)
        for event in events:
            inviter = await _inviter(app, tenant_id, event, one)
            if inviter is not None and not inviter.startswith("agt_"):
                if await _is_own_doing(app, tenant_id, event):
                    continue
                return True  # a person, or the gateway
            if inviter is not None and inviter not in seen:
                seen.add(inviter)
                queue.append(inviter)
    return False


async def _inviter(app: AppState, tenant_id: str, event: Event, entity_id: str) -> str | None:
    """Who wrote to this agent directly: by name, or by a capability or cluster it was chosen for."""
    kind, sender = event["body"]["event_type"], _sender(event)
    if kind == "message_delivered" and sender != entity_id:
        return sender if event["attributes"].get("av.recipient.entity_id") == entity_id else None
    if kind != "message_read" or sender != entity_id or event["body"]["message_id"] is None:
        return None
    message = await app.store.message(tenant_id, event["body"]["message_id"])
    if message is None or message.raw is None:
        return None
    identity = msgspec.json.decode(message.raw).get("identity") or {}
    to, by = identity.get("recipient"), identity.get("agent_id")
    addressed = isinstance(to, str) and to.startswith(("type:", "cluster:"))
    return agent_entity_id(tenant_id, by) if addressed and isinstance(by, str) else None


async def _is_own_doing(app: AppState, tenant_id: str, event: Event) -> bool:
    """Whether the agent that received it had requested it; for a reminder, by the message's metadata."""
    if event["body"].get("message_type") == "decision_response":
        return True
    if _sender(event) != SCHEDULER:
        return False
    message = await app.store.message(tenant_id, event["body"]["message_id"])
    if message is None or message.raw is None:
        return True
    metadata = msgspec.json.decode(message.raw).get("metadata") or {}
    return bool(metadata.get("intent") == INTENT)


def _sender(event: Event) -> str | None:
    sender: str | None = event["attributes"].get("av.sender.entity_id")
    return sender


async def _events(app: AppState, tenant_id: str, where: EventFilter, limit: int) -> list[Event]:
    found = await app.store.events(tenant_id, where, limit, False)
    return [msgspec.json.decode(stored.record) for stored in found]

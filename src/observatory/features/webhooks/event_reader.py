"""Reads the record for endpoints: which events match each one, and the payload to deliver.

The payload is rendered from the archived event and never stored again. Only the additional content from a
message (of a completed task) is computed once, when it is found, and stored with the delivery: retention may
delete the message between attempts, and every attempt must send the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.features.webhooks.commands import MatchedEvent
from observatory.features.webhooks.subscriptions import StepContent, Subscription, may_match, step_content
from observatory.features.webhooks.types_signature import TASK_COMPLETED, body_of, delivered_event
from observatory.pipeline.ports import EventFilter, Store, StoredEvent

PAGE = 500
Row = dict[str, Any]


class EndpointEventReader:
    """Over committed rows of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, tenant_id: str, after: int, before: int | None = None) -> list[StoredEvent]:
        where = EventFilter(after=after, before=before)
        return await self._store.events(tenant_id, where, PAGE, newest_first=False)

    async def matched(
        self, tenant_id: str, events: Sequence[StoredEvent], subscriptions: Sequence[Subscription]
    ) -> dict[str, list[MatchedEvent]]:
        """The matching events of each endpoint, in order."""
        types = frozenset().union(*(one.types for one in subscriptions))
        events_read = {
            event.sequence_number: msgspec.json.decode(event.record)
            for event in events
            if may_match(event.record, types)
        }
        words = clusters = None
        if any(one.asks_messages for one in subscriptions):
            words = await self._words(tenant_id, events_read)
        if any(one.asks_clusters for one in subscriptions):
            clusters = await self._clusters(tenant_id)
        found: dict[str, list[MatchedEvent]] = {one.endpoint_id: [] for one in subscriptions}
        extras: dict[int, str] = {}
        for number, event in events_read.items():
            step_words = (words or {}).get(number, StepContent())
            for one in subscriptions:
                match = one.match(number, event, step_words, clusters or {})
                if match is not None and match.event_type == TASK_COMPLETED:
                    if number not in extras:
                        extras[number] = await self._task(tenant_id, event, step_words)
                    match = match._replace(extra=extras[number])
                if match is not None:
                    found[one.endpoint_id].append(match)
        return found

    async def _words(self, tenant_id: str, events_read: Mapping[int, Row]) -> dict[int, StepContent]:
        """Contents of the forwarded steps among them. A held one has its bytes under an earlier number."""
        steps = {
            number: event["body"]["message_id"]
            for number, event in events_read.items()
            if event["body"]["event_type"] == "message_delivered"
            and event["body"].get("message_type") == "decision_log"
        }
        if not steps:
            return {}
        contents = await self._store.contents(tenant_id, steps)
        found = {}
        for number, message_id in steps.items():
            if number in contents:
                found[number] = step_content(contents[number][1])
            elif (message := await self._store.message(tenant_id, message_id)) is not None:
                found[number] = step_content(message.rewritten or message.raw)
        return found

    async def _clusters(self, tenant_id: str) -> dict[str, str]:
        agents = await self._store.rows(tenant_id, "agents")
        placed = [row for row in agents if row["cluster_id"]]
        return {
            name: row["cluster_id"] for row in placed for name in (row["entity_id"], row["agent_id"]) if name
        }

    async def _task(self, tenant_id: str, event: Row, words: StepContent) -> str:
        """Session, agent, final step and cost, as of when the completion is found."""
        body, attributes = event["body"], event["attributes"]
        message = await self._store.message(tenant_id, body["message_id"])
        session_id = None if message is None else message.session_id
        sessions = await self._store.rows(tenant_id, "sessions", session_id=session_id) if session_id else []
        delta, action = words.state_delta, words.action
        task = {
            "session_id": session_id,
            "agent_id": attributes.get("av.sender.agent_id"),
            "step_id": attributes.get("av.step.id"),
            "message_id": body["message_id"],
            "status": None if action is None else action.status,
            "tool": words.tool,
            "agent_cost": None if delta is None else delta.cumulative_session_cost,
            "session_cost": sessions[0]["cost"] if sessions else None,
            "session_messages": sessions[0]["messages"] if sessions else None,
        }
        return msgspec.json.encode(task).decode()

    async def rendered(self, delivery: Row) -> tuple[Row, bytes] | None:
        """The event as it is delivered, and its bytes; None when the archive has no such event."""
        number = delivery["event_seq"]
        found = await self._store.events(
            delivery["tenant_id"], EventFilter(after=number - 1, before=number + 1), 1, newest_first=False
        )
        if not found:
            return None
        event = delivered_event(found[0].record, delivery["event_type"], delivery["extra"])
        return event, body_of(event)

"""Reading the record for endpoints: which of its events each is to be told of, and in what words.

Law: what is told is rendered from the archived event, never stored a second time. Only what a message tells
besides (of a completed task) is worked out once, when it is found, and kept with the delivery: the bytes of
a message may go by retention between one try and the next, and every try sends the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from observatory.features.webhooks.commands import Matched
from observatory.features.webhooks.signature import TASK_COMPLETED, body_of, told
from observatory.features.webhooks.subscriptions import Subscription, Words, may_match, words_of
from observatory.pipeline.ports import EventFilter, Store, StoredEvent

PAGE = 500
Row = dict[str, Any]


class Reading:
    """Over committed rows of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, tenant_id: str, after: int, before: int | None = None) -> list[StoredEvent]:
        where = EventFilter(after=after, before=before)
        return await self._store.events(tenant_id, where, PAGE, newest_first=False)

    async def matched(
        self, tenant_id: str, events: Sequence[StoredEvent], subscriptions: Sequence[Subscription]
    ) -> dict[str, list[Matched]]:
        """Of these events, what each endpoint is to be told of, in order."""
        types = frozenset().union(*(one.types for one in subscriptions))
        read = {
            event.sequence_number: msgspec.json.decode(event.record)
            for event in events
            if may_match(event.record, types)
        }
        words = clusters = None
        if any(one.asks_messages for one in subscriptions):
            words = await self._words(tenant_id, read)
        if any(one.asks_clusters for one in subscriptions):
            clusters = await self._clusters(tenant_id)
        found: dict[str, list[Matched]] = {one.endpoint_id: [] for one in subscriptions}
        extras: dict[int, str] = {}
        for number, event in read.items():
            said = (words or {}).get(number, Words())
            for one in subscriptions:
                match = one.match(number, event, said, clusters or {})
                if match is not None and match.event_type == TASK_COMPLETED:
                    if number not in extras:
                        extras[number] = await self._task(tenant_id, event, said)
                    match = match._replace(extra=extras[number])
                if match is not None:
                    found[one.endpoint_id].append(match)
        return found

    async def _words(self, tenant_id: str, read: Mapping[int, Row]) -> dict[int, Words]:
        """Of the forwarded steps among them. One that was held has its bytes under an earlier number."""
        steps = {
            number: event["body"]["message_id"]
            for number, event in read.items()
            if event["body"]["event_type"] == "message_delivered"
            and event["body"].get("message_type") == "decision_log"
        }
        if not steps:
            return {}
        contents = await self._store.contents(tenant_id, steps)
        found = {}
        for number, message_id in steps.items():
            if number in contents:
                found[number] = words_of(contents[number][1])
            elif (message := await self._store.message(tenant_id, message_id)) is not None:
                found[number] = words_of(message.rewritten or message.raw)
        return found

    async def _clusters(self, tenant_id: str) -> dict[str, str]:
        agents = await self._store.rows(tenant_id, "agents")
        placed = [row for row in agents if row["cluster_id"]]
        return {
            name: row["cluster_id"] for row in placed for name in (row["entity_id"], row["agent_id"]) if name
        }

    async def _task(self, tenant_id: str, event: Row, words: Words) -> str:
        """Session, agent, final step and cost, as they stand when the completion is found."""
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
        """The event as it is told, and its bytes; None when the archive has no such event."""
        number = delivery["event_seq"]
        found = await self._store.events(
            delivery["tenant_id"], EventFilter(after=number - 1, before=number + 1), 1, newest_first=False
        )
        if not found:
            return None
        event = told(found[0].record, delivery["event_type"], delivery["extra"])
        return event, body_of(event)

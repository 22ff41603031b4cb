"""Folded topics on the live channel: `fleet`, `sessions`, `waiting`, `session:dag:{id}` (rules S284–S293).

Records by id and version: a snapshot replaces all a reader has of the topic, a delta upserts what is newer
and drops what says `removed`. What is told is put together in runtime/feed.py, once for all readers.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from observatory.features.decisions.live_topic import WaitingSource
from observatory.features.fleet.live_topic import FleetSource
from observatory.features.graph.live_topic import DagSource
from observatory.features.sessions.live_topic import SessionsSource
from observatory.http.app_state import House
from observatory.http.sockets import Socket
from observatory.pipeline.state import Principal
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.rules import SessionId
from observatory.runtime.feed import FeedFull
from observatory.runtime.feed_channel import Source
from observatory.runtime.feed_pace import Pace

PLAIN = ("fleet", "sessions", "waiting")
DAG = "session:dag:"
MOST = 16  # folded topics of one client
SEND_S = 30.0


def is_folded(topic: str) -> bool:
    return topic in PLAIN or topic.startswith(DAG)


def named(topic: str) -> str | None:
    """The topic in its one spelling; None when what follows `session:dag:` is no session id."""
    if not topic.startswith(DAG):
        return topic
    try:
        session_id = msgspec.convert(topic.removeprefix(DAG), SessionId)
    except msgspec.ValidationError:
        return None
    return DAG + (canonical_uuid(session_id) or session_id)


def source_of(house: House, tenant_id: str, topic: str) -> Source:
    if topic == "fleet":
        return FleetSource(house, tenant_id)
    if topic == "sessions":
        return SessionsSource(house, tenant_id)
    if topic == "waiting":
        return WaitingSource(house, tenant_id)
    return DagSource(house, tenant_id, topic.removeprefix(DAG))


def _who(principal: Principal) -> str:
    """One person whatever they signed in with; an agent's key by itself."""
    return principal.key_id if principal.role == "agent" else principal.user_id or principal.key_id


async def serve(
    house: House, socket: Socket, principal: Principal, topics: list[str], after: int | None, pace: Pace
) -> None:
    """Until the socket ends. StoreError when a topic cannot be read."""
    tenant_id = principal.tenant_id
    try:
        async with house.feed.follow(
            tenant_id,
            topics,
            lambda topic: source_of(house, tenant_id, topic),
            after,
            pace,
            _who(principal),
        ) as follower:
            while not socket.closed:
                frame = await follower.next()
                if not await socket.is_still_welcome(house.auth):
                    await socket.close(4401, "this key is no longer valid")
                    return
                try:
                    async with asyncio.timeout(SEND_S):
                        await socket.send(frame)
                except TimeoutError:
                    # It reads nothing at all; its end may not be heard either, and is not waited for.
                    with suppress(TimeoutError):
                        async with asyncio.timeout(1.0):
                            await socket.close(1013, "too slow; come back with your cursor")
                    return
    except FeedFull as error:
        await socket.send(msgspec.json.encode({"type": "error", "problem": str(error)}))

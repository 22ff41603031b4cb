"""Folded topics on the live channel: `fleet`, `sessions`, `waiting`, `session:dag:{id}` (rules S284–S293).

Records by id and version: a snapshot replaces all a reader has of the topic, a delta upserts what is newer
and drops what says `removed`. The frames are built in runtime/feed.py, once for all readers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.http.sockets import Socket
from observatory.pipeline.state import Principal
from observatory.protocol.identity import canonical_uuid
from observatory.protocol.rules import SessionId
from observatory.runtime.feed import FeedFull
from observatory.runtime.feed_channel import TopicSource
from observatory.runtime.feed_pace import FramePacer

MAX_TOPICS = 16  # folded topics of one client
SEND_S = 30.0


class FoldedTopics:
    """The topics of records that features registered."""

    def __init__(self, features: Iterable[Feature]) -> None:
        topics = [topic for feature in features for topic in feature.folded_topics]
        self._plain = {topic.name: topic for topic in topics if not topic.name.endswith(":")}
        self._of_session = {topic.name: topic for topic in topics if topic.name.endswith(":")}

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._plain, *(f"{name}<session id>" for name in self._of_session))

    def __contains__(self, topic: str) -> bool:
        return topic in self._plain or self._prefix(topic) is not None

    def _prefix(self, topic: str) -> str | None:
        return next((name for name in self._of_session if topic.startswith(name)), None)

    def named(self, topic: str) -> str | None:
        """The topic in its one spelling; None when what follows its name is no session id."""
        prefix = self._prefix(topic)
        if prefix is None:
            return topic
        try:
            session_id = msgspec.convert(topic.removeprefix(prefix), SessionId)
        except msgspec.ValidationError:
            return None
        return prefix + (canonical_uuid(session_id) or session_id)

    def source_of(self, app: AppState, tenant_id: str, topic: str) -> TopicSource:
        if topic in self._plain:
            return self._plain[topic].source(app, tenant_id, "")
        prefix = self._prefix(topic)
        assert prefix is not None  # the topic was checked when it was asked for
        return self._of_session[prefix].source(app, tenant_id, topic.removeprefix(prefix))

    async def serve(
        self,
        app: AppState,
        socket: Socket,
        principal: Principal,
        topics: list[str],
        after: int | None,
        pace: FramePacer,
    ) -> None:
        """Until the socket ends. StoreError when a topic cannot be read."""
        tenant_id = principal.tenant_id
        try:
            async with app.feed.follow(
                tenant_id,
                topics,
                lambda topic: self.source_of(app, tenant_id, topic),
                after,
                pace,
                _who(principal),
            ) as follower:
                while not socket.closed:
                    frame = await follower.next()
                    if not await socket.is_still_authorized(app.auth):
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


def _who(principal: Principal) -> str:
    """Whom the topics are counted for: a person, however signed in; for an agent its key."""
    return principal.key_id if principal.role == "agent" else principal.user_id or principal.key_id

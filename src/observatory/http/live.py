"""`WS /v1/live`: committed rows by topic, from now on or from a cursor.

Client: `{op: "subscribe", topics: […], after?}`. Server: `{type, topic, seq, items}` where `seq` is the
cursor to resume from. A reader that asks for the past is served all of it, at its own pace; one that
falls behind the present by more than the backlog gets a `resync` and continues from the head.
Topics of records (`fleet`, `sessions`, `waiting`, `session:dag:{id}`) are served by
live_folded.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from observatory.errors import StoreError
from observatory.http.app_state import AppState
from observatory.http.authentication import allows
from observatory.http.feature import EventTopic
from observatory.http.live_topics import MAX_TOPICS, FoldedTopics
from observatory.http.sockets import Socket
from observatory.pipeline.state import Principal
from observatory.runtime.feed_pace import FramePacer
from observatory.runtime.publisher import PAGE, CommittedRow, RowFeed, item_of

# Events of users, keys, roles and tenants: they change who may read.
OF_ACCESS = tuple(b'"event_type":"%s' % word for word in (b"key_", b"user_", b"role_", b"tenant_"))
TOPICS = ("messages", "events", "gateway:violations")
encode = msgspec.json.encode


class Subscribe(msgspec.Struct):
    op: str
    topics: list[str] = []
    after: int | None = None


class Live:
    def __init__(self, app: AppState) -> None:
        self._app = app
        self._folded = FoldedTopics(app.features)
        self._shaped = {topic.name: topic for feature in app.features for topic in feature.event_topics}

    async def socket(self, socket: Socket) -> None:
        principal = await socket.authenticate(self._app.auth)
        if principal is None or not allows(principal, "read"):
            await socket.close(4401 if principal is None else 4403, "a key that may read is needed")
            return
        reader: asyncio.Task[None] | None = None
        pace = FramePacer()
        try:
            while (frame := await socket.receive()) is not None:
                request = self._parse_subscribe(frame)
                if isinstance(request, str):
                    await socket.send(encode({"type": "error", "problem": request}))
                    continue
                if reader is not None:
                    await _cancel(reader)
                reader = asyncio.create_task(self._serve_until_error(socket, principal, request, pace))
        finally:
            if reader is not None:
                await _cancel(reader)

    async def _serve_until_error(
        self, socket: Socket, principal: Principal, request: Subscribe, pace: FramePacer
    ) -> None:
        """Serve; on a store error close the socket with a reason: a silent socket looks like a quiet mesh."""
        folded = [topic for topic in request.topics if topic in self._folded]
        request.topics = [topic for topic in request.topics if topic not in folded]
        try:
            async with asyncio.TaskGroup() as group:
                if request.topics:
                    group.create_task(self._events(socket, principal, request))
                if folded:
                    group.create_task(
                        self._folded.serve(self._app, socket, principal, folded, request.after, pace)
                    )
        except* StoreError:
            await socket.close(1013, "the archive cannot be read now; reconnect with your cursor")

    async def _events(self, socket: Socket, principal: Principal, request: Subscribe) -> None:
        async with self._app.publisher.feed(principal.tenant_id) as feed:
            await self._serve(socket, principal, feed, request)

    async def _serve(self, socket: Socket, principal: Principal, feed: RowFeed, request: Subscribe) -> None:
        head, _ = await self._app.store.head(principal.tenant_id)
        cursor = head if request.after is None else max(0, min(request.after, head))
        for topic in request.topics:
            await socket.send(encode({"type": "snapshot", "topic": topic, "seq": cursor, "items": []}))
        subscribed_head, backlog = head, self._app.settings.live_backlog
        while not socket.closed:
            # Rows up to the head at subscription were asked for; only what came since can exceed the backlog.
            if cursor >= subscribed_head and feed.head - cursor > backlog:
                cursor = feed.head
                for topic in request.topics:
                    await socket.send(encode({"type": "resync", "topic": topic, "seq": cursor, "items": []}))
            rows, known = feed.after(cursor, PAGE), feed.frames
            if rows is None or (not rows and cursor < subscribed_head):
                rows, known = await self._app.publisher.page(principal.tenant_id, cursor), {}
            if not rows:
                await feed.wait(cursor)
                continue
            span = cursor, rows[-1].sequence_number
            if span not in known:
                known[span] = any(is_of_access(row.event.record) for row in rows)
            if not await socket.is_still_authorized(self._app.auth, known[span]):
                await socket.close(4401, "this key is no longer valid")
                return
            for frame in await self._frames(principal, request.topics, rows, cursor, known):
                await socket.send(frame)
            cursor = rows[-1].sequence_number

    async def _frames(
        self,
        principal: Principal,
        topics: list[str],
        rows: list[CommittedRow],
        cursor: int,
        known: dict[Any, Any],
    ) -> list[bytes]:
        """The frames of these rows, built once for all readers at this cursor with the same topics."""
        last = rows[-1].sequence_number
        key = (cursor, last, *topics)
        if key in known:
            frames_made: list[bytes] = known[key]
            return frames_made
        by_topic = [(topic, await self._items_of(principal, topic, rows)) for topic in topics]
        frames = [(topic, items) for topic, items in by_topic if items]
        frames_made = []
        for number, (topic, items) in enumerate(frames, 1):
            # Only the last frame of a page moves the cursor: a reader cut off between two frames resumes
            # with the whole page and loses none of it.
            seq = last if number == len(frames) else cursor
            frames_made.append(encode({"type": "event", "topic": topic, "seq": seq, "items": items}))
        known[key] = frames_made
        return frames_made

    async def _items_of(self, principal: Principal, topic: str, rows: list[CommittedRow]) -> list[object]:
        if topic in self._shaped:
            shaped: EventTopic = self._shaped[topic]
            return await shaped.items(self._app, principal.tenant_id, rows)
        return _items(topic, rows)

    def _parse_subscribe(self, frame: bytes) -> Subscribe | str:
        try:
            request = msgspec.json.decode(frame, type=Subscribe)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 'a frame is {"op": "subscribe", "topics": […], "after": number or absent}'
        if request.op != "subscribe":
            return 'the only op is "subscribe"'
        if not request.topics or any(
            not (topic in TOPICS or topic in self._shaped or topic in self._folded)
            for topic in request.topics
        ):
            known = (*TOPICS, *self._shaped, *self._folded.names)
            return f"topics are one or more of: {', '.join(known)}"
        spelled = [self._folded.named(topic) for topic in request.topics]
        request.topics = list(dict.fromkeys(topic for topic in spelled if topic is not None))
        if None in spelled:
            return "session:dag: is followed by a session id: 1 to 256 characters without a slash or controls"
        if sum(1 for topic in request.topics if topic in self._folded) > MAX_TOPICS:
            return f"one socket follows at most {MAX_TOPICS} topics of records"
        return request


def is_of_access(record: bytes) -> bool:
    """Whether this event, perhaps written by another gateway, may change the access of a reader."""
    return any(mark in record for mark in OF_ACCESS)


def _items(topic: str, rows: list[CommittedRow]) -> list[object]:
    if topic == "messages":
        return [item_of(row.message) for row in rows if row.message is not None]
    return [
        msgspec.Raw(row.event.record)
        for row in rows
        if topic == "events" or b'"event_type":"schema_violation"' in row.event.record
    ]


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

"""`WS /v1/live`: committed rows by topic, from now on or from a cursor.

Client: `{op: "subscribe", topics: […], after?}`. Server: `{type, topic, seq, items}` where `seq` is the
cursor to come back with. A reader that asks for the past is served all of it, at its own pace; one that
falls behind the present by more than the backlog is told to `resync` and goes on from the head.
Topics of records (`fleet`, `sessions`, `waiting`, `session:dag:{id}`) are served beside them by
live_folded.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec

from observatory.errors import StoreError
from observatory.features.loops import routes as entropy
from observatory.http import live_topics as live_folded
from observatory.http.app_state import House
from observatory.http.authentication import allows
from observatory.http.sockets import Socket
from observatory.pipeline.state import Principal
from observatory.runtime.feed_pace import Pace
from observatory.runtime.publisher import PAGE, Feed, Row, item_of

# Users, keys, roles and tenants: what changes who may read.
OF_ACCESS = tuple(b'"event_type":"%s' % word for word in (b"key_", b"user_", b"role_", b"tenant_"))
TOPICS = ("messages", "events", "gateway:violations", entropy.TOPIC)
encode = msgspec.json.encode


class Subscribe(msgspec.Struct):
    op: str
    topics: list[str] = []
    after: int | None = None


class Live:
    def __init__(self, house: House) -> None:
        self._house = house

    async def socket(self, socket: Socket) -> None:
        principal = await socket.authenticate(self._house.auth)
        if principal is None or not allows(principal, "read"):
            await socket.close(4401 if principal is None else 4403, "a key that may read is needed")
            return
        reader: asyncio.Task[None] | None = None
        pace = Pace()
        try:
            while (frame := await socket.receive()) is not None:
                wish = _wish(frame)
                if isinstance(wish, str):
                    await socket.send(encode({"type": "error", "problem": wish}))
                    continue
                if reader is not None:
                    await _ended(reader)
                reader = asyncio.create_task(self._serve_or_say(socket, principal, wish, pace))
        finally:
            if reader is not None:
                await _ended(reader)

    async def _serve_or_say(self, socket: Socket, principal: Principal, wish: Subscribe, pace: Pace) -> None:
        """A reader that can be served no more is told so: a silent socket looks like a quiet mesh."""
        folded = [topic for topic in wish.topics if live_folded.is_folded(topic)]
        wish.topics = [topic for topic in wish.topics if topic not in folded]
        try:
            async with asyncio.TaskGroup() as group:
                if wish.topics:
                    group.create_task(self._events(socket, principal, wish))
                if folded:
                    group.create_task(
                        live_folded.serve(self._house, socket, principal, folded, wish.after, pace)
                    )
        except* StoreError:
            await socket.close(1013, "the archive cannot be read now; come back with your cursor")

    async def _events(self, socket: Socket, principal: Principal, wish: Subscribe) -> None:
        async with self._house.publisher.feed(principal.tenant_id) as feed:
            await self._serve(socket, principal, feed, wish)

    async def _serve(self, socket: Socket, principal: Principal, feed: Feed, wish: Subscribe) -> None:
        head, _ = await self._house.store.head(principal.tenant_id)
        cursor = head if wish.after is None else max(0, min(wish.after, head))
        for topic in wish.topics:
            await socket.send(encode({"type": "snapshot", "topic": topic, "seq": cursor, "items": []}))
        past, lapse = head, self._house.settings.live_backlog
        while not socket.closed:
            # What lay behind the head at subscription was asked for; only what came since can be too much.
            if cursor >= past and feed.head - cursor > lapse:
                cursor = feed.head
                for topic in wish.topics:
                    await socket.send(encode({"type": "resync", "topic": topic, "seq": cursor, "items": []}))
            rows, known = feed.after(cursor, PAGE), feed.told
            if rows is None or (not rows and cursor < past):
                rows, known = await self._house.publisher.page(principal.tenant_id, cursor), {}
            if not rows:
                await feed.wait(cursor)
                continue
            span = cursor, rows[-1].sequence_number
            if span not in known:
                known[span] = any(is_of_access(row.event.record) for row in rows)
            if not await socket.is_still_welcome(self._house.auth, known[span]):
                await socket.close(4401, "this key is no longer valid")
                return
            for frame in await self._frames(principal, wish.topics, rows, cursor, known):
                await socket.send(frame)
            cursor = rows[-1].sequence_number

    async def _frames(
        self, principal: Principal, topics: list[str], rows: list[Row], cursor: int, known: dict[Any, Any]
    ) -> list[bytes]:
        """Put together once for all who stand at this cursor and want the same."""
        last = rows[-1].sequence_number
        key = (cursor, last, *topics)
        if key in known:
            made: list[bytes] = known[key]
            return made
        told = [(topic, await self._told(principal, topic, rows)) for topic in topics]
        frames = [(topic, items) for topic, items in told if items]
        made = []
        for number, (topic, items) in enumerate(frames, 1):
            # Only the last frame of a page moves the cursor: whoever is cut off between two comes back
            # for the whole page and loses none of it.
            seq = last if number == len(frames) else cursor
            made.append(encode({"type": "event", "topic": topic, "seq": seq, "items": items}))
        known[key] = made
        return made

    async def _told(self, principal: Principal, topic: str, rows: list[Row]) -> list[object]:
        if topic == entropy.TOPIC:
            return await entropy.live_items(self._house, principal.tenant_id, rows)
        return _items(topic, rows)


def is_of_access(record: bytes) -> bool:
    """Whether somebody's access may be another after this event: it may have been written anywhere."""
    return any(mark in record for mark in OF_ACCESS)


def _items(topic: str, rows: list[Row]) -> list[object]:
    if topic == "messages":
        return [item_of(row.message) for row in rows if row.message is not None]
    return [
        msgspec.Raw(row.event.record)
        for row in rows
        if topic == "events" or b'"event_type":"schema_violation"' in row.event.record
    ]


def _wish(frame: bytes) -> Subscribe | str:
    try:
        wish = msgspec.json.decode(frame, type=Subscribe)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 'a frame is {"op": "subscribe", "topics": […], "after": number or absent}'
    if wish.op != "subscribe":
        return 'the only op is "subscribe"'
    if not wish.topics or any(not (topic in TOPICS or live_folded.is_folded(topic)) for topic in wish.topics):
        known = (*TOPICS, *live_folded.PLAIN, f"{live_folded.DAG}<session id>")
        return f"topics are one or more of: {', '.join(known)}"
    spelled = [live_folded.named(topic) for topic in wish.topics]
    wish.topics = list(dict.fromkeys(topic for topic in spelled if topic is not None))
    if None in spelled:
        return "session:dag: is followed by a session id: 1 to 256 characters without a slash or controls"
    if sum(1 for topic in wish.topics if live_folded.is_folded(topic)) > live_folded.MOST:
        return f"one socket follows at most {live_folded.MOST} topics of records"
    return wish


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

"""Reads the contents of many messages by number, a few megabytes at a time, and reduces them in a thread.

Beyond the limit of one response, the last of the numbers are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from observatory.features.graph.queries_session import playback
from observatory.http.app_state import AppState

T = TypeVar("T")
MAX_MESSAGES = 5_000
MAX_BYTES = 64 * 1024 * 1024
AT_ONCE = 8 * 1024 * 1024


async def read_contents(
    app: AppState, tenant_id: str, numbers: Iterable[int], read: Callable[[str, bytes | None], T]
) -> dict[int, T]:
    """`read` gets a message's type and its archived bytes, None once shredded."""
    asked = list(dict.fromkeys(numbers))[:MAX_MESSAGES]
    found: dict[int, T] = {}
    if not asked:
        return found
    lengths = await playback(app).lengths(tenant_id, asked)
    for part in byte_portions([number for number in asked if number in lengths], lengths, AT_ONCE, MAX_BYTES):
        contents = await app.store.contents(tenant_id, part)
        found |= await asyncio.to_thread(_read, contents, read)
    return found


def byte_portions(
    numbers: Sequence[int], lengths: Mapping[int, int], at_once: int, most: int
) -> Iterator[list[int]]:
    """In order: each portion of at most `at_once` bytes or one message, all together at most `most` bytes."""
    part: list[int] = []
    size = total = 0
    for number in numbers:
        total += lengths[number]
        if total > most:
            break
        if part and size + lengths[number] > at_once:
            yield part
            part, size = [], 0
        part.append(number)
        size += lengths[number]
    if part:
        yield part


def _read(
    contents: Mapping[int, tuple[str, bytes | None]], read: Callable[[str, bytes | None], T]
) -> dict[int, T]:
    return {number: read(kind, raw) for number, (kind, raw) in contents.items()}

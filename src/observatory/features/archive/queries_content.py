"""Words of many messages, by number: read a few megabytes at a time, reduced in a thread to what is wanted.

What is more than one answer may cost is left out, the last of the numbers first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from observatory.features.graph.loader import playback
from observatory.http.app_state import House

T = TypeVar("T")
MOST = 5_000
MOST_BYTES = 64 * 1024 * 1024
AT_ONCE = 8 * 1024 * 1024


async def reduced(
    house: House, tenant_id: str, numbers: Iterable[int], read: Callable[[str, bytes | None], T]
) -> dict[int, T]:
    """`read` is given a message's type and its bytes as archived, None once shredded."""
    asked = list(dict.fromkeys(numbers))[:MOST]
    found: dict[int, T] = {}
    if not asked:
        return found
    lengths = await playback(house).lengths(tenant_id, asked)
    for part in portions([number for number in asked if number in lengths], lengths, AT_ONCE, MOST_BYTES):
        contents = await house.store.contents(tenant_id, part)
        found |= await asyncio.to_thread(_read, contents, read)
    return found


def portions(
    numbers: Sequence[int], lengths: Mapping[int, int], at_once: int, most: int
) -> Iterator[list[int]]:
    """In order, each of so many bytes or one message, all together no more than the most."""
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

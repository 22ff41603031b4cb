"""The tiles of a log: which exist, their paths, and how proofs are read from them.

C2SP `tlog-tiles/v0.1.0`: a tile of level l has up to 256 hashes, each the root of 256^l leaves.
Functions come in pairs, as in `merkle`: `needed` returns which tiles a proof is read from, `hash_of` reads
them. `Edge` is the log's right edge, everything needed to append: the hashes of the tiles that are not full
yet.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

from observatory.ledger import merkle
from observatory.ledger.merkle import Range

WIDTH: Final = 256
BITS: Final = 8
HASH: Final = 32
TOP: Final = 7  # level 7 would need 2^56 leaves: beyond any sequence number
ENTRIES: Final = "entries"

_GROUPS = re.compile(r"(?:x[0-9]{3}/)*[0-9]{3}")


@dataclass(frozen=True, order=True, slots=True)
class Tile:
    level: int
    index: int
    width: int = WIDTH


class TileNode(NamedTuple):
    """The root of a tile that became full: hash number `position` of the level above it."""

    level: int
    position: int
    hash: bytes


def name(index: int) -> str:
    """In groups of three digits, all but the last prefixed with x: 1234067 is x001/x234/067."""
    groups = [f"{index % 1000:03d}"]
    while index := index // 1000:
        groups.append(f"x{index % 1000:03d}")
    return "/".join(reversed(groups))


def path(level: int | str, index: int, width: int | None = None) -> str:
    """The path below the log's URL. `level` is a number, or `entries` for the leaves' data."""
    partial = "" if width is None or width == WIDTH else f".p/{width}"
    return f"tile/{level}/{name(index)}{partial}"


def parse_name(text: str) -> tuple[int, int] | None:
    """(index, width) of the path after the level; None unless it is the canonical spelling."""
    groups, dot, number = text.partition(".p/")
    if not _GROUPS.fullmatch(groups) or len(groups) > 40:
        return None
    index = int(groups.replace("x", "").replace("/", ""))
    width = WIDTH
    if dot:
        if not re.fullmatch(r"[1-9][0-9]{0,2}", number) or int(number) >= WIDTH:
            return None
        width = int(number)
    return (index, width) if name(index) == groups else None


def width(level: int, size: int) -> int:
    """The number of hashes in the last, partial tile of a level; 0 without one."""
    return (size >> BITS * level) % WIDTH


def width_of(level: int, index: int, size: int) -> int:
    """The number of hashes in this tile in a log of this size: 0 to 256."""
    return max(0, min(WIDTH, (size >> BITS * level) - index * WIDTH))


def of_size(size: int) -> Iterator[Tile]:
    """Every tile of a log: per level the full ones and the partial one, if there is one."""
    level = 0
    while count := size >> BITS * level:
        yield from (Tile(level, index) for index in range(count // WIDTH))
        if partial := count % WIDTH:
            yield Tile(level, count // WIDTH, partial)
        level += 1


def entry_bundle(entries: Iterable[bytes]) -> bytes:
    """The leaves' data concatenated, each prefixed with its length in two bytes."""
    return b"".join(len(entry).to_bytes(2, "big") + entry for entry in entries)


def _parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """(first leaf, logarithm of the count) of the complete subtrees that form a range, left to right."""
    while start < end:
        bits = (end - start).bit_length() - 1
        if start:
            bits = min(bits, (start & -start).bit_length() - 1)
        yield start, bits
        start += 1 << bits


def _places(ranges: Iterable[Range]) -> Iterator[tuple[int, int, int, int]]:
    """(level, tile, first hash in it, count) of each complete subtree."""
    for start, end in ranges:
        for first, bits in _parts(start, end):
            level = bits // BITS
            tile, offset = divmod(first >> BITS * level, WIDTH)
            yield level, tile, offset, 1 << bits % BITS


def needed(ranges: Iterable[Range]) -> set[tuple[int, int]]:
    """(level, index) of the tiles needed to compute the hashes of these subtrees."""
    return {(level, tile) for level, tile, _, _ in _places(ranges)}


def hash_of(span: Range, tile: Callable[[int, int], bytes]) -> bytes:
    """The hash of a subtree of a proof, computed from tiles; ValueError when one is too short."""
    node: bytes | None = None
    for level, index, offset, count in reversed(list(_places([span]))):
        hashes = tile(level, index)[offset * HASH : (offset + count) * HASH]
        if len(hashes) != count * HASH:
            raise ValueError("a tile of the log is shorter than it must be")
        left = full_root(cut(hashes))
        node = left if node is None else merkle.node_hash(left, node)
    return merkle.EMPTY_ROOT if node is None else node


def cut(hashes: bytes) -> list[bytes]:
    return [hashes[at : at + HASH] for at in range(0, len(hashes), HASH)]


def full_root(hashes: Sequence[bytes]) -> bytes:
    """The root over a power of two of hashes, layer by layer: twice as fast as one by one."""
    layer = hashes
    while len(layer) > 1:
        pairs = iter(layer)
        layer = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=True)]
    return layer[0]


def edge_spans(size: int) -> list[Tile]:
    """The partial tiles of a log of this size, lowest level first: the content of an `Edge`."""
    return [
        Tile(level, (size >> BITS * level) // WIDTH, partial)
        for level in range(TOP)
        if (partial := width(level, size))
    ]


class TileEdge:
    """The right edge of a log. `extend` costs one hash per leaf, whatever the size."""

    __slots__ = ("size", "tiles")

    def __init__(self, size: int = 0, partial: Iterable[tuple[int, Sequence[bytes]]] = ()) -> None:
        self.size = size
        self.tiles: list[list[bytes]] = [[] for _ in range(TOP)]
        for level, hashes in partial:
            self.tiles[level] = list(hashes)
        if [len(tile) for tile in self.tiles] != [width(level, size) for level in range(TOP)]:
            raise ValueError("an edge must have the hashes of every partial tile of its size")

    def copy(self) -> "TileEdge":
        return TileEdge(self.size, enumerate(self.tiles))

    def extend(self, leaves: Sequence[bytes]) -> list[TileNode]:
        """Append leaf hashes; returns the nodes completed by that, in order."""
        settled: list[TileNode] = []
        start = 0
        while start < len(leaves):
            tile = self.tiles[0]
            taken = leaves[start : start + WIDTH - len(tile)]
            tile.extend(taken)
            start += len(taken)
            self.size += len(taken)
            self._settle(settled)
        return settled

    def _settle(self, settled: list[TileNode]) -> None:
        level = 0
        while len(self.tiles[level]) == WIDTH:
            node = full_root(self.tiles[level])
            self.tiles[level] = []
            level += 1
            self.tiles[level].append(node)
            settled.append(TileNode(level, (self.size >> BITS * level) - 1, node))

    def root(self) -> bytes:
        """Largest subtrees first, joined from the right (RFC 6962 §2.1)."""
        node: bytes | None = None
        for tile in self.tiles:
            for left in reversed(_peaks(tile)):
                node = left if node is None else merkle.node_hash(left, node)
        return merkle.EMPTY_ROOT if node is None else node


def _peaks(hashes: Sequence[bytes]) -> list[bytes]:
    """One hash per set bit of the number of hashes, the largest subtree first."""
    return [full_root(hashes[first : first + (1 << bits)]) for first, bits in _parts(0, len(hashes))]

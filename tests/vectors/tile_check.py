"""A whole log as tiles (C2SP tlog-tiles), recomputed from its entries up to the signed root.

A mirror's own check over the verifier's family, with no code of the writer. Every entry is hashed again,
every hash of every tile compared with what comes out, and no tile of the size may be missing, longer or
shorter. What does not hold is returned as a sentence, never raised.
"""

from collections.abc import Callable, Sequence
from typing import Final

from observatory.ledger.verify_log import leaf_hash, node_hash
from observatory.ledger.verify_note import Checkpoint, Key, read_checkpoint

WIDTH: Final = 256

Read = Callable[[str], bytes | None]


def check_log(read: Read, keys: Sequence[Key]) -> Checkpoint | str:
    """`read` gives the bytes of a path below the log's address, None when there is nothing."""
    checkpoint = read_checkpoint(read("checkpoint") or b"", keys)
    if isinstance(checkpoint, str):
        return checkpoint
    below: list[bytes] = []
    for tile in range(-(-checkpoint.size // WIDTH)):
        entries = _entries(read, tile, min(WIDTH, checkpoint.size - tile * WIDTH))
        if isinstance(entries, str):
            return entries
        below += map(leaf_hash, entries)
    return _check_levels(read, below, checkpoint)


def _check_levels(read: Read, below: list[bytes], checkpoint: Checkpoint) -> Checkpoint | str:
    """Only full tiles are hashed into the level above; the root takes the rest of each level as it comes."""
    level, right = 0, list[list[bytes]]()
    while below:
        for tile in range(-(-len(below) // WIDTH)):
            hashes = below[tile * WIDTH : (tile + 1) * WIDTH]
            path = _path(str(level), tile, len(hashes))
            if read(path) != b"".join(hashes):
                return f"{path} does not hold the hashes of what is below it."
        full = len(below) // WIDTH
        right.append(below[full * WIDTH :])
        below = [_root(below[tile * WIDTH : (tile + 1) * WIDTH]) for tile in range(full)]
        level += 1
    root: bytes | None = None
    for rest in right:
        for peak in reversed(_peaks(rest)):
            root = peak if root is None else node_hash(peak, root)
    if checkpoint.size and root != checkpoint.root:
        return "The entries do not lead to the signed root."
    return checkpoint


def _root(hashes: Sequence[bytes]) -> bytes:
    """Of a power of two of hashes."""
    while len(hashes) > 1:
        hashes = [node_hash(hashes[at], hashes[at + 1]) for at in range(0, len(hashes), 2)]
    return hashes[0]


def _peaks(hashes: Sequence[bytes]) -> list[bytes]:
    found, at = [], 0
    for bit in reversed(range(len(hashes).bit_length())):
        if len(hashes) >> bit & 1:
            found.append(_root(hashes[at : at + (1 << bit)]))
            at += 1 << bit
    return found


def _entries(read: Read, tile: int, width: int) -> list[bytes] | str:
    path = _path("entries", tile, width)
    raw = read(path)
    if raw is None:
        return f"{path} is not there."
    found, at = [], 0
    for _ in range(width):
        size = int.from_bytes(raw[at : at + 2])
        if len(raw) < at + 2 + size:
            return f"{path} is cut short."
        found.append(raw[at + 2 : at + 2 + size])
        at += 2 + size
    return found if at == len(raw) else f"{path} holds more than its entries."


def _path(level: str, tile: int, width: int) -> str:
    digits = str(tile)
    digits = digits.zfill(-(-len(digits) // 3) * 3)
    groups = [digits[at : at + 3] for at in range(0, len(digits), 3)]
    name = "/".join([*(f"x{group}" for group in groups[:-1]), groups[-1]])
    return f"tile/{level}/{name}" + ("" if width == WIDTH else f".p/{width}")

"""The verifier's own implementation of the Merkle tree: inclusion, consistency and roots (RFC 6962).

Part of the verifier: imports nothing of this project. `merkle.py` follows the steps of RFC 9162; here a proof
is evaluated as RFC 6962 defines it, from the root downwards, so that one misunderstanding cannot be in both.
A proof's length must be exact. Untrusted input gives True or False; nothing raises.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, TypeGuard

EMPTY_ROOT: Final = sha256(b"").digest()
MAX_LEAVES: Final = (1 << 63) - 1  # the largest size C2SP's and Go's readers accept
MAX_HASHES: Final = 64  # in a proof for a tree of that size


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def leaf_text(tenant_id: str, sequence_number: int, event_hash: str, record: bytes) -> bytes:
    """The leaf of an event in its tenant's log (ruling 34), from its record as stored."""
    record_hash = "sha256:" + sha256(record).hexdigest()
    lines = ("observatory-audit-leaf/v1", tenant_id, str(sequence_number), event_hash, record_hash)
    return "".join(f"{line}\n" for line in lines).encode()


def inclusion_holds(leaf: object, index: object, size: object, path: object, root: object) -> bool:
    """Whether the leaf hash is at `index` of the tree with this size and root."""
    if not (_is_hash(leaf) and _is_hash(root) and _are_hashes(path)):
        return False
    if not (_is_count(index) and _is_count(size) and index < size):
        return False
    return _root_above(leaf, index, size, list(path)) == root


def consistency_holds(old: object, new: object, old_root: object, new_root: object, path: object) -> bool:
    """Whether the tree of size `new` starts with the one of size `old`; False for 0, which proves nothing."""
    if not (_is_count(old) and _is_count(new) and 0 < old <= new):
        return False
    if old == new:  # nothing to prove: the official vectors accept two equal roots of any length
        return path in ([], ()) and type(old_root) is bytes and old_root == new_root
    if not (_is_hash(old_root) and _is_hash(new_root) and _are_hashes(path)):
        return False
    left = list(path)
    return _roots_of(old, new, old_root, left) == (old_root, new_root) and not left


def _is_hash(value: object) -> TypeGuard[bytes]:
    return type(value) is bytes and len(value) == 32


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= MAX_LEAVES


def _are_hashes(path: object) -> TypeGuard[list[bytes]]:
    return isinstance(path, list | tuple) and len(path) <= MAX_HASHES and all(map(_is_hash, path))


def _left_of(size: int) -> int:
    """RFC 6962 §2.1: the left subtree has the largest power of two smaller than the size."""
    return 1 << ((size - 1).bit_length() - 1)


def _root_above(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    """RFC 6962 §2.1.1: PATH ends with the other half of the whole tree, preceded by PATH in the leaf's
    half."""
    if size == 1:
        return leaf if not path else None
    if not path:
        return None
    other, left = path.pop(), _left_of(size)
    if index < left:
        own = _root_above(leaf, index, left, path)
        return None if own is None else node_hash(own, other)
    own = _root_above(leaf, index - left, size - left, path)
    return None if own is None else node_hash(other, own)


def _roots_of(
    old: int, new: int, known: bytes | None, path: list[bytes]
) -> tuple[bytes, bytes] | tuple[None, None]:
    """RFC 6962 §2.1.2, SUBPROOF: both roots over the same leaves. `known` is its flag: the old root, where
    the old tree is a complete left subtree and so not in the proof."""
    if old == new and known is not None:
        return known, known
    if not path:
        return None, None
    if old == new:
        same = path.pop()
        return same, same
    other, left = path.pop(), _left_of(new)
    if old <= left:
        first, second = _roots_of(old, left, known, path)
        return (None, None) if first is None or second is None else (first, node_hash(second, other))
    first, second = _roots_of(old - left, new - left, None, path)
    if first is None or second is None:
        return None, None
    return node_hash(other, first), node_hash(other, second)


class TreeSpan:
    """The complete subtrees over the leaves from `start` to `end`: a worker's part of the log.

    Adjacent parts are joined to what one worker would have computed, so every leaf is hashed only once.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = self.end = start
        self._trees: list[tuple[int, bytes]] = []  # (height, root), from left to right

    def extend(self, leaves: Iterable[bytes]) -> None:
        self._extend(0, list(leaves))

    def _extend(self, height: int, roots: list[bytes]) -> None:
        """Layer by layer, which is twice as fast as one by one; a node without a sibling here is added
        alone."""
        if roots and self.end >> height & 1:
            self._put(height, roots[0])
            roots = roots[1:]
        if len(roots) > 1:
            pairs = iter(roots)
            joined = [
                sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)
            ]
            self._extend(height + 1, joined)
        if len(roots) & 1:
            self._put(height, roots[-1])

    def join(self, after: "TreeSpan") -> bool:
        """Append the part that begins where this one ends; False when it does not."""
        if after.start != self.end:
            return False
        for height, root in after._trees:
            self._put(height, root)
        return True

    def _put(self, height: int, root: bytes) -> None:
        trees, place = self._trees, self.end >> height
        self.end += 1 << height
        # Join a right half with its left half, unless that lies before our start.
        while place & 1 and trees and trees[-1][0] == height:
            root = sha256(b"\x01" + trees.pop()[1] + root).digest()
            height, place = height + 1, place >> 1
        trees.append((height, root))

    def root(self) -> bytes | None:
        """The root of the log up to `end`; None for a part that does not begin at 0."""
        if self.start:
            return None
        if not self._trees:
            return EMPTY_ROOT
        root = self._trees[-1][1]
        for _, left in self._trees[-2::-1]:
            root = node_hash(left, root)
        return root

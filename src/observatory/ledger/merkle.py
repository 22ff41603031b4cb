"""RFC 6962 Merkle trees: the tenant's log over its audit events, and the tree that seals a session.

Proof functions come in pairs: `*_path` returns which subtrees a proof needs as half-open leaf ranges, so a
reader of tiles can fetch them; `*_proof` takes them from a list; `verify_*` consumes them (RFC 9162 §2.1.3.2
and §2.1.4.2, the same tree as RFC 6962 with its verification written as steps). A proof's length must be
exact: trailing hashes are refused. Verification returns False; it never raises on untrusted input.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256

EMPTY_ROOT = sha256(b"").digest()
LEAF_FORMAT = "observatory-audit-leaf/v1"

Range = tuple[int, int]


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def leaf_data(tenant_id: str, sequence_number: int, event_hash: str, record_hash_text: str) -> bytes:
    """The leaf at index `sequence_number - 1` of the tenant's log (ruling 34): hashes only, no payload."""
    if not tenant_id or "\n" in tenant_id:
        raise ValueError("a tenant id is one non-empty line")
    return f"{LEAF_FORMAT}\n{tenant_id}\n{sequence_number}\n{event_hash}\n{record_hash_text}\n".encode()


class Accumulator:
    """The log's right edge: one hash per set bit of `size`, largest subtree first. O(log n) memory."""

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self.peaks = list(peaks)
        if len(self.peaks) != size.bit_count():
            raise ValueError("an accumulator must have one hash per set bit of its size")

    def append(self, leaf: bytes) -> None:
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        peaks, size = self.peaks, self.size
        for node in leaves:
            carry = size
            while carry & 1:
                node = sha256(b"\x01" + peaks.pop() + node).digest()
                carry >>= 1
            peaks.append(node)
            size += 1
        self.size = size

    def root(self) -> bytes:
        if not self.peaks:
            return EMPTY_ROOT
        node = self.peaks[-1]
        for left in self.peaks[-2::-1]:
            node = node_hash(left, node)
        return node


def root(leaf_hashes: Iterable[bytes]) -> bytes:
    """MTH of RFC 6962 §2.1 over leaves already hashed."""
    tree = Accumulator()
    tree.extend(leaf_hashes)
    return tree.root()


def _split(size: int) -> int:
    """The largest power of two smaller than `size` (RFC 6962 §2.1)."""
    return 1 << (size - 1).bit_length() - 1


def inclusion_path(index: int, size: int) -> list[Range]:
    """Subtrees of PATH(index, D[size]), RFC 6962 §2.1.1, nearest the leaf first."""
    if not 0 <= index < size:
        raise ValueError("the index is beyond the size of the tree")
    start, end, path = 0, size, []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((start, middle))
            start = middle
    return path[::-1]


def consistency_path(old: int, new: int) -> list[Range]:
    """Subtrees of PROOF(old, D[new]), RFC 6962 §2.1.2; from size 0 there is nothing to prove."""
    if not 0 < old <= new:
        raise ValueError("a consistency proof needs an old size of at least 1 and a new size not smaller")
    start, end, path = 0, new, []
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((start, middle))
            start = middle
    # SUBPROOF's flag b: the verifier already has the old root when that is the complete left subtree.
    if start:
        path.append((start, end))
    return path[::-1]


def inclusion_proof(leaf_hashes: Sequence[bytes], index: int) -> list[bytes]:
    return [root(leaf_hashes[start:end]) for start, end in inclusion_path(index, len(leaf_hashes))]


def consistency_proof(leaf_hashes: Sequence[bytes], old: int) -> list[bytes]:
    return [root(leaf_hashes[start:end]) for start, end in consistency_path(old, len(leaf_hashes))]


def _are_hashes(*values: bytes) -> bool:
    """A shorter value could shift the boundary between left and right inside a node's preimage."""
    return all(len(value) == 32 for value in values)


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root_hash: bytes) -> bool:
    """RFC 9162 §2.1.3.2."""
    if not 0 <= index < size or not _are_hashes(leaf, root_hash, *proof):
        return False
    fn, sn, node = index, size - 1, leaf
    for sibling in proof:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            node = node_hash(sibling, node)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = node_hash(node, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and node == root_hash


def verify_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """RFC 9162 §2.1.4.2; returns False for size 0, since every tree extends the empty one."""
    if not 0 < old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    if not _are_hashes(old_root, new_root, *proof):
        return False
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        return False
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            second = node_hash(second, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and first == old_root and second == new_root

"""The hashes of the decision trail: a session's genesis, its chain of records (ζ), the tree over them (η).

Rulings 37 and 38. `content_hash` covers the RFC 8785 text of a record's eleven fields, `chain_hash`
the raw 32 bytes of it and of the one before, and a leaf of the sealed tree both hashes of a record. What is
stored is hashed as it is stored: `content`, `references` and `audit_event_ids` are text that is hashed byte
for byte, so that not even a blank can be inserted; each is one complete JSON value, so that the hashed text
is unambiguous. Pure: takes rows, returns results.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.ledger.canonical import check_subset, encode_checked, jcs, jcs_with_floats
from observatory.ledger.merkle import Range, leaf_hash, node_hash

TYPES: Final = frozenset({"plan", "analysis", "decision", "reflection"})
_PREFIX: Final = "sha256:"


class Thought(msgspec.Struct, frozen=True, kw_only=True):
    """The fields `content_hash` covers; the three `bytes` are RFC 8785 text."""

    record_id: str
    session_id: str
    task_id: str
    index: int
    type: str
    content: bytes
    author: str
    created_at: str
    references: bytes = b"[]"
    audit_event_ids: bytes = b"[]"
    predecessor_chain_hash: str | None = None


class ThoughtHashes(msgspec.Struct, frozen=True):
    """The hashes of a record, in text form."""

    content_hash: str
    chain_hash: str
    parent_chain_hash: str


def text_of(digest: bytes) -> str:
    return _PREFIX + digest.hex()


def digest_of(text: str) -> bytes:
    """The 32 bytes of a hash in text form; ValueError for any other text."""
    digest = bytes.fromhex(text[len(_PREFIX) :])
    if len(digest) != 32 or text_of(digest) != text:
        raise ValueError("a hash must be sha256: and 64 lower-case hex digits")
    return digest


def genesis(caller: str, session_id: str, started_at: str) -> bytes:
    return sha256(jcs({"caller": caller, "session_id": session_id, "started_at": started_at})).digest()


def canonical(thought: Thought, bare: bool = False) -> bytes:
    """The RFC 8785 text that is hashed, or with `bare` what remains of it after shredding; ValueError if
    there is none."""
    fields: dict[str, Any] = {
        "record_id": thought.record_id,
        "session_id": thought.session_id,
        "task_id": thought.task_id,
        "index": thought.index,
        "type": thought.type,
        "author": thought.author,
        "created_at": thought.created_at,
        "predecessor_chain_hash": thought.predecessor_chain_hash,
    }
    check_subset(fields.values())
    for name in ("references", "audit_event_ids") if bare else ("content", "references", "audit_event_ids"):
        fields[name] = msgspec.Raw(_one_value(getattr(thought, name)))
    return encode_checked(fields)


def _one_value(text: bytes) -> bytes:
    """Require one complete JSON value: otherwise text could move between fields without changing the hash."""
    try:
        is_one = jcs_with_floats(msgspec.json.decode(text)) == text
    except (msgspec.DecodeError, RecursionError):
        is_one = False
    if not is_one:
        raise ValueError("a field of a thought record is not one JSON value in RFC 8785 form")
    return text


def content_hash(thought: Thought) -> bytes:
    return sha256(canonical(thought)).digest()


def chain_hash(content: bytes, parent: bytes) -> bytes:
    """Over the raw digests, never their text form."""
    return sha256(content + parent).digest()


def link(thought: Thought, parent_chain_hash: str) -> ThoughtHashes:
    """Link a record to its parent: the record before it, or for the first one the genesis."""
    content = content_hash(thought)
    return ThoughtHashes(
        text_of(content), text_of(chain_hash(content, digest_of(parent_chain_hash))), parent_chain_hash
    )


def relinked(thought: Thought, stored: ThoughtHashes, parent_chain_hash: str) -> bool:
    """Whether a shredded record is linked to its parent by its stored content_hash. ValueError if it has no
    canonical text."""
    canonical(thought, bare=True)
    content, parent = digest_of(stored.content_hash), digest_of(parent_chain_hash)
    return stored == ThoughtHashes(
        stored.content_hash, text_of(chain_hash(content, parent)), parent_chain_hash
    )


def leaf(hashes: ThoughtHashes) -> bytes:
    """The leaf hash of a record in the tree that seals its session."""
    return leaf_hash(digest_of(hashes.content_hash) + digest_of(hashes.chain_hash))


class ThoughtChain:
    """Recomputes the stored records of one session in order; stops at the first broken one."""

    def __init__(self, session_id: str, genesis_hash: str, predecessor_chain_hash: str | None) -> None:
        self._session_id = session_id
        self._predecessor = predecessor_chain_hash
        self.last_chain_hash = genesis_hash
        self.leaves: list[bytes] = []
        self.broken: int | None = None

    def step(self, thought: Thought, stored: ThoughtHashes, shredded: bool = False) -> bool:
        """Whether this record is the next one and unchanged; after a False all further results are False.

        The content_hash of a shredded record is not recomputed: the caller compares it with the event that
        recorded it.
        """
        if self.broken is None and not self._holds(thought, stored, shredded):
            self.broken = len(self.leaves)
        if self.broken is not None:
            return False
        self.leaves.append(leaf(stored))
        self.last_chain_hash = stored.chain_hash
        return True

    def _holds(self, thought: Thought, stored: ThoughtHashes, shredded: bool) -> bool:
        index = len(self.leaves)
        expected = self._predecessor if index == 0 else None
        if thought.index != index or thought.session_id != self._session_id or thought.type not in TYPES:
            return False
        if thought.predecessor_chain_hash != expected:
            return False
        try:
            if not shredded:
                return link(thought, self.last_chain_hash) == stored
            return not thought.content and relinked(thought, stored, self.last_chain_hash)
        except (ValueError, TypeError):  # the stored data has no canonical text
            return False


def levels(leaf_hashes: Sequence[bytes]) -> list[list[bytes]]:
    """Every node of the sealed tree, leaves first; the last level is its root alone.

    A node without a sibling is its parent too, so node `i` of level `l` is the tree hash of the leaves
    from `i << l` on, at most `1 << l` of them (RFC 6962 §2.1).
    """
    if not leaf_hashes:
        raise ValueError("an empty session has no tree")
    levels = [list(leaf_hashes)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = [node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        levels.append(pairs + below[len(pairs) * 2 :])
    return levels


def place_of(span: Range) -> tuple[int, int]:
    """(level, index) of the node of `levels` that covers a range of a proof's path."""
    start, end = span
    level = (end - start - 1).bit_length()
    return level, start >> level

"""The hashes of the decision trail: a session's genesis, its chain of records (ζ), the tree over them (η).

Rulings 37 and 38 in code. `content_hash` covers the RFC 8785 text of a record's eleven fields, `chain_hash`
the raw 32 bytes of it and of the one before, and a leaf of the sealed tree both hashes of a record. What is
stored is hashed as it is stored: `content`, `references` and `audit_event_ids` are text that goes into the
hash byte for byte, so that not even a blank can be put into them; each is one whole JSON value, so that the
hashed text can be read in one way only. Pure: rows come in, verdicts go out.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.ledger.canonical import check_subset, encode_checked, jcs, jcs_of_words
from observatory.ledger.merkle import Range, leaf_hash, node_hash

TYPES: Final = frozenset({"plan", "analysis", "decision", "reflection"})
_PREFIX: Final = "sha256:"


class Thought(msgspec.Struct, frozen=True, kw_only=True):
    """What `content_hash` covers; the three `bytes` are RFC 8785 text."""

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


class Hashes(msgspec.Struct, frozen=True):
    """As a record carries them, in the one spelling of a hash."""

    content_hash: str
    chain_hash: str
    parent_chain_hash: str


def text_of(digest: bytes) -> str:
    return _PREFIX + digest.hex()


def digest_of(text: str) -> bytes:
    """The 32 bytes of a hash's one spelling; ValueError for any other text."""
    digest = bytes.fromhex(text[len(_PREFIX) :])
    if len(digest) != 32 or text_of(digest) != text:
        raise ValueError("a hash is sha256: and 64 lower-case hex digits")
    return digest


def genesis(caller: str, session_id: str, started_at: str) -> bytes:
    return sha256(jcs({"caller": caller, "session_id": session_id, "started_at": started_at})).digest()


def canonical(thought: Thought, bare: bool = False) -> bytes:
    """The RFC 8785 text that is hashed, or with `bare` what is left of it when the words were shredded;
    ValueError for what has none."""
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
    """Else words could be moved over the border of two fields, and the hash would be the same."""
    try:
        is_one = jcs_of_words(msgspec.json.decode(text)) == text
    except (msgspec.DecodeError, RecursionError):
        is_one = False
    if not is_one:
        raise ValueError("a part of a thought record is not one JSON value in its RFC 8785 form")
    return text


def content_hash(thought: Thought) -> bytes:
    return sha256(canonical(thought)).digest()


def chain_hash(content: bytes, parent: bytes) -> bytes:
    """Of raw values, never of their spelling."""
    return sha256(content + parent).digest()


def link(thought: Thought, parent_chain_hash: str) -> Hashes:
    """Put a record after its parent: the record before it, or for the first one the genesis."""
    content = content_hash(thought)
    return Hashes(
        text_of(content), text_of(chain_hash(content, digest_of(parent_chain_hash))), parent_chain_hash
    )


def relinked(thought: Thought, stored: Hashes, parent_chain_hash: str) -> bool:
    """Whether a record without its words follows its parent by the content_hash it has. ValueError for what
    has no canonical text."""
    canonical(thought, bare=True)
    content, parent = digest_of(stored.content_hash), digest_of(parent_chain_hash)
    return stored == Hashes(stored.content_hash, text_of(chain_hash(content, parent)), parent_chain_hash)


def leaf(hashes: Hashes) -> bytes:
    """The leaf hash of a record in the tree that seals its session."""
    return leaf_hash(digest_of(hashes.content_hash) + digest_of(hashes.chain_hash))


class Walk:
    """Stored records of one session in order, recomputed one by one; it stops at the first that is broken."""

    def __init__(self, session_id: str, genesis_hash: str, predecessor_chain_hash: str | None) -> None:
        self._session_id = session_id
        self._predecessor = predecessor_chain_hash
        self.last_chain_hash = genesis_hash
        self.leaves: list[bytes] = []
        self.broken: int | None = None

    def step(self, thought: Thought, stored: Hashes, shredded: bool = False) -> bool:
        """Whether this record is the next one and just what was written; after a False nothing counts.

        Of one whose words were shredded the content_hash is not made again: who asks holds it against the
        event that told of it.
        """
        if self.broken is None and not self._holds(thought, stored, shredded):
            self.broken = len(self.leaves)
        if self.broken is not None:
            return False
        self.leaves.append(leaf(stored))
        self.last_chain_hash = stored.chain_hash
        return True

    def _holds(self, thought: Thought, stored: Hashes, shredded: bool) -> bool:
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
        except (ValueError, TypeError):  # what was put there has no canonical text at all
            return False


def levels(leaf_hashes: Sequence[bytes]) -> list[list[bytes]]:
    """Every node of the sealed tree, leaves first; the last level is its root alone.

    A node without a sibling is its parent too, so node `i` of level `l` is the tree hash of the leaves
    from `i << l` on, as many as there are up to `1 << l` (RFC 6962 §2.1).
    """
    if not leaf_hashes:
        raise ValueError("an empty session has no tree")
    made = [list(leaf_hashes)]
    while len(made[-1]) > 1:
        below = made[-1]
        pairs = [node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
        made.append(pairs + below[len(pairs) * 2 :])
    return made


def place_of(span: Range) -> tuple[int, int]:
    """(level, index) of the node of `levels` that covers a range of a proof's path."""
    start, end = span
    level = (end - start - 1).bit_length()
    return level, start >> level

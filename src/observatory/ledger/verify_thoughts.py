"""A session's thought records and its seal, recomputed from their exact bytes (rulings 37 and 38).

Of the verifier's family: imports nothing of ours but that family. Each record must be its own RFC 8785 text,
stand where its index says, hash to what is told of it and be linked to the record before it, the first one
to the session's genesis. The seal is RFC 6962 over content_hash and chain_hash of every record. What does
not hold is returned as a sentence (`str`), never raised; sentences name a record by its place only.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger.verify_log import Span, inclusion_holds, leaf_hash
from observatory.ledger.verify_words import canonical_words

TYPES: Final = ("analysis", "decision", "plan", "reflection")
_TEXTS: Final = ("record_id", "session_id", "task_id", "type", "author", "created_at")
_LISTS: Final = ("references", "audit_event_ids")
_MEMBERS: Final = frozenset((*_TEXTS, *_LISTS, "index", "content", "predecessor_chain_hash"))


class Thought(NamedTuple):
    """One record that verified, with its hashes as they came out."""

    record: Mapping[str, Any]
    content_hash: bytes
    chain_hash: bytes
    shredded_by: int | None = None  # the event that ordered its words to go: then `record` is without them

    @property
    def leaf(self) -> bytes:
        return leaf_hash(self.content_hash + self.chain_hash)


class Stated(NamedTuple):
    """A record as it was handed over: its exact bytes, and the hashes told of it ("sha256:…")."""

    record: bytes
    content_hash: str
    parent_chain_hash: str
    chain_hash: str
    shredded_by: int | None = None


def text_of(digest: bytes) -> str:
    return "sha256:" + digest.hex()


def genesis_of(caller: str, session_id: str, started_at: str) -> bytes:
    """SHA-256 of the RFC 8785 text of the three; its keys are in order, and strings need no more."""
    members = {"caller": caller, "session_id": session_id, "started_at": started_at}
    return sha256(msgspec.json.encode(members)).digest()


class Verified(NamedTuple):
    """Every record that held, and the sentence that names the first that did not."""

    thoughts: list[Thought]
    broken: str | None


def check_records(session_id: str, genesis: bytes, stated: Sequence[Stated]) -> Verified:
    """All records of a session in order, from its genesis."""
    thoughts: list[Thought] = []
    parent = genesis
    for place, one in enumerate(stated):
        found = check_record(session_id, place, parent, one)
        if isinstance(found, str):
            return Verified(thoughts, found)
        thoughts.append(found)
        parent = found.chain_hash
    return Verified(thoughts, None)


def check_record(session_id: str, place: int, parent: bytes, stated: Stated) -> Thought | str:
    """One record at its place, after the chain hash (or genesis) before it."""
    record = canonical_words(stated.record)
    if record is None:
        return f"The bytes of record {place} are not the RFC 8785 form of a thought record."
    gone = stated.shredded_by is not None
    if not _is_whole(record, gone):
        return f"Record {place} has not the members of a thought record."
    if record["index"] != place:
        return f"Another record stands where record {place} must be."
    if record["session_id"] != session_id:
        return f"Record {place} names another session."
    # Of shredded words nothing can be hashed again: what is told of them must be told by the log as well.
    content = _digest_of(stated.content_hash) if gone else sha256(stated.record).digest()
    if content is None or stated.content_hash != text_of(content):
        return f"content_hash of record {place} is not the hash of its content."
    if stated.parent_chain_hash != text_of(parent):
        return f"Record {place} is not linked to the one before it."
    chain = sha256(content + parent).digest()
    if stated.chain_hash != text_of(chain):
        return f"chain_hash of record {place} is not that of its content and the record before."
    return Thought(record, content, chain, stated.shredded_by)


def _digest_of(text: str) -> bytes | None:
    digits = text.removeprefix("sha256:")
    return bytes.fromhex(digits) if len(digits) == 64 and _is_hex(digits) else None


def _is_whole(record: Mapping[str, Any], gone: bool) -> bool:
    return (
        record.keys() == (_MEMBERS - {"content"} if gone else _MEMBERS)
        and all(type(record[name]) is str for name in _TEXTS)
        and all(type(record[name]) is list for name in _LISTS)
        and all(type(one) is str for name in _LISTS for one in record[name])
        and type(record["index"]) is int
        and isinstance(record["predecessor_chain_hash"], str | None)
        and record["type"] in TYPES
    )


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the event of a sealing says."""

    session_id: str
    genesis: str
    n_records: int
    last_chain_hash: str
    root: str


def check_seal(seal: Seal, session_id: str, genesis: bytes, thoughts: Sequence[Thought]) -> str | None:
    """None when these records, all of them and in this order, are what was sealed."""
    if seal.session_id != session_id:
        return "The seal is of another session."
    if seal.genesis != text_of(genesis):
        return "The seal begins at another genesis than the session's."
    if not thoughts:
        return "A session without records cannot have been sealed."
    if thoughts[-1].record["type"] != "reflection":
        return "A sealed session ends with a reflection, and this one does not."
    if seal.n_records != len(thoughts):
        return f"The seal covers {seal.n_records} records; there are {len(thoughts)}."
    if seal.last_chain_hash != text_of(thoughts[-1].chain_hash):
        return "The seal's last_chain_hash is not that of the last record."
    tree = Span()
    tree.extend(thought.leaf for thought in thoughts)
    if seal.root != text_of(tree.root() or b""):
        return "The sealed root is not that of these records."
    return None


def check_seal_proof(seal: Seal, place: int, thought: Thought, path: object) -> bool:
    """Whether the path leads from one record to the sealed root."""
    root = _digest_of(seal.root) or b""
    return inclusion_holds(thought.leaf, place, seal.n_records, path, root)


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)

"""A session's thought records and its seal, recomputed from their exact bytes (rulings 37 and 38).

Part of the verifier: imports nothing of this project except other verifier modules. Each record must be in
RFC 8785 form, be at the position of its index, match its stated hash and be linked to the record before it,
the first one to the session's genesis. The seal is RFC 6962 over content_hash and chain_hash of every record.
A failure is returned as a sentence (`str`), never raised; sentences name a record by its position only.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger.verify_canonical import canonical_thought
from observatory.ledger.verify_log import TreeSpan, inclusion_holds, leaf_hash

TYPES: Final = ("analysis", "decision", "plan", "reflection")
_TEXTS: Final = ("record_id", "session_id", "task_id", "type", "author", "created_at")
_LISTS: Final = ("references", "audit_event_ids")
_MEMBERS: Final = frozenset((*_TEXTS, *_LISTS, "index", "content", "predecessor_chain_hash"))


class VerifiedThought(NamedTuple):
    """One verified record, with its recomputed hashes."""

    record: Mapping[str, Any]
    content_hash: bytes
    chain_hash: bytes
    shredded_by: int | None = None  # the event that ordered its shredding: then `record` has no content

    @property
    def leaf(self) -> bytes:
        return leaf_hash(self.content_hash + self.chain_hash)


class StatedThought(NamedTuple):
    """A record as given: its exact bytes, and its stated hashes ("sha256:…")."""

    record: bytes
    content_hash: str
    parent_chain_hash: str
    chain_hash: str
    shredded_by: int | None = None


def text_of(digest: bytes) -> str:
    return "sha256:" + digest.hex()


def genesis_of(caller: str, session_id: str, started_at: str) -> bytes:
    """SHA-256 of the RFC 8785 text of the three; its keys are sorted, and strings need nothing else."""
    members = {"caller": caller, "session_id": session_id, "started_at": started_at}
    return sha256(msgspec.json.encode(members)).digest()


class VerifiedThoughts(NamedTuple):
    """The valid records, and the sentence that names the first invalid one."""

    thoughts: list[VerifiedThought]
    broken: str | None


def check_records(session_id: str, genesis: bytes, stated: Sequence[StatedThought]) -> VerifiedThoughts:
    """All records of a session in order, from its genesis."""
    thoughts: list[VerifiedThought] = []
    parent = genesis
    for place, one in enumerate(stated):
        checked = check_record(session_id, place, parent, one)
        if isinstance(checked, str):
            return VerifiedThoughts(thoughts, checked)
        thoughts.append(checked)
        parent = checked.chain_hash
    return VerifiedThoughts(thoughts, None)


def check_record(session_id: str, place: int, parent: bytes, stated: StatedThought) -> VerifiedThought | str:
    """Check one record at its position, after the chain hash (or genesis) before it."""
    record = canonical_thought(stated.record)
    if record is None:
        return f"The bytes of record {place} are not the RFC 8785 form of a thought record."
    gone = stated.shredded_by is not None
    if not _is_whole(record, gone):
        return f"Record {place} does not have the members of a thought record."
    if record["index"] != place:
        return f"Found another record where record {place} must be."
    if record["session_id"] != session_id:
        return f"Record {place} names another session."
    # Shredded content cannot be hashed again: its stated hash must be confirmed by the log.
    content = _digest_of(stated.content_hash) if gone else sha256(stated.record).digest()
    if content is None or stated.content_hash != text_of(content):
        return f"content_hash of record {place} is not the hash of its content."
    if stated.parent_chain_hash != text_of(parent):
        return f"Record {place} is not linked to the one before it."
    chain = sha256(content + parent).digest()
    if stated.chain_hash != text_of(chain):
        return f"chain_hash of record {place} is not that of its content and the record before."
    return VerifiedThought(record, content, chain, stated.shredded_by)


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


class SealStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a sealing event."""

    session_id: str
    genesis: str
    n_records: int
    last_chain_hash: str
    root: str


def check_seal(
    seal: SealStatement, session_id: str, genesis: bytes, thoughts: Sequence[VerifiedThought]
) -> str | None:
    """None when exactly these records, in this order, were sealed; otherwise a sentence."""
    if seal.session_id != session_id:
        return "The seal belongs to another session."
    if seal.genesis != text_of(genesis):
        return "The seal has another genesis than the session."
    if not thoughts:
        return "A session without records cannot have been sealed."
    if thoughts[-1].record["type"] != "reflection":
        return "A sealed session must end with a reflection; this one does not."
    if seal.n_records != len(thoughts):
        return f"The seal covers {seal.n_records} records; there are {len(thoughts)}."
    if seal.last_chain_hash != text_of(thoughts[-1].chain_hash):
        return "The seal's last_chain_hash is not that of the last record."
    tree = TreeSpan()
    tree.extend(thought.leaf for thought in thoughts)
    if seal.root != text_of(tree.root() or b""):
        return "The sealed root is not that of these records."
    return None


def check_seal_proof(seal: SealStatement, place: int, thought: VerifiedThought, path: object) -> bool:
    """Whether the path leads from one record to the sealed root."""
    root = _digest_of(seal.root) or b""
    return inclusion_holds(thought.leaf, place, seal.n_records, path, root)


def _is_hex(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)

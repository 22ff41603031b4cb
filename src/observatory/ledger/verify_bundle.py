"""An evidence bundle of one session, checked by someone who trusts nothing in it but the key they pinned.

Of the verifier's family: imports nothing of ours but that family. Each of `CHECKS` is answered by itself:
held, broken with a sentence that names the first break, or not checked because the bundle holds nothing to
check it by. A bundle may come from anybody: whoever reads the archive bounds it, and nothing in it raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any, Final

import msgspec

from observatory.ledger.verify import GENESIS, ChainCheck, canonical_object
from observatory.ledger.verify_evidence import (
    FORMAT,
    Consistency,
    EventLine,
    Leaf,
    LogProof,
    Manifest,
    Recorded,
    Said,
    SealProof,
    Session,
    decoded,
    hashes_of,
    leaf_of,
    printable,
    readable,
    string,
    trace_of,
)
from observatory.ledger.verify_log import consistency_holds, inclusion_holds, leaf_hash, leaf_text
from observatory.ledger.verify_note import Checkpoint, Key, read_checkpoint, read_key, read_proof, unsigned
from observatory.ledger.verify_thoughts import (
    Seal,
    Stated,
    Thought,
    check_records,
    check_seal,
    check_seal_proof,
    genesis_of,
    text_of,
)

CHECKS: Final = (
    "manifest",
    "chain",
    "records",
    "seal",
    "inclusion",
    "consistency",
    "signature",
    "anchored",
    "missing_tail",
)
_NEEDED: Final = (
    "checkpoint",
    "vkeys.txt",
    "events.jsonl",
    "proofs.jsonl",
    "anchor.tlog-proof",
    "anchor.leaf",
)
# Whatever is read is a few times as large in memory: lines one by one, other files at once.
_MOST_OF_A_LINE: Final = 16 << 20
_MOST_OF_A_FILE: Final = 1 << 20


class Break(msgspec.Struct, frozen=True):
    what: str
    sentence: str


class Found(msgspec.Struct, frozen=True):
    """`breaks` has the first break of each check that is broken. `pinned`: by a key the caller brought."""

    valid: bool
    tenant_id: str | None
    session_id: str | None
    origin: str | None
    tree_size: int | None
    checkpoint: str | None  # the signed text
    older_size: int | None
    older_checkpoint: str | None
    events: int
    records: int
    pinned: bool
    checks: dict[str, bool | None]
    breaks: list[Break]
    shredded: int = 0  # records whose words are gone by an order


def check_bundle(files: Mapping[str, bytes], vkeys: Sequence[str] = ()) -> Found:
    """Everything the files of a bundle prove; `vkeys` are held from elsewhere and replace those inside."""
    check = _Check(files, vkeys)
    check.run()
    return check.found()


class _Check:
    def __init__(self, files: Mapping[str, bytes], vkeys: Sequence[str]) -> None:
        self._files, self._vkeys = files, vkeys
        self._held: dict[str, bool | None] = dict.fromkeys(CHECKS)
        self._breaks: dict[str, str] = {}
        self._manifest: Manifest | None = None
        self._checkpoint: Checkpoint | None = None
        self._older: Checkpoint | None = None
        self._leaves: list[Leaf] = []
        self._thoughts: list[Thought] = []
        self._genesis: bytes | None = None
        self._seal: Seal | None = None

    # ── what is said of each check ──

    def _break(self, what: str, sentence: str) -> None:
        self._held[what] = False
        self._breaks.setdefault(what, sentence)

    def _hold(self, what: str) -> None:
        if self._held[what] is None:
            self._held[what] = True

    def found(self) -> Found:
        manifest, note = self._manifest, self._checkpoint
        return Found(
            valid=not self._breaks,
            tenant_id=manifest.tenant_id if manifest else None,
            session_id=manifest.session_id if manifest else None,
            origin=note.origin if note else None,
            tree_size=note.size if note else None,
            checkpoint=note.text if note else None,
            older_size=self._older.size if self._older else None,
            older_checkpoint=self._older.text if self._older else None,
            events=len(self._leaves),
            records=len(self._thoughts),
            pinned=bool(self._vkeys),
            checks=dict(self._held),
            breaks=[Break(name, self._breaks[name]) for name in CHECKS if name in self._breaks],
            shredded=sum(thought.shredded_by is not None for thought in self._thoughts),
        )

    def run(self) -> None:
        self._read_manifest()
        if self._manifest is None:
            return
        self._check_events(self._manifest.tenant_id)
        keys = self._keys()
        self._check_signature(keys)
        self._check_inclusion(keys)
        self._check_consistency(keys)
        self._check_thoughts(self._manifest.session_id)
        self._check_anchor(self._manifest.session_id)

    # ── the files ──

    def _read_manifest(self) -> None:
        for name, data in self._files.items():
            if len(data) > _MOST_OF_A_FILE and not name.endswith(".jsonl"):
                return self._break("manifest", f"{printable(name)} is larger than any of its name.")
        manifest = decoded(self._files.get("manifest.json"), Manifest)
        if manifest is None or manifest.format != FORMAT:
            return self._break("manifest", f"manifest.json is not one of {FORMAT}.")
        self._manifest = manifest
        listed = {file.name: file for file in manifest.files}
        for name in _NEEDED:
            if name not in listed:
                self._break("manifest", f"The manifest does not name {name}.")
        for name, file in listed.items():
            held = self._files.get(name)
            if held is None:
                self._break("manifest", f"{printable(name)} is named by the manifest and is not there.")
            elif len(held) != file.bytes or text_of(sha256(held).digest()) != file.sha256:
                self._break("manifest", f"{printable(name)} is not the file the manifest was written for.")
        for name in self._files:
            if name not in listed and name != "manifest.json":
                self._break("manifest", f"{printable(name)} is in the bundle and not named by its manifest.")
        for name, count in manifest.counts.items():
            lines = self._files.get(f"{name}.jsonl", b"").count(b"\n")
            if lines != count:
                self._break("manifest", f"The manifest says {count} {printable(name)}; there are {lines}.")
        return self._hold("manifest")

    def _lines(self, name: str, kind: Any, what: str) -> Iterator[Any]:
        """Line by line; what cannot be read breaks the check it is for, and ends it."""
        for number, line in enumerate(BytesIO(self._files.get(name, b"")), 1):
            read = decoded(line, kind) if len(line) <= _MOST_OF_A_LINE else None
            if read is None:
                return self._break(what, f"Line {number} of {name} cannot be read.")
            yield read
        return None

    # ── the events ──

    def _check_events(self, tenant_id: str) -> None:
        chain: ChainCheck | None = None
        expected = 0
        for event in self._lines("events.jsonl", EventLine, "chain"):
            number, raw = event.sequence_number, event.record.encode()
            if number < expected or number < 1:
                return self._break("chain", f"Event {number} stands after event {expected - 1}.")
            record = canonical_object(raw)
            if record is None:
                return self._break("chain", f"The bytes of event {number} are not those of an audit event.")
            if chain is None or number != expected:
                # Between the session's events stand those of others: each run is linked within itself.
                chain = ChainCheck(tenant_id, number - 1, _previous(record, number))
            if not chain.feed([(number, raw, None)]):
                broken = chain.result().first_break
                return self._break("chain", broken.sentence if broken else f"Event {number} is not valid.")
            event_hash = record["hash_chain"]["event_hash"]
            self._leaves.append(leaf_of(number, record, leaf_text(tenant_id, number, event_hash, raw)))
            expected = number + 1
        if self._leaves:
            self._hold("chain")
        return None

    # ── the log ──

    def _keys(self) -> list[Key]:
        """Those held from elsewhere; without any, those the bundle brings with it."""
        keys = []
        for vkey in self._vkeys or self._inside():
            key = read_key(vkey)
            if isinstance(key, str):
                self._break("signature", key)
            else:
                keys.append(key)
        return keys

    def _inside(self) -> list[str]:
        return readable(self._files.get("vkeys.txt", b"")).splitlines()

    def _check_signature(self, keys: Sequence[Key]) -> None:
        note = self._files.get("checkpoint", b"")
        signed = read_checkpoint(note, keys)
        if isinstance(signed, str):
            self._break("signature", signed)
            # Without a good signature what it says is still compared, as what the bundle claims.
            claimed = unsigned(note)
            self._checkpoint = None if isinstance(claimed, str) else claimed
        else:
            self._checkpoint = signed
            self._hold("signature")
        if self._vkeys and not {vkey.strip() for vkey in self._vkeys} & set(self._inside()):
            self._break("signature", "vkeys.txt does not hold the key that was given.")
        if self._checkpoint and self._manifest and self._checkpoint.size != self._manifest.tree_size:
            self._break("manifest", "The manifest names another size of the log than its checkpoint.")

    def _check_inclusion(self, keys: Sequence[Key]) -> None:
        note = self._checkpoint
        if note is None:
            return None
        proofs = self._lines("proofs.jsonl", LogProof, "inclusion")
        for leaf in self._leaves:
            number, proof = leaf.sequence_number, next(proofs, None)
            if proof is None or proof.sequence_number != number:
                return self._break("inclusion", f"The proof of event {number} is not where it must be.")
            path = hashes_of(proof)
            if not inclusion_holds(leaf_hash(leaf.text), number - 1, note.size, path, note.root):
                return self._break("inclusion", f"Event {number} is not in the log that was signed.")
        if next(proofs, None) is not None and self._held["chain"]:
            return self._break("inclusion", "There are proofs of events that are not here.")
        text = self._files.get("anchor.leaf", b"")
        if text not in {leaf.text for leaf in self._leaves}:
            return self._break("inclusion", "anchor.leaf is no leaf of these events.")
        proven = read_proof(self._files.get("anchor.tlog-proof", b""), text, keys)
        if isinstance(proven, str) and self._held["signature"]:
            return self._break("inclusion", f"anchor.tlog-proof: {proven}")
        if self._leaves:
            self._hold("inclusion")
        return None

    def _check_consistency(self, keys: Sequence[Key]) -> None:
        if "consistency.json" not in self._files or self._checkpoint is None:
            return None
        given = decoded(self._files["consistency.json"], Consistency)
        if given is None:
            return self._break("consistency", "consistency.json cannot be read.")
        older, newer = read_checkpoint(given.checkpoint.encode(), keys), self._checkpoint
        if isinstance(older, str):
            return self._break("consistency", f"The older checkpoint: {older}")
        if older.origin != newer.origin:
            return self._break("consistency", "The older checkpoint is of another log.")
        if not consistency_holds(older.size, newer.size, older.root, newer.root, hashes_of(given)):
            return self._break("consistency", "The log does not go on from its older checkpoint.")
        self._older = older
        return self._hold("consistency")

    # ── the session ──

    def _check_thoughts(self, session_id: str) -> None:
        session = decoded(self._files.get("session.json"), Session)
        stated: list[Stated] = []
        for one in self._lines("thoughts.jsonl", Recorded, "records"):
            if one.index != len(stated):
                self._break("records", "The lines of thoughts.jsonl are not numbered in order.")
            hashes = one.content_hash, one.parent_chain_hash, one.chain_hash
            stated.append(Stated(one.record.encode(), *hashes, one.shredded_by))
        if session is None:
            if stated or "session.json" in self._files:
                self._break("records", "session.json, which the records begin with, cannot be read.")
            return None
        self._genesis = genesis_of(session.caller, session.session_id, session.started_at)
        if session.session_id != session_id or session.genesis != text_of(self._genesis):
            return self._break("records", "The genesis is not that of this session.")
        verified = check_records(session_id, self._genesis, stated)
        self._thoughts = verified.thoughts
        if verified.broken is not None:
            self._break("records", verified.broken)
        elif stated:
            self._hold("records")
        return self._check_seal(session_id, self._genesis)

    def _check_seal(self, session_id: str, genesis: bytes) -> None:
        if "seal.json" not in self._files:
            if "seal_proofs.jsonl" in self._files:
                self._break("seal", "There are proofs of records in a seal, and no seal.")
            return None
        self._seal = seal = decoded(self._files["seal.json"], Seal)
        if seal is None:
            return self._break("seal", "seal.json cannot be read.")
        broken = check_seal(seal, session_id, genesis, self._thoughts)
        if broken is not None:
            return self._break("seal", broken)
        proofs = self._lines("seal_proofs.jsonl", SealProof, "seal")
        for place, thought in enumerate(self._thoughts):
            proof = next(proofs, None)
            if proof is None:
                return self._break("seal", "There is not one proof in the seal for each record.")
            if proof.index != place or not check_seal_proof(seal, place, thought, hashes_of(proof)):
                return self._break("seal", f"The proof of record {place} does not lead to the sealed root.")
        if next(proofs, None) is not None:
            return self._break("seal", "There are proofs of records that are not here.")
        return self._hold("seal")

    # ── what the events say of the session ──

    def _check_anchor(self, session_id: str) -> None:
        said = Said(session_id, self._leaves)
        self._check_belonging(session_id)
        if self._genesis is not None:
            self._compare_events(said)
            self._check_tail(said)
        elif said.genesis is not None or said.recorded:
            self._break("records", "Events tell of a session of thoughts, and there is none here.")
        if said.sealed is not None and self._seal is None:
            self._break("seal", "An event says that the session was sealed, and there is no seal.")
        # What is told of, and not here as it was, is anchored nowhere.
        whole = self._held["records"] is not False and self._held["seal"] is not False
        if self._genesis is not None and whole and self._held["inclusion"] and self._held["signature"]:
            self._hold("anchored")

    def _check_belonging(self, session_id: str) -> None:
        """Events of another session under this one's name would be true, and prove nothing of it."""
        trace_id = trace_of(session_id)
        named = {one for thought in self._thoughts for one in thought.record["audit_event_ids"]}
        for leaf in self._leaves:
            if not leaf.is_of(session_id, trace_id) and leaf.event_id not in named:
                return self._break("anchored", f"Event {leaf.sequence_number} is not of this session.")
        return None

    def _compare_events(self, said: Said) -> None:
        if said.genesis != text_of(self._genesis or b""):
            self._break("anchored", "No event of the log tells of this session's genesis.")
        for place, thought in enumerate(self._thoughts):
            told = said.recorded.get(thought.record["record_id"])
            if told != (text_of(thought.content_hash), text_of(thought.chain_hash)):
                return self._break("anchored", f"No event of the log tells of record {place} as it is here.")
            if thought.shredded_by is not None and not said.ordered(thought):
                return self._break("records", f"No event of the log orders words of record {place} to go.")
        if self._seal is not None and said.sealed != self._seal:
            self._break("anchored", "No event of the log tells of this seal.")
        return None

    def _check_tail(self, said: Said) -> None:
        here = {thought.record["record_id"] for thought in self._thoughts}
        if said.recorded.keys() - here:
            return self._break("missing_tail", "Events tell of more records than are here.")
        here_too = {leaf.event_id for leaf in self._leaves}
        for place, thought in enumerate(self._thoughts):
            if set(thought.record["audit_event_ids"]) - here_too:
                return self._break("missing_tail", f"An event that record {place} goes by is not here.")
        if self._seal is None:
            return None
        if self._seal.n_records != len(self._thoughts):
            told = (
                f"The seal covers {self._seal.n_records} records; {len(self._thoughts)} are here and whole."
            )
            return self._break("missing_tail", told)
        return self._hold("missing_tail")


def _previous(record: Mapping[str, Any], number: int) -> str:
    """What an event says it is linked to; the very first one must begin the chain."""
    chain = record.get("hash_chain")
    said = chain.get("previous_hash") if isinstance(chain, dict) else None
    return GENESIS if number == 1 else string(said)

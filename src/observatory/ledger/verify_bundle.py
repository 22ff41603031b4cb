"""Verifies an evidence bundle of one session, trusting nothing in it but the key the caller has pinned.

Part of the verifier: imports nothing of this project except other verifier modules. Each of `CHECKS` has its
own result: True, False with a sentence that names the first break, or None because the bundle contains
nothing to check it against. A bundle is untrusted: the code that unpacks it limits its size, and nothing in
it raises.
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
    EventClaims,
    EventLine,
    EvidenceManifest,
    EvidenceSession,
    EvidenceThought,
    Leaf,
    LogProof,
    SealProof,
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
    SealStatement,
    StatedThought,
    VerifiedThought,
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
# Parsed data needs several times its size in memory: lines one by one, other files at once.
_MAX_LINE_BYTES: Final = 16 << 20
_MAX_FILE_BYTES: Final = 1 << 20


class BundleBreak(msgspec.Struct, frozen=True):
    what: str
    sentence: str


class BundleReport(msgspec.Struct, frozen=True):
    """`breaks` has the first break of each failed check. `pinned`: verified with a key of the caller."""

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
    breaks: list[BundleBreak]
    shredded: int = 0  # records whose content was shredded by an order


def check_bundle(files: Mapping[str, bytes], vkeys: Sequence[str] = ()) -> BundleReport:
    """Check everything the files of a bundle prove; `vkeys` come from the caller and replace those inside."""
    check = _Check(files, vkeys)
    check.run()
    return check.found()


class _Check:
    def __init__(self, files: Mapping[str, bytes], vkeys: Sequence[str]) -> None:
        self._files, self._vkeys = files, vkeys
        self._held: dict[str, bool | None] = dict.fromkeys(CHECKS)
        self._breaks: dict[str, str] = {}
        self._manifest: EvidenceManifest | None = None
        self._checkpoint: Checkpoint | None = None
        self._older: Checkpoint | None = None
        self._leaves: list[Leaf] = []
        self._thoughts: list[VerifiedThought] = []
        self._genesis: bytes | None = None
        self._seal: SealStatement | None = None

    # ── results of the checks ──

    def _break(self, what: str, sentence: str) -> None:
        self._held[what] = False
        self._breaks.setdefault(what, sentence)

    def _pass(self, what: str) -> None:
        if self._held[what] is None:
            self._held[what] = True

    def found(self) -> BundleReport:
        manifest, note = self._manifest, self._checkpoint
        return BundleReport(
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
            breaks=[BundleBreak(name, self._breaks[name]) for name in CHECKS if name in self._breaks],
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
            if len(data) > _MAX_FILE_BYTES and not name.endswith(".jsonl"):
                return self._break("manifest", f"{printable(name)} is too large for a file of this name.")
        manifest = decoded(self._files.get("manifest.json"), EvidenceManifest)
        if manifest is None or manifest.format != FORMAT:
            return self._break("manifest", f"manifest.json does not have the format {FORMAT}.")
        self._manifest = manifest
        listed = {file.name: file for file in manifest.files}
        for name in _NEEDED:
            if name not in listed:
                self._break("manifest", f"The manifest does not list {name}.")
        for name, file in listed.items():
            content = self._files.get(name)
            if content is None:
                self._break("manifest", f"{printable(name)} is listed in the manifest and missing.")
            elif len(content) != file.bytes or text_of(sha256(content).digest()) != file.sha256:
                self._break("manifest", f"{printable(name)} is not the file the manifest was written for.")
        for name in self._files:
            if name not in listed and name != "manifest.json":
                self._break("manifest", f"{printable(name)} is in the bundle and not listed in its manifest.")
        for name, count in manifest.counts.items():
            lines = self._files.get(f"{name}.jsonl", b"").count(b"\n")
            if lines != count:
                self._break("manifest", f"The manifest says {count} {printable(name)}; there are {lines}.")
        return self._pass("manifest")

    def _lines(self, name: str, kind: Any, what: str) -> Iterator[Any]:
        """The lines of a file; an unreadable one fails the check it is for, and ends it."""
        for number, line in enumerate(BytesIO(self._files.get(name, b"")), 1):
            read = decoded(line, kind) if len(line) <= _MAX_LINE_BYTES else None
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
                return self._break("chain", f"Event {number} comes after event {expected - 1}.")
            record = canonical_object(raw)
            if record is None:
                return self._break("chain", f"The bytes of event {number} are not an audit event.")
            if chain is None or number != expected:
                # Between the session's events are those of others: each run is checked separately.
                chain = ChainCheck(tenant_id, number - 1, _previous(record, number))
            if not chain.feed([(number, raw, None)]):
                broken = chain.result().first_break
                return self._break("chain", broken.sentence if broken else f"Event {number} is not valid.")
            event_hash = record["hash_chain"]["event_hash"]
            self._leaves.append(leaf_of(number, record, leaf_text(tenant_id, number, event_hash, raw)))
            expected = number + 1
        if self._leaves:
            self._pass("chain")
        return None

    # ── the log ──

    def _keys(self) -> list[Key]:
        """The caller's keys; without any, those in the bundle."""
        keys = []
        for vkey in self._vkeys or self._bundled_vkeys():
            key = read_key(vkey)
            if isinstance(key, str):
                self._break("signature", key)
            else:
                keys.append(key)
        return keys

    def _bundled_vkeys(self) -> list[str]:
        return readable(self._files.get("vkeys.txt", b"")).splitlines()

    def _check_signature(self, keys: Sequence[Key]) -> None:
        note = self._files.get("checkpoint", b"")
        signed = read_checkpoint(note, keys)
        if isinstance(signed, str):
            self._break("signature", signed)
            # Without a valid signature its content is still compared, as the bundle's claim.
            claimed = unsigned(note)
            self._checkpoint = None if isinstance(claimed, str) else claimed
        else:
            self._checkpoint = signed
            self._pass("signature")
        if self._vkeys and not {vkey.strip() for vkey in self._vkeys} & set(self._bundled_vkeys()):
            self._break("signature", "vkeys.txt does not contain the given key.")
        if self._checkpoint and self._manifest and self._checkpoint.size != self._manifest.tree_size:
            self._break("manifest", "The manifest names another log size than its checkpoint.")

    def _check_inclusion(self, keys: Sequence[Key]) -> None:
        note = self._checkpoint
        if note is None:
            return None
        proofs = self._lines("proofs.jsonl", LogProof, "inclusion")
        for leaf in self._leaves:
            number, proof = leaf.sequence_number, next(proofs, None)
            if proof is None or proof.sequence_number != number:
                return self._break("inclusion", f"The proof of event {number} is missing or out of order.")
            path = hashes_of(proof)
            if not inclusion_holds(leaf_hash(leaf.text), number - 1, note.size, path, note.root):
                return self._break("inclusion", f"Event {number} is not in the log that was signed.")
        if next(proofs, None) is not None and self._held["chain"]:
            return self._break("inclusion", "There are proofs of events that are not in the bundle.")
        text = self._files.get("anchor.leaf", b"")
        if text not in {leaf.text for leaf in self._leaves}:
            return self._break("inclusion", "anchor.leaf is not a leaf of these events.")
        proven = read_proof(self._files.get("anchor.tlog-proof", b""), text, keys)
        if isinstance(proven, str) and self._held["signature"]:
            return self._break("inclusion", f"anchor.tlog-proof: {proven}")
        if self._leaves:
            self._pass("inclusion")
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
            return self._break("consistency", "The log is not a continuation of its older checkpoint.")
        self._older = older
        return self._pass("consistency")

    # ── the session ──

    def _check_thoughts(self, session_id: str) -> None:
        session = decoded(self._files.get("session.json"), EvidenceSession)
        stated: list[StatedThought] = []
        for one in self._lines("thoughts.jsonl", EvidenceThought, "records"):
            if one.index != len(stated):
                self._break("records", "The lines of thoughts.jsonl are not numbered in order.")
            hashes = one.content_hash, one.parent_chain_hash, one.chain_hash
            stated.append(StatedThought(one.record.encode(), *hashes, one.shredded_by))
        if session is None:
            if stated or "session.json" in self._files:
                self._break(
                    "records", "session.json, which contains the genesis of the records, cannot be read."
                )
            return None
        self._genesis = genesis_of(session.caller, session.session_id, session.started_at)
        if session.session_id != session_id or session.genesis != text_of(self._genesis):
            return self._break("records", "The genesis is not that of this session.")
        verified = check_records(session_id, self._genesis, stated)
        self._thoughts = verified.thoughts
        if verified.broken is not None:
            self._break("records", verified.broken)
        elif stated:
            self._pass("records")
        return self._check_seal(session_id, self._genesis)

    def _check_seal(self, session_id: str, genesis: bytes) -> None:
        if "seal.json" not in self._files:
            if "seal_proofs.jsonl" in self._files:
                self._break("seal", "There are seal proofs, and no seal.")
            return None
        self._seal = seal = decoded(self._files["seal.json"], SealStatement)
        if seal is None:
            return self._break("seal", "seal.json cannot be read.")
        broken = check_seal(seal, session_id, genesis, self._thoughts)
        if broken is not None:
            return self._break("seal", broken)
        proofs = self._lines("seal_proofs.jsonl", SealProof, "seal")
        for place, thought in enumerate(self._thoughts):
            proof = next(proofs, None)
            if proof is None:
                return self._break("seal", "There are fewer seal proofs than records.")
            if proof.index != place or not check_seal_proof(seal, place, thought, hashes_of(proof)):
                return self._break("seal", f"The proof of record {place} does not lead to the sealed root.")
        if next(proofs, None) is not None:
            return self._break("seal", "There are proofs of records that are not in the bundle.")
        return self._pass("seal")

    # ── the session's events ──

    def _check_anchor(self, session_id: str) -> None:
        claims = EventClaims(session_id, self._leaves)
        self._check_belonging(session_id)
        if self._genesis is not None:
            self._compare_events(claims)
            self._check_tail(claims)
        elif claims.genesis is not None or claims.recorded:
            self._break("records", "Events refer to a session with thoughts, and the bundle has none.")
        if claims.sealed is not None and self._seal is None:
            self._break("seal", "An event records that the session was sealed, and there is no seal.")
        # Records that differ from their events are not anchored.
        whole = self._held["records"] is not False and self._held["seal"] is not False
        if self._genesis is not None and whole and self._held["inclusion"] and self._held["signature"]:
            self._pass("anchored")

    def _check_belonging(self, session_id: str) -> None:
        """Events of another session would be valid, but prove nothing about this one."""
        trace_id = trace_of(session_id)
        named = {one for thought in self._thoughts for one in thought.record["audit_event_ids"]}
        for leaf in self._leaves:
            if not leaf.is_of(session_id, trace_id) and leaf.event_id not in named:
                return self._break("anchored", f"Event {leaf.sequence_number} is not of this session.")
        return None

    def _compare_events(self, claims: EventClaims) -> None:
        if claims.genesis != text_of(self._genesis or b""):
            self._break("anchored", "No event of the log records this session's genesis.")
        for place, thought in enumerate(self._thoughts):
            recorded = claims.recorded.get(thought.record["record_id"])
            if recorded != (text_of(thought.content_hash), text_of(thought.chain_hash)):
                return self._break(
                    "anchored", f"No event of the log records record {place} as it is in the bundle."
                )
            if thought.shredded_by is not None and not claims.ordered(thought):
                return self._break("records", f"No event of the log orders the shredding of record {place}.")
        if self._seal is not None and claims.sealed != self._seal:
            self._break("anchored", "No event of the log records this seal.")
        return None

    def _check_tail(self, claims: EventClaims) -> None:
        here = {thought.record["record_id"] for thought in self._thoughts}
        if claims.recorded.keys() - here:
            return self._break("missing_tail", "Events record more records than the bundle contains.")
        here_too = {leaf.event_id for leaf in self._leaves}
        for place, thought in enumerate(self._thoughts):
            if set(thought.record["audit_event_ids"]) - here_too:
                return self._break(
                    "missing_tail", f"An event that record {place} refers to is not in the bundle."
                )
        if self._seal is None:
            return None
        if self._seal.n_records != len(self._thoughts):
            sentence = (
                f"The seal covers {self._seal.n_records} records; {len(self._thoughts)} are here and valid."
            )
            return self._break("missing_tail", sentence)
        return self._pass("missing_tail")


def _previous(record: Mapping[str, Any], number: int) -> str:
    """The hash an event is linked to; the very first one must start the chain."""
    chain = record.get("hash_chain")
    claims = chain.get("previous_hash") if isinstance(chain, dict) else None
    return GENESIS if number == 1 else string(claims)

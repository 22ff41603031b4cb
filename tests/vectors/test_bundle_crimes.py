"""Forgeries of an evidence bundle that are thought through: each is found, and named for what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

import msgspec
import pytest

from observatory.ledger import bundle, merkle, note, thoughts, tlog_proof
from tests.vectors.forging import (
    IMPOSTOR,
    SIGNER,
    Files,
    Log,
    check,
    honest,
    lines_of,
    make,
    relisted,
    with_lines,
)


def by_the_impostor(files: Files, size: int | None = None, log: Log | None = None) -> Files:
    log = log or honest().log
    return files | {"checkpoint": log.checkpoint(IMPOSTOR, size)}


def another_tenant() -> Files:
    return relisted(honest().files, tenant_id="tnt_2")


def a_whole_other_tenant() -> Files:
    """Everything of it recomputed under another tenant's name, and the honest checkpoint kept."""
    made = make(Log("tnt_2"))
    return relisted(dict(made.files) | {"checkpoint": honest().files["checkpoint"]})


def another_session() -> Files:
    return relisted(honest().files, session_id="ses_2")


def rewritten() -> Files:
    """A record changed, and chain, seal, events, leaves and proofs recomputed; only the key is not theirs."""
    other = make(change=lambda index, one: msgspec.structs.replace(one, author="agt_2"))
    return relisted(dict(other.files) | {"checkpoint": honest().files["checkpoint"]})


def rewritten_and_signed() -> Files:
    return dict(make(signer=IMPOSTOR).files)


def second_key() -> Files:
    """Signed by another key of the log's name; both keys are told."""
    files = by_the_impostor(dict(honest().files))
    files["vkeys.txt"] = f"{SIGNER.vkey}\n{IMPOSTOR.vkey}\n".encode()
    return relisted(files)


def good_beside_bad() -> Files:
    """The pinned key's line says a signature that is not its own."""
    line = honest().files["checkpoint"].splitlines(keepends=True)[-1]
    note_bytes = honest().log.checkpoint(IMPOSTOR, 14) + line
    return relisted(dict(honest().files) | {"checkpoint": note_bytes})


def other_log() -> Files:
    stranger = note.Signer("elsewhere.example/log", sha256(b"x").digest())
    return relisted(dict(honest().files) | {"checkpoint": honest().log.checkpoint(stranger)})


def smaller_checkpoint() -> Files:
    """Truly signed, and older than the events."""
    return relisted(dict(honest().files) | {"checkpoint": honest().log.checkpoint(SIGNER, 5)}, tree_size=5)


def longer_proof() -> Files:
    lines = lines_of(honest().files, "proofs.jsonl")
    lines[0]["hashes"].append(lines[0]["hashes"][-1])
    return relisted(with_lines(honest().files, "proofs.jsonl", lines))


def shorter_proof() -> Files:
    lines = lines_of(honest().files, "proofs.jsonl")
    lines[0]["hashes"].pop()
    return relisted(with_lines(honest().files, "proofs.jsonl", lines))


def tail_cut(n: int = 1) -> Files:
    """The last records, their events and proofs taken away together; the seal still covers them."""
    files = with_lines(honest().files, "thoughts.jsonl", lines_of(honest().files, "thoughts.jsonl")[:-n])
    for name in ("events.jsonl", "proofs.jsonl"):
        lines = lines_of(files, name)
        files = with_lines(files, name, lines[: -1 - n] + lines[-1:])
    return relisted(files)


def seal_gone() -> Files:
    gone = ("seal.json", "seal_proofs.jsonl")
    return relisted({name: data for name, data in honest().files.items() if name not in gone})


def thoughts_gone() -> Files:
    gone = ("seal.json", "seal_proofs.jsonl", "thoughts.jsonl", "session.json")
    return relisted({name: data for name, data in honest().files.items() if name not in gone})


def relabelled() -> Files:
    """Everything gone that names the session, and another's name above what is left."""
    return relisted(thoughts_gone(), session_id="ses_2")


def seal_of_fewer() -> Files:
    """A seal recomputed over fewer records, with its proofs; the event of the sealing cannot be."""
    kept = honest().evidence.thoughts[:3]
    leaves = [thoughts.leaf(hashes) for _, hashes in kept]
    said = dict(json.loads(honest().files["seal.json"])) | {
        "n_records": 3,
        "last_chain_hash": kept[-1][1].chain_hash,
        "root": thoughts.text_of(merkle.root(leaves)),
    }
    paths = [merkle.inclusion_proof(leaves, at) for at in range(3)]
    number = 12
    sealing = bundle.BundleSeal(said, number, paths)
    return bundle.files(msgspec.structs.replace(honest().evidence, thoughts=kept, seal=sealing))


def foreign_anchor() -> Files:
    """A true proof of another event where the sealing's must be."""
    other = honest().log.event(1)
    proof = tlog_proof.write(0, other.proof, honest().files["checkpoint"])
    leaf = merkle.leaf_data("tnt_1", 1, other.event_hash, "sha256:" + sha256(other.record).hexdigest())
    return relisted(dict(honest().files) | {"anchor.tlog-proof": proof, "anchor.leaf": leaf})


def forked_past() -> Files:
    """An older checkpoint that the impostor signed over another history."""
    fork = Log()
    fork.add("another_past")
    fork.add("another_past")
    received = {"checkpoint": fork.checkpoint(SIGNER).decode(), "hashes": _hashes_of_consistency()}
    return relisted(dict(honest().files) | {"consistency.json": json.dumps(received).encode()})


def _hashes_of_consistency() -> list[str]:
    found: list[str] = json.loads(honest().files["consistency.json"])["hashes"]
    return found


CRIMES: list[tuple[Callable[[], Files], str, str]] = [
    (another_tenant, "chain", "names another tenant"),
    (a_whole_other_tenant, "inclusion", "not in the log that was signed"),
    (another_session, "records", "genesis is not that of this session"),
    (rewritten, "inclusion", "not in the log that was signed"),
    (rewritten_and_signed, "signature", "another key of the same name"),
    (second_key, "signature", "another key of the same name"),
    (good_beside_bad, "signature", "not that of the key it names"),
    (other_log, "signature", "no signature of the known key"),
    (smaller_checkpoint, "inclusion", "not in the log that was signed"),
    (longer_proof, "inclusion", "not in the log that was signed"),
    (shorter_proof, "inclusion", "not in the log that was signed"),
    (tail_cut, "missing_tail", "The seal covers 4 records; 3 are here"),
    (seal_gone, "seal", "there is no seal"),
    (thoughts_gone, "records", "the bundle has none"),
    (relabelled, "anchored", "Event 2 is not of this session"),
    (seal_of_fewer, "anchored", "No event of the log records this seal"),
    (foreign_anchor, "inclusion", "not a leaf of these events"),
    (forked_past, "consistency", "is not a continuation of its older checkpoint"),
]


@pytest.mark.req(313, 457)
@pytest.mark.parametrize(("crime", "what", "words"), CRIMES, ids=[case[0].__name__ for case in CRIMES])
def test_a_crime_is_found_and_named_for_what_it_is_s386(
    crime: Callable[[], Files], what: str, words: str
) -> None:
    """S386."""
    found = check(crime())
    assert not found.valid and found.checks[what] is False
    assert words in next(one.sentence for one in found.breaks if one.what == what)


def test_without_a_pinned_key_a_forger_with_a_key_of_his_own_passes_and_is_told_of_s387() -> None:
    """S387: that is why the key is pinned, and the report says whether it was."""
    forged = rewritten_and_signed()
    assert check(forged, []).valid and not check(forged, []).pinned
    assert not check(forged).valid

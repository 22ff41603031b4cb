"""The witness protocol's text, its bounds, and its judgement: pure, as the standard says it."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.ledger import merkle, note, witness
from observatory.ledger.note import BadNote
from observatory.ledger.witness import CheckpointOffer, WitnessHead

LEAVES = [merkle.leaf_hash(b"%d" % i) for i in range(40)]
HASH = b64encode(bytes(32)) + b"\n"


def head(size: int) -> WitnessHead:
    return WitnessHead(size, merkle.root(LEAVES[:size]))


@given(st.integers(0, note.MAX_SIZE), st.lists(st.binary(min_size=32, max_size=32), max_size=63))
def test_an_offer_is_read_as_it_was_written_s423(old: int, proof: list[bytes]) -> None:
    """S423: old size, hashes, blank line, checkpoint."""
    offer = CheckpointOffer(old, proof, b"origin\n1\nroot\n\n\xe2\x80\x94 name sig\n")
    assert witness.read(witness.write(offer)) == offer


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"old 5",
        b"old 5\nnote",
        b"old\n\nnote",
        b"old \n\nnote",
        b"old 05\n\nnote",
        b"old -1\n\nnote",
        b"old +1\n\nnote",
        b"old 1 \n\nnote",
        "old \u0665\n\nnote".encode(),
        b"old 99999999999999999999\n\nnote",
        b"old 9223372036854775808\n\nnote",
        b"new 5\n\nnote",
        b"old 5\nnonsense\n\nnote",
        b"old 5\n" + b64encode(bytes(31)) + b"\n\nnote",
        b"old 5\n" + HASH.replace(b"=", b"") + b"\nnote",
        b"old 5\n" + HASH * 64 + b"\nnote",
        b"old 5\r\n\r\nnote",
        b"old 5\n\n" + b"x" * (witness.MAX_NOTE_BYTES + 1),
    ],
)
def test_what_is_no_offer_is_refused_s423(body: bytes) -> None:
    """S423: with a sentence that quotes nothing of it."""
    with pytest.raises(BadNote) as refused:
        witness.read(body)
    assert "nonsense" not in str(refused.value)


def test_sixty_three_hashes_are_taken_s423() -> None:
    """S423: the most the protocol allows."""
    assert len(witness.read(b"old 5\n" + HASH * 63 + b"\nnote").proof) == 63


def test_every_pair_of_sizes_is_judged_by_its_proof_s422() -> None:
    """S422: right proofs are good, each hash spoilt is not; other old sizes are told what is known."""
    for old in range(0, 40, 3):
        for size in range(old, 40, 2):
            proof = merkle.consistency_proof(LEAVES[:size], old) if 0 < old < size else []
            known = head(old) if old else None
            assert witness.judge_offer(known, old, head(size), proof) == 200
            for at in range(len(proof)):
                spoilt = [*proof[:at], bytes(32), *proof[at + 1 :]]
                assert witness.judge_offer(known, old, head(size), spoilt) == 422
            if old:
                assert witness.judge_offer(known, old - 1, head(size), proof) == 409
                assert witness.judge_offer(known, size + 1, head(size), proof) == 400


def test_a_log_of_nothing_has_one_root_s423() -> None:
    """S423: SHA-256 of nothing; another is refused, also where an empty log is known."""
    empty = WitnessHead(0, sha256(b"").digest())
    for known in (None, empty):
        assert witness.judge_offer(known, 0, empty, []) == 200
        assert witness.judge_offer(known, 0, WitnessHead(0, bytes(32)), []) == 422
        assert witness.judge_offer(known, 0, empty, [bytes(32)]) == 422
        assert witness.judge_offer(known, 0, head(5), [bytes(32)]) == 422
        assert witness.judge_offer(known, 0, head(5), []) == 200


def test_a_line_is_found_by_its_key_s424() -> None:
    """S424: among those of others, of the same name too."""
    one, other = (note.Signer("log.example", sha256(seed).digest()) for seed in (b"1", b"2"))
    text = note.checkpoint("log.example", 1, bytes(32))
    signed = note.sign(text, [other, one])
    key = note.Verifier.from_vkey(one.vkey)
    assert witness.line_by(signed, key) == one.line(text)
    assert witness.line_by(note.sign(text, [other]), key) is None

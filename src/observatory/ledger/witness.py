"""The witness protocol, C2SP `tlog-witness/v1.0.0`: a log's request to its witness, and the decision.

Law: a witness accepts only checkpoints that extend the last one it cosigned. `judge` returns the whole
decision as a status code of the protocol; its caller must hold a lock until an accepted checkpoint is stored,
otherwise two concurrent requests could move it backwards. Untrusted input is bounded before it is parsed, and
`BadNote` quotes nothing of it.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from observatory.ledger import merkle
from observatory.ledger.note import BadNote, Verifier, read_hash, read_size, split

MAX_HASHES: Final = 63
MAX_NOTE_BYTES: Final = 1 << 13  # twice the size of a checkpoint with dozens of cosignatures
MAX_BYTES: Final = MAX_NOTE_BYTES + MAX_HASHES * 45 + 64
SIZE_TYPE: Final = "text/x.tlog.size"


class CheckpointOffer(NamedTuple):
    """A checkpoint, and the proof that it extends the size the witness should know."""

    old: int
    proof: list[bytes]
    note: bytes


class WitnessHead(NamedTuple):
    size: int
    root: bytes


def write(offer: CheckpointOffer) -> bytes:
    hashes = "".join(b64encode(one).decode() + "\n" for one in offer.proof)
    return f"old {offer.old}\n{hashes}\n".encode() + offer.note


def read(body: bytes) -> CheckpointOffer:
    """Parse an offer without verifying it; BadNote for anything else."""
    above, blank, note = body.partition(b"\n\n")
    if len(body) > MAX_BYTES or len(note) > MAX_NOTE_BYTES or not blank:
        raise BadNote(
            "an offer must have a line `old` with a size, at most 63 hashes, a blank line and a checkpoint"
        )
    try:
        first, *lines = above.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadNote("the lines above the checkpoint must be ASCII") from None
    word, _, digits = first.partition(" ")
    if word != "old":
        raise BadNote("the first line of an offer must be `old` and a size")
    old = read_size(digits)
    if len(lines) > MAX_HASHES:
        raise BadNote(f"a consistency proof has at most {MAX_HASHES} hashes")
    return CheckpointOffer(old, [read_hash(line) for line in lines], note)


def judge_offer(known: WitnessHead | None, old: int, shown: WitnessHead, proof: Sequence[bytes]) -> int:
    """200, 400, 409 or 422, as specified by the protocol. `known` is the last head cosigned for this
    origin."""
    if old > shown.size:
        return 400
    if old != (known.size if known is not None else 0):
        return 409
    if shown.size == 0:
        return 200 if shown.root == merkle.EMPTY_ROOT and not proof else 422
    if old == 0:  # every tree extends the empty one: there is nothing to prove
        return 422 if proof else 200
    assert known is not None
    good = merkle.verify_consistency(old, shown.size, known.root, shown.root, proof)
    return 200 if good else 422


def is_fork(known: WitnessHead, shown: WitnessHead) -> bool:
    """Whether two heads signed by the same key cannot belong to one log, whatever the proof."""
    return known.size == shown.size and known.root != shown.root


def line_by(signed: bytes, key: Verifier) -> str | None:
    """The signature line of this key in a note, unchanged and unverified."""
    lines = signed.decode().rpartition("\n\n")[2].split("\n")
    for parsed, line in zip(split(signed)[1], lines, strict=False):  # after the last one is an empty string
        if (parsed.name, parsed.key_id) == (key.name, key.key_id):
            return line + "\n"
    return None


def log_id_of(origin: str) -> str:
    """The name of a log at a witness's monitoring endpoint: the hex of its origin's SHA-256."""
    return sha256(origin.encode()).hexdigest()

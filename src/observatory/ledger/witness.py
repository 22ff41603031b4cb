"""The witness protocol, C2SP `tlog-witness/v1.0.0`: what a log sends to its witness, and how that judges it.

Law: a witness only ever goes on from what it cosigned last. `judge` is the whole decision as a code of the
protocol; who calls it holds a lock until what was judged good is kept, else two that race could make it go
back. What a stranger sent is bounded before it is read, and `BadNote` quotes nothing of it.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from observatory.ledger import merkle
from observatory.ledger.note import BadNote, Verifier, read_hash, read_size, split

MOST_HASHES: Final = 63
MOST_NOTE: Final = 1 << 13  # a checkpoint with dozens of cosignatures has half of that
MOST_BYTES: Final = MOST_NOTE + MOST_HASHES * 45 + 64
SIZE_TYPE: Final = "text/x.tlog.size"


class Offer(NamedTuple):
    """A checkpoint, and the proof that it goes on from the size that the witness should know."""

    old: int
    proof: list[bytes]
    note: bytes


class Head(NamedTuple):
    size: int
    root: bytes


def write(offer: Offer) -> bytes:
    hashes = "".join(b64encode(one).decode() + "\n" for one in offer.proof)
    return f"old {offer.old}\n{hashes}\n".encode() + offer.note


def read(body: bytes) -> Offer:
    """Taken apart, nothing of it checked; BadNote for what is none."""
    above, blank, note = body.partition(b"\n\n")
    if len(body) > MOST_BYTES or len(note) > MOST_NOTE or not blank:
        raise BadNote("an offer is a line `old` and a size, at most 63 hashes, a blank line and a checkpoint")
    try:
        first, *lines = above.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadNote("what stands above the checkpoint is ASCII") from None
    word, _, digits = first.partition(" ")
    if word != "old":
        raise BadNote("the first line of an offer reads `old` and a size")
    old = read_size(digits)
    if len(lines) > MOST_HASHES:
        raise BadNote(f"a consistency proof has at most {MOST_HASHES} hashes")
    return Offer(old, [read_hash(line) for line in lines], note)


def judge(known: Head | None, old: int, shown: Head, proof: Sequence[bytes]) -> int:
    """200, 400, 409 or 422, as the protocol says. `known` is what was cosigned last of this origin."""
    if old > shown.size:
        return 400
    if old != (known.size if known is not None else 0):
        return 409
    if shown.size == 0:
        return 200 if shown.root == merkle.EMPTY_ROOT and not proof else 422
    if old == 0:  # every tree goes on from the empty one: there is nothing to prove
        return 422 if proof else 200
    assert known is not None
    good = merkle.verify_consistency(old, shown.size, known.root, shown.root, proof)
    return 200 if good else 422


def is_fork(known: Head, shown: Head) -> bool:
    """Whether two heads that one key signed can never be of one log, whatever proof is brought."""
    return known.size == shown.size and known.root != shown.root


def line_by(signed: bytes, key: Verifier) -> str | None:
    """The line of this key under a note, as it stands there; unchecked."""
    lines = signed.decode().rpartition("\n\n")[2].split("\n")
    for found, words in zip(split(signed)[1], lines, strict=False):  # behind the last one is nothing
        if (found.name, found.key_id) == (key.name, key.key_id):
            return words + "\n"
    return None


def place(origin: str) -> str:
    """What names a log at a witness's monitoring door: the hex of its origin's SHA-256."""
    return sha256(origin.encode()).hexdigest()

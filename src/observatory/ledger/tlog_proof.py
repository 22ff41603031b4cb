"""The `.tlog-proof` file: everything a stranger needs to see, offline, that a leaf is in a signed log.

C2SP `tlog-proof`: a first line that names the format, the leaf's index, the hashes of the inclusion
proof, a blank line, and the signed checkpoint byte for byte. The leaf's own data travels beside it, or as
`extra` in a line of its own.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from observatory.ledger.note import BadNote, read_hash, read_size, unbase64

FORMAT: Final = "c2sp.org/tlog-proof@v1"
MOST_HASHES: Final = 63
MOST_BYTES: Final = 1 << 17


def write(index: int, hashes: Sequence[bytes], checkpoint: bytes, extra: bytes = b"") -> bytes:
    if index < 0 or len(hashes) > MOST_HASHES:
        raise ValueError("a proof is of a leaf that is there, and has at most 63 hashes")
    lines = "".join(b64encode(one).decode() + "\n" for one in hashes)
    beside = f"extra {b64encode(extra).decode()}\n" if extra else ""
    return f"{FORMAT}\n{beside}index {index}\n{lines}\n".encode() + checkpoint


def extra(proof: bytes) -> bytes:
    """What a proof carries beside itself, unchecked; nothing when it carries nothing."""
    _, _, rest = proof.partition(b"\n")
    word, _, body = rest.partition(b"\n")[0].partition(b" ")
    if word != b"extra":
        return b""
    found = unbase64(body.decode("ascii", "replace"))
    if found is None:
        raise BadNote("the `extra` of a proof is base64")
    return found


def read(proof: bytes) -> tuple[int, list[bytes], bytes]:
    """(index, hashes, checkpoint), unchecked; BadNote for what is no proof. `extra` lines are passed over."""
    head, blank, checkpoint = proof.partition(b"\n\n")
    if len(proof) > MOST_BYTES or not blank:
        raise BadNote("a proof is its lines, a blank line and a signed checkpoint")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadNote("the lines of a proof are ASCII") from None
    if lines.pop(0) != FORMAT:
        raise BadNote(f"the first line of a proof reads {FORMAT}")
    if lines and lines[0].startswith("extra "):
        lines.pop(0)
    word, _, number = (lines.pop(0) if lines else "").partition(" ")
    if word != "index":
        raise BadNote("a proof says `index` and the place of the leaf")
    if len(lines) > MOST_HASHES:
        raise BadNote(f"a proof has at most {MOST_HASHES} hashes")
    return read_size(number, "the index of a proof"), [read_hash(line) for line in lines], checkpoint

"""The `.tlog-proof` file: everything a third party needs to verify, offline, that a leaf is in a signed log.

C2SP `tlog-proof`: a first line that names the format, the leaf's index, the hashes of the inclusion
proof, a blank line, and the signed checkpoint byte for byte. The leaf's data is a separate file, or a
separate `extra` line.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from observatory.ledger.note import BadNote, read_hash, read_size, unbase64

FORMAT: Final = "c2sp.org/tlog-proof@v1"
MAX_HASHES: Final = 63
MAX_BYTES: Final = 1 << 17


def write(index: int, hashes: Sequence[bytes], checkpoint: bytes, extra: bytes = b"") -> bytes:
    if index < 0 or len(hashes) > MAX_HASHES:
        raise ValueError("a proof needs an existing leaf and has at most 63 hashes")
    lines = "".join(b64encode(one).decode() + "\n" for one in hashes)
    extra_line = f"extra {b64encode(extra).decode()}\n" if extra else ""
    return f"{FORMAT}\n{extra_line}index {index}\n{lines}\n".encode() + checkpoint


def extra(proof: bytes) -> bytes:
    """The `extra` data of a proof, unverified; empty if it has none."""
    _, _, rest = proof.partition(b"\n")
    word, _, body = rest.partition(b"\n")[0].partition(b" ")
    if word != b"extra":
        return b""
    data = unbase64(body.decode("ascii", "replace"))
    if data is None:
        raise BadNote("the `extra` of a proof must be base64")
    return data


def read(proof: bytes) -> tuple[int, list[bytes], bytes]:
    """(index, hashes, checkpoint), unverified; BadNote for anything else. An `extra` line is skipped."""
    head, blank, checkpoint = proof.partition(b"\n\n")
    if len(proof) > MAX_BYTES or not blank:
        raise BadNote("a proof must have header lines, a blank line and a signed checkpoint")
    try:
        lines = head.decode("ascii").split("\n")
    except UnicodeDecodeError:
        raise BadNote("the lines of a proof must be ASCII") from None
    if lines.pop(0) != FORMAT:
        raise BadNote(f"the first line of a proof must be {FORMAT}")
    if lines and lines[0].startswith("extra "):
        lines.pop(0)
    word, _, number = (lines.pop(0) if lines else "").partition(" ")
    if word != "index":
        raise BadNote("a proof must have a line `index` with the index of the leaf")
    if len(lines) > MAX_HASHES:
        raise BadNote(f"a proof has at most {MAX_HASHES} hashes")
    return read_size(number, "the index of a proof"), [read_hash(line) for line in lines], checkpoint

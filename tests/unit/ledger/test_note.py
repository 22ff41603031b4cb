"""Signed notes and checkpoints: the standard's vector, every bound, and nothing believed by mistake."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.ledger import note
from observatory.ledger.note import BadNote, Cosigner, Signer, Verifier

VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
TEXT = "This is an example message.\n"
SIGNATURE = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
LINE = f"— example.com/foo {SIGNATURE}\n"
KEY = Signer("log.example/a", bytes(range(32)))
KNOWN = Verifier.from_vkey(KEY.vkey)
SPEECH = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=200)


def test_the_vector_of_the_standard_s350() -> None:
    """S350: key hash, vkey and signature."""
    known = Verifier.from_vkey(VKEY)
    assert note.vkey(known.name, known.public_key) == VKEY
    assert note.open(f"{TEXT}\n{LINE}".encode(), [known]) == (TEXT, ["example.com/foo"])


@settings(max_examples=50, deadline=None)
@given(SPEECH)
def test_what_was_signed_opens_to_the_same_text_s350(speech: str) -> None:
    """S350: whatever it says, blank lines too: the last one separates."""
    text = speech + "\n"
    signed = note.sign(text, [KEY, Signer("other", bytes(32))])
    assert note.open(signed, [KNOWN]) == (text, ["log.example/a"])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_note_with_any_bit_turned_is_refused_or_says_the_same_s352(data: st.DataObject) -> None:
    """S352: a flip in the unknown key's line is the only one that may pass, and changes nothing."""
    signed = note.sign("origin\n5\nroot\n", [KEY, Signer("other", bytes(32))])
    place = data.draw(st.integers(0, len(signed) * 8 - 1))
    turned = bytearray(signed)
    turned[place // 8] ^= 1 << place % 8
    try:
        text, names = note.open(bytes(turned), [KNOWN])
    except BadNote:
        return
    assert (text, names) == ("origin\n5\nroot\n", ["log.example/a"])
    assert place // 8 >= signed.rindex("— ".encode())


@pytest.mark.parametrize(
    ("spoilt", "received"),
    [
        (b"", "must end with a line break"),
        (f"{TEXT}\n".encode(), "at least one signature"),
        (LINE.encode(), "blank line"),
        (f"\n{LINE}".encode(), "blank line"),
        (f"{TEXT}{LINE}".encode(), "blank line"),
        (f"{TEXT}\n{LINE[:-1]}".encode(), "line break"),
        (f"{TEXT}\r\n\n{LINE}".encode(), "control character"),
        (f"{TEXT}\x00\n\n{LINE}".encode(), "control character"),
        (f"{TEXT}\x7f\n\n{LINE}".encode(), "control character"),
        (f"{TEXT}\x85\n\n{LINE}".encode(), "control character"),
        (b"\xff\n\n" + LINE.encode(), "UTF-8"),
        (f"{TEXT}\n- example.com/foo {SIGNATURE}\n".encode(), "signature line"),
        (f"{TEXT}\n— example.com/foo\n".encode(), "signature line"),
        (f"{TEXT}\n— example.com/foo AAAA\n".encode(), "signature line"),
        (f"{TEXT}\n— example.com/foo {SIGNATURE[:-1]}\n".encode(), "signature line"),
        (f"{TEXT}\n— example.com/foo {SIGNATURE} x\n".encode(), "signature line"),
        (f"{TEXT}\n—  {SIGNATURE}\n".encode(), "key's name|signature line"),
        (f"{TEXT}\n— a+b {SIGNATURE}\n".encode(), "key's name"),
        (f"{TEXT}\n— a\u2003b {SIGNATURE}\n".encode(), "key's name"),
        (f"{TEXT}\n{LINE}\n{LINE}".encode(), "no known key|is wrong"),
        (f"{TEXT}\n{LINE * 65}".encode(), "at most 64"),
        (b"x" * (1 << 16) + f"\n\n{LINE}".encode(), "at most 65,536"),
    ],
)
def test_what_is_no_note_is_refused_with_a_sentence_s352(spoilt: bytes, received: str) -> None:
    """S352: bounded, and nothing of it is quoted."""
    with pytest.raises(BadNote, match=received) as refused:
        note.open(spoilt, [Verifier.from_vkey(VKEY)])
    assert "example" not in str(refused.value)


def test_unknown_keys_are_ignored_and_a_known_one_must_be_right_s352() -> None:
    """S352: sixteen strangers do no harm; one bad signature of a known key refuses the note."""
    strangers = [Signer(f"stranger-{n}", bytes([n]) * 32) for n in range(16)]
    signed = note.sign(TEXT, [*strangers, KEY])
    assert note.open(signed, [KNOWN]) == (TEXT, ["log.example/a"])
    with pytest.raises(BadNote, match="no known key"):
        note.open(note.sign(TEXT, strangers), [KNOWN])
    foreign = note.sign("Another text.\n", [KEY]).rpartition(b"\n\n")[2]
    with pytest.raises(BadNote, match="is wrong"):
        note.open(note.sign(TEXT, [KEY]) + foreign, [KNOWN])


def test_a_second_key_of_the_same_name_is_another_key_s352() -> None:
    """S352: told apart by its hash; each counts for itself."""
    second = Signer(KEY.name, bytes(32))
    both = note.sign(TEXT, [KEY, second])
    assert note.open(both, [KNOWN])[1] == note.open(both, [Verifier.from_vkey(second.vkey)])[1] == [KEY.name]
    with pytest.raises(BadNote, match="no known key"):
        note.open(note.sign(TEXT, [second]), [KNOWN])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a+b",
        "a+00000000+AAAA",
        VKEY.replace("530d903a", "530d903b"),
        VKEY.replace("530d903a", "530D903A"),
        VKEY.replace("example", "exomple"),
        VKEY + "A",
        VKEY[:-1],
        "+530d903a+" + VKEY.rpartition("+")[2],
        "a b+530d903a+" + VKEY.rpartition("+")[2],
        "a" * 300 + "+530d903a+" + VKEY.rpartition("+")[2],
        "a+530d903a+" + b64encode(b"\x02" + bytes(range(32))).decode(),
    ],
)
def test_a_vkey_that_is_none_is_refused_s350(text: str) -> None:
    """S350: name, hash and key must fit together, and be of a known type."""
    with pytest.raises(BadNote):
        Verifier.from_vkey(text)


def test_the_points_of_low_order_are_what_the_curve_says_s355() -> None:
    """S355: -x² + y² = 1 + dx²y², doubled to a point of order 4 (y = 0): dy⁴ + 2y² = 1."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p
    eighths = note.LOW_ORDER_Y - {0, 1, p - 1}
    assert len(eighths) == 2
    assert all((d * pow(y, 4, p) + 2 * y * y) % p == 1 for y in eighths)


@pytest.mark.parametrize("sign", [0, 1])
def test_a_key_of_low_order_is_refused_in_every_spelling_s355(sign: int) -> None:
    """S355: fourteen encodings, those beyond p too; anything would verify under them."""
    p = 2**255 - 19
    spellings = [*note.LOW_ORDER_Y, p, p + 1]
    for y in spellings:
        key = (y | sign << 255).to_bytes(32, "little")
        assert note.is_low_order(key)
        with pytest.raises(BadNote, match="low order"):
            Verifier("log.example/a", key)
    good = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    assert not note.is_low_order(good) and Verifier("log.example/a", good)


def test_a_cosignature_says_when_and_signs_it_s355() -> None:
    """S355: type 4, the time before the signature; another time, or a plain key, does not verify it."""
    witness = Cosigner("witness.example", bytes(range(32)), 1_700_000_000)
    known = Verifier.from_vkey(witness.vkey)
    assert known.kind == note.COSIGNATURE
    signed = note.sign("log.example/a\n1\n" + b64encode(bytes(32)).decode() + "\n", [KEY, witness])
    text, names = note.open(signed, [KNOWN, known])
    assert names == ["log.example/a", "witness.example"]
    line = note.split(signed)[1][1]
    assert note.seen_at(line.signature) == 1_700_000_000 and note.seen_at(line.signature[1:]) is None
    later = (1_700_000_001).to_bytes(8, "big") + line.signature[8:]
    assert known.verifies(text, line.signature) and not known.verifies(text, later)
    assert not known.verifies(text, b"short")
    assert not Verifier("witness.example", known.public_key).verifies(text, line.signature[8:])


def test_a_checkpoint_reads_back_s351() -> None:
    """S351: three lines; what stands below them is passed over."""
    root = bytes(range(32))
    text = note.checkpoint("log.example/a", 70_000, root)
    assert text == f"log.example/a\n70000\n{b64encode(root).decode()}\n"
    assert note.parse_checkpoint(text) == ("log.example/a", 70_000, root)
    assert note.parse_checkpoint(text + "more\n") == ("log.example/a", 70_000, root)
    assert b64decode(text.split("\n")[2]) == root


@pytest.mark.parametrize("size", ["-1", "+1", "01", "", "1.0", "1e3", "١", "9223372036854775808", "9" * 40])
def test_a_size_that_is_none_is_refused_s352(size: str) -> None:
    """S352."""
    with pytest.raises(BadNote):
        note.parse_checkpoint(f"a\n{size}\n{b64encode(bytes(32)).decode()}\n")


@pytest.mark.parametrize(
    "text", ["", "a\n", "a\n1\n", "a\n1\nAAAA\n", f"a\n1\n{b64encode(bytes(32)).decode()}", "\n1\nAAAA\n"]
)
def test_a_text_that_is_no_checkpoint_is_refused_s352(text: str) -> None:
    """S352."""
    with pytest.raises(BadNote):
        note.parse_checkpoint(text)


def test_base64_has_one_spelling_s352() -> None:
    """S352: padding bits that are not zero are refused."""
    good = b64encode(bytes(32)).decode()
    for spoilt in (good[:-2] + "B=", good.rstrip("="), good + "\n", " " + good, good.replace("A", "_", 1)):
        with pytest.raises(BadNote):
            note.parse_checkpoint(f"a\n1\n{spoilt}\n")


def test_nothing_is_signed_that_could_not_be_read_back_s352() -> None:
    """S352."""
    for text in ("no line break", "tab\t\n"):
        with pytest.raises(BadNote):
            note.sign(text, [KEY])
    for origin, size, root in (("a b", 1, bytes(32)), ("a", 1, bytes(31)), ("a", -1, bytes(32))):
        with pytest.raises((BadNote, ValueError)):
            note.checkpoint(origin, size, root)

"""Official vectors through the writer's code and, apart from it, through the independent verifier.

They are third party's and read in place: `../shared/vectors` beside this checkout, skipped without it.
"""

from __future__ import annotations

import ast
import base64
import json
import random
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from observatory.ledger import merkle, note, verify_log, verify_note
from observatory.ledger.canonical import jcs, jcs_with_floats
from observatory.ledger.verify import canonical_object
from observatory.ledger.verify_canonical import canonical_text, canonical_thought

VECTORS = Path(__file__).parents[3] / "shared/vectors"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="shared/vectors is not beside this checkout")

Inclusion = Callable[[Any, Any, Any, Any, Any], bool]
INCLUSION: dict[str, Inclusion] = {
    "writer": merkle.verify_inclusion,
    "verifier": verify_log.inclusion_holds,
}
CONSISTENCY: dict[str, Inclusion] = {
    "writer": merkle.verify_consistency,
    "verifier": verify_log.consistency_holds,
}
by_both = pytest.mark.parametrize("side", ["writer", "verifier"])


def read(path: str) -> Any:
    return json.loads((VECTORS / path).read_text("utf-8"))


def hashes(items: list[str] | None) -> list[bytes]:
    return [base64.b64decode(item) for item in items or []]


@needs_vectors
@by_both
@pytest.mark.req(458)
def test_98_inclusion_vectors_are_judged_as_the_rfc_does_s380(side: str) -> None:
    """S380."""
    paths = sorted((VECTORS / "merkle/testdata/inclusion").rglob("*.json"))
    assert len(paths) == 98
    for path in paths:
        case = json.loads(path.read_text())
        leaf, root = hashes([case["leafHash"], case["root"]])
        given = (leaf, case["leafIdx"], case["treeSize"], hashes(case["proof"]), root)
        assert INCLUSION[side](*given) is not case["wantErr"], path


@needs_vectors
@by_both
def test_98_consistency_vectors_are_judged_as_the_rfc_does_s380(side: str) -> None:
    """S380."""
    paths = sorted((VECTORS / "merkle/testdata/consistency").rglob("*.json"))
    assert len(paths) == 98
    for path in paths:
        case = json.loads(path.read_text())
        roots = hashes([case["root1"], case["root2"]])
        given = (case["size1"], case["size2"], *roots, hashes(case["proof"]))
        assert CONSISTENCY[side](*given) is not case["wantErr"], path


def tessera() -> tuple[list[bytes], dict[int, bytes]]:
    """The leaves of Tessera's own log, and the root it signed at each size."""
    folder, entries = VECTORS / "tessera-log/testdata/log", []
    raw = (folder / "tile/entries/000.p/15").read_bytes()
    while raw:
        size = int.from_bytes(raw[:2])
        entries.append(raw[2 : 2 + size])
        raw = raw[2 + size :]
    roots = {}
    for size in range(16):
        found = verify_note.unsigned((folder / f"checkpoint.{size}").read_bytes())
        assert not isinstance(found, str) and found.size == size
        roots[size] = found.root
    return [verify_log.leaf_hash(entry) for entry in entries], roots


@needs_vectors
def test_16_roots_and_every_consistency_of_tesseras_log_s380() -> None:
    """S380."""
    leaves, roots = tessera()
    assert len(leaves) == 15 and len(roots) == 16
    for size, root in roots.items():
        span = verify_log.TreeSpan()
        span.extend(leaves[:size])
        assert merkle.root(leaves[:size]) == span.root() == root
        for old in range(1, size + 1):
            given = (old, size, roots[old], root, merkle.consistency_proof(leaves[:size], old))
            assert all(holds(*given) for holds in CONSISTENCY.values())


def jcs_vector(name: str) -> tuple[Any, bytes]:
    value = read(f"jcs/testdata/input/{name}.json")
    output = (VECTORS / f"jcs/testdata/output/{name}.json").read_bytes()
    assert rfc8785.dumps(value) == output, "the vector itself, by a foreign encoder"
    return value, output


@needs_vectors
@pytest.mark.parametrize("name", ["arrays", "french", "unicode", "weird"])
def test_the_four_jcs_vectors_without_floats_are_written_byte_for_byte_s606(name: str) -> None:
    """S380, S606: by the writer, and read as such by the verifier where they are objects."""
    value, output = jcs_vector(name)
    assert jcs(value) == output
    assert (canonical_object(output) is not None) == isinstance(value, dict)


@needs_vectors
@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_words_are_written_as_all_six_jcs_vectors_byte_for_byte_s819(name: str) -> None:
    """S819: by the writer and by the verifier, which share no code; what comes back is written the same."""
    value, output = jcs_vector(name)
    again = json.loads(output)
    assert jcs_with_floats(value) == jcs_with_floats(again) == output == canonical_text(again).encode()
    assert canonical_thought(output) == (again if isinstance(again, dict) else None)


@needs_vectors
@pytest.mark.parametrize("name", ["structures", "values"])
def test_of_audit_events_the_two_jcs_vectors_with_floats_are_refused_s606(name: str) -> None:
    """S380, S606: ruling 34 has no floats there. `structures` holds 56.0 only: as the integer it is, it is
    written byte for byte, and its output is read; `values` is refused by both sides."""
    value, output = jcs_vector(name)
    with pytest.raises(ValueError):
        jcs(value)
    if name == "structures":
        value["1"]["\n"] = int(value["1"]["\n"])
        assert jcs(value) == output and canonical_object(output) == value
    else:
        assert canonical_object(output) is None


@needs_vectors
def test_151_wycheproof_signatures_are_judged_rightly_s380() -> None:
    """S380."""
    judged = 0
    for group in read("wycheproof/ed25519_test.json")["testGroups"]:
        public = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            signature, message = bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"])
            held = verify_note.signature_holds(public, signature, message)
            assert held is (case["result"] == "valid"), case["tcId"]
            judged += 1
    assert judged == 151


def verkey(public: bytes) -> str:
    return note.vkey("log.example", public)


@needs_vectors
def test_the_accept_set_of_914_edge_signatures_and_no_low_order_key_s381() -> None:
    """S381: 208 pass as in Go and Node; 122 of them only under low-order keys, which neither side takes."""
    passed = kept = 0
    low: set[bytes] = set()
    for case in read("cctv/ed25519vectors.json"):
        public, flags = bytes.fromhex(case["key"]), case["flags"] or []
        held = verify_note.signature_holds(public, bytes.fromhex(case["sig"]), case["msg"].encode())
        passed += held
        is_key = not isinstance(verify_note.read_key(verkey(public)), str)
        assert note.is_low_order(public) is ("low_order_A" in flags)
        assert not (is_key and ("low_order_A" in flags or "non_canonical_A" in flags))
        kept += held and is_key
        if "low_order_A" in flags:
            low.add(public)
            with pytest.raises(note.BadNote, match="low order"):
                note.Verifier.from_vkey(verkey(public))
    assert (passed, kept, len(low)) == (208, 86, 14)


def test_the_standards_own_note_is_read_by_both_s381() -> None:
    """S381."""
    vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
    line = "Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM="
    text = "This is an example message.\n"
    raw = f"{text}\n\u2014 example.com/foo {line}\n".encode()
    assert note.open(raw, [note.Verifier.from_vkey(vkey)]) == (text, ["example.com/foo"])
    key = verify_note.read_key(vkey)
    assert isinstance(key, verify_note.Key)
    assert verify_note.signature_holds(key.public, base64.b64decode(line)[4:], text.encode())
    assert (
        verify_note.read_checkpoint(raw, [key]) == "The signed text is not the three lines of a checkpoint."
    )
    bent = raw.replace(b"an example", b"no example")
    assert "not that of the key" in str(verify_note.read_checkpoint(bent, [key]))
    with pytest.raises(note.BadNote):
        note.open(bent, [note.Verifier.from_vkey(vkey)])


# --- every small tree, and some large ones ---


@cache
def leaf_at(place: int) -> bytes:
    return sha256(b"\x00" + place.to_bytes(4)).digest()


@cache
def naive(start: int, end: int) -> bytes:
    """MTH exactly as RFC 6962 §2.1 writes it."""
    if end - start == 1:
        return leaf_at(start)
    k = 1
    while k * 2 < end - start:
        k *= 2
    return sha256(b"\x01" + naive(start, start + k) + naive(start + k, end)).digest()


def inclusion(index: int, size: int) -> list[bytes]:
    return [naive(*span) for span in merkle.inclusion_path(index, size)]


def consistency(old: int, new: int) -> list[bytes]:
    return [naive(*span) for span in merkle.consistency_path(old, new)]


@by_both
def test_every_proof_of_every_tree_up_to_130_holds_s380(side: str) -> None:
    """S380: and the same path proves no neighbour, no longer and no shorter proof."""
    for size in range(1, 131):
        root = naive(0, size)
        for place in range(size):
            path = inclusion(place, size)
            assert INCLUSION[side](leaf_at(place), place, size, path, root)
            assert not INCLUSION[side](leaf_at(place), place ^ 1, size, path, root) or size == 1
            assert not INCLUSION[side](leaf_at(place), place, size, [*path, root], root)
            old, shown = place + 1, consistency(place + 1, size)
            assert CONSISTENCY[side](old, size, naive(0, old), root, shown)
            assert not CONSISTENCY[side](old, size, naive(0, old), root, [*shown, root])
            assert not (shown and CONSISTENCY[side](old, size, naive(0, old), root, shown[1:]))


@by_both
@pytest.mark.parametrize("size", [255, 256, 257, 65_535, 65_536, 65_537])
def test_proofs_around_the_width_of_a_tile_hold_s380(side: str, size: int) -> None:
    """S380."""
    root = naive(0, size)
    for place in sorted({0, 1, 127, 254, size // 3, size // 2, size - 2, size - 1}):
        assert INCLUSION[side](leaf_at(place), place, size, inclusion(place, size), root)
        old = place + 1
        assert CONSISTENCY[side](old, size, naive(0, old), root, consistency(old, size))


def mutants(path: list[bytes], rng: random.Random) -> list[list[bytes]]:
    """One hash with a flipped bit, missing, or twice."""
    at = rng.randrange(len(path))
    flipped = int.from_bytes(path[at]) ^ 1 << rng.randrange(256)
    changed = [*path[:at], flipped.to_bytes(32), *path[at + 1 :]]
    return [changed, path[:at] + path[at + 1 :], [*path[:at], path[at], *path[at:]]]


@by_both
def test_no_mutated_proof_is_accepted_s380(side: str) -> None:
    """S380: 6,000 of them."""
    rng, judged = random.Random(9162), 0
    for _ in range(1_000):
        size = rng.randint(2, 1_000)
        place, old = rng.randrange(size), rng.randint(1, size - 1)
        root = naive(0, size)
        for path in mutants(inclusion(place, size), rng):
            assert not INCLUSION[side](leaf_at(place), place, size, path, root)
            judged += 1
        for path in mutants(consistency(old, size), rng):
            assert not CONSISTENCY[side](old, size, naive(0, old), root, path)
            judged += 1
    assert judged == 6_000


@pytest.mark.parametrize(
    "given",
    [
        (b"short", 0, 1, [], b"\0" * 32),
        (b"\0" * 32, True, 2, [b"\0" * 32], b"\0" * 32),
        (b"\0" * 32, 0, 10**400, [b"\0" * 32] * 64, b"\0" * 32),
        (b"\0" * 32, 0, 2**62, [b"\0" * 32] * 65, b"\0" * 32),
        (b"\0" * 32, -1, 2, [b"\0" * 32], b"\0" * 32),
        (b"\0" * 32, 0, 2, ["\0" * 32], b"\0" * 32),
        (b"\0" * 32, 0, 2, None, b"\0" * 32),
        (None, 0, 1, [], None),
    ],
    ids=repr,
)
def test_the_verifier_answers_and_never_raises_s380(given: tuple[Any, ...]) -> None:
    """S380."""
    leaf, index, size, path, root = given
    assert verify_log.inclusion_holds(leaf, index, size, path, root) is False
    assert verify_log.consistency_holds(index, size, leaf, root, path) is False


def test_parts_of_a_log_join_to_the_root_of_the_whole_s382() -> None:
    """S382: wherever it was cut, in any number of parts."""
    rng = random.Random(6962)
    for size in [*range(1, 70), 255, 256, 257, 1_000]:
        cuts = sorted(rng.sample(range(size + 1), k=min(3, size)))
        whole = verify_log.TreeSpan()
        for start, end in zip([0, *cuts], [*cuts, size], strict=True):
            part = verify_log.TreeSpan(start)
            part.extend(map(leaf_at, range(start, end)))
            assert whole.join(part)
        assert whole.root() == naive(0, size) and whole.end == size
    assert not whole.join(verify_log.TreeSpan(5)) and verify_log.TreeSpan(5).root() is None


def test_the_verifiers_family_shares_no_code_with_the_writer_s393() -> None:
    """S393: an error of the writer cannot hide in it; import-linter looks at the same."""
    folder = Path(verify_log.__file__).parent
    family = {path.stem: ast.parse(path.read_text("utf-8")) for path in folder.glob("verify*.py")}
    assert len(family) == 8
    for stem, tree in family.items():
        names = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        ours = {name for name in names if name.startswith(("observatory", "None", "."))}
        assert ours <= {f"observatory.ledger.{name}" for name in family}, stem
        foreign = {name.partition(".")[0] for name in names - ours} - sys.stdlib_module_names
        assert foreign <= {"msgspec", "cryptography"}, stem

"""RFC 6962 trees: official vectors, the naive definition for every small size, and mutated proofs."""

import base64
import json
import random
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from observatory.ledger import merkle

VECTORS = Path(__file__).parents[4] / "shared/vectors/merkle/testdata"
LEAVES = tuple(merkle.leaf_hash(bytes([number])) for number in range(130))


@cache
def naive(start: int, end: int) -> bytes:
    """MTH exactly as RFC 6962 §2.1 writes it."""
    if end == start:
        return sha256(b"").digest()
    if end - start == 1:
        return LEAVES[start]
    k = 1
    while k * 2 < end - start:
        k *= 2
    return sha256(b"\x01" + naive(start, start + k) + naive(start + k, end)).digest()


def vectors(kind: str) -> list[Path]:
    return sorted((VECTORS / kind).rglob("*.json")) if VECTORS.exists() else []


def hashes(items: list[str] | None) -> list[bytes]:
    return [base64.b64decode(item) for item in items or []]


def test_the_inclusion_vectors_are_judged_as_the_rfc_does() -> None:
    found = vectors("inclusion")
    if not found:
        pytest.skip("the shared Merkle vectors are not beside this checkout")
    assert len(found) == 98
    for path in found:
        case = json.loads(path.read_text())
        leaf, root = hashes([case["leafHash"], case["root"]])
        accepted = merkle.verify_inclusion(
            leaf, case["leafIdx"], case["treeSize"], hashes(case["proof"]), root
        )
        assert accepted is not case["wantErr"], path


def test_the_consistency_vectors_are_judged_as_the_rfc_does() -> None:
    found = vectors("consistency")
    if not found:
        pytest.skip("the shared Merkle vectors are not beside this checkout")
    assert len(found) == 98
    for path in found:
        case = json.loads(path.read_text())
        old_root, new_root = hashes([case["root1"], case["root2"]])
        accepted = merkle.verify_consistency(
            case["size1"], case["size2"], old_root, new_root, hashes(case["proof"])
        )
        assert accepted is not case["wantErr"], path


def test_the_root_of_every_small_tree_is_the_naive_one() -> None:
    tree = merkle.Accumulator()
    for size in range(len(LEAVES) + 1):
        assert tree.size == size and tree.root() == naive(0, size) == merkle.root(LEAVES[:size])
        assert merkle.Accumulator(size, tree.peaks).root() == naive(0, size)
        if size < len(LEAVES):
            tree.append(LEAVES[size])


@pytest.mark.parametrize("size", [*range(1, 65), 130])
def test_every_leaf_is_proven_in_and_no_other_place_or_size_is(size: int) -> None:
    root = naive(0, size)
    for index in range(size):
        proof = merkle.inclusion_proof(LEAVES[:size], index)
        assert merkle.verify_inclusion(LEAVES[index], index, size, proof, root)
        for wrong in {index - 1, index + 1, index ^ 1} - {index}:
            assert not merkle.verify_inclusion(LEAVES[index], wrong, size, proof, root)
        assert not merkle.verify_inclusion(LEAVES[index], index, size, [*proof, root], root)
        assert not (proof and merkle.verify_inclusion(LEAVES[index], index, size, proof[:-1], root))


@pytest.mark.parametrize("new", [*range(1, 65), 130])
def test_every_older_tree_is_proven_a_prefix(new: int) -> None:
    new_root = naive(0, new)
    for old in range(1, new + 1):
        proof = merkle.consistency_proof(LEAVES[:new], old)
        old_root = naive(0, old)
        assert merkle.verify_consistency(old, new, old_root, new_root, proof)
        assert not merkle.verify_consistency(old, new, EMPTY, new_root, proof)
        assert not merkle.verify_consistency(old, new, old_root, EMPTY, proof)
        assert not merkle.verify_consistency(old, new, old_root, new_root, [*proof, old_root])
        assert not (proof and merkle.verify_consistency(old, new, old_root, new_root, proof[:-1]))


EMPTY = merkle.EMPTY_ROOT


def test_no_mutated_proof_is_accepted() -> None:
    rng = random.Random(6962)
    for _ in range(5_000):
        new = rng.randint(2, 130)
        old, index = rng.randint(1, new - 1), rng.randrange(new)
        inclusion = merkle.inclusion_proof(LEAVES[:new], index)
        consistency = merkle.consistency_proof(LEAVES[:new], old)
        for proof in (inclusion, consistency):
            place, bit = rng.randrange(len(proof)), rng.randrange(256)
            mutated = int.from_bytes(proof[place]) ^ 1 << bit
            proof[place] = mutated.to_bytes(32)
        assert not merkle.verify_inclusion(LEAVES[index], index, new, inclusion, naive(0, new))
        assert not merkle.verify_consistency(old, new, naive(0, old), naive(0, new), consistency)


def test_an_inner_node_does_not_pass_as_a_leaf_and_an_odd_leaf_is_not_doubled() -> None:
    assert merkle.leaf_hash(LEAVES[0] + LEAVES[1]) != merkle.node_hash(LEAVES[0], LEAVES[1])
    assert merkle.root(LEAVES[:3]) != merkle.root([*LEAVES[:3], LEAVES[2]])


@pytest.mark.parametrize(("old", "new"), [(0, 5), (6, 5), (0, 0)])
def test_there_is_no_consistency_proof_from_nothing_or_backwards(old: int, new: int) -> None:
    with pytest.raises(ValueError):
        merkle.consistency_path(old, new)
    assert not merkle.verify_consistency(old, new, naive(0, old), naive(0, new), [])


@pytest.mark.parametrize(("index", "size"), [(5, 5), (-1, 5), (0, 0)])
def test_there_is_no_inclusion_proof_outside_the_tree(index: int, size: int) -> None:
    with pytest.raises(ValueError):
        merkle.inclusion_path(index, size)
    assert not merkle.verify_inclusion(LEAVES[0], index, size, [], naive(0, size))


def test_an_accumulator_refuses_peaks_that_do_not_fit_its_size() -> None:
    with pytest.raises(ValueError):
        merkle.Accumulator(3, [LEAVES[0]])


@pytest.mark.parametrize("tenant_id", ["", "tnt_1\n2"])
def test_a_leaf_refuses_a_tenant_that_would_shift_its_lines(tenant_id: str) -> None:
    with pytest.raises(ValueError):
        merkle.leaf_data(tenant_id, 1, "sha256:a", "sha256:b")

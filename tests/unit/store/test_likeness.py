"""Vectors in memory: the same nearest as counting by hand, whatever was struck out, moved or let go."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.search import vector_index as likeness
from observatory.features.search.vector_index import TenantVectors, VectorIndex, VectorRows, parse_vectors
from observatory.store.embedding import BYTES, embedder


def page(rows: list[tuple[int, int, bytes]]) -> VectorRows:
    turns, seqs = (",".join(str(row[place]) for row in rows) for place in (0, 1))
    return parse_vectors(turns, seqs, "".join(row[2].hex() for row in rows))


def differ(left: bytes, right: bytes) -> int:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).bit_count()


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_the_nearest_are_those_counted_by_hand_s274(seed: int, parts: int) -> None:
    """S274: in any portions, with rows made anew in between, over blocks of any size."""
    dice = random.Random(seed)
    size, likeness.SIZE = likeness.SIZE, 7
    try:
        kept, turn = TenantVectors(), 0
        present: dict[int, bytes] = {}
        for _ in range(parts):
            rows = []
            for _ in range(dice.randrange(1, 15)):
                turn += 1
                again = dice.random() < 0.3 and present
                seq = dice.choice(sorted(present)) if again else turn
                bits = dice.randbytes(BYTES)
                rows.append((turn, seq, bits))
                present[seq] = bits
            last = {row[1]: row for row in rows}  # the store shows a row as it is now
            kept.add(page(sorted(last.values())))
        query, until = dice.randbytes(BYTES), dice.randrange(turn + 2)
        among = None if dice.random() < 0.5 else sorted(seq for seq in present if dice.random() < 0.5)
        wanted = [seq for seq in present if seq <= until and (among is None or seq in among)]
        expected = sorted(wanted, key=lambda seq: (differ(present[seq], query), -seq))[:5]
        chosen = None if among is None else np.array(among, dtype=np.int64)
        found = kept.scan(query, 0, until, chosen, 5)
        assert [differ(present[seq], query) for seq in found] == [
            differ(present[seq], query) for seq in expected
        ]
        assert set(found) <= set(wanted)
    finally:
        likeness.SIZE = size


def test_memory_is_bounded_and_a_new_store_is_read_anew_s277(monkeypatch: pytest.MonkeyPatch) -> None:
    """S277: who asked least lately goes, then the oldest; nothing of a store made anew stays."""
    monkeypatch.setattr(likeness, "SIZE", 10)
    cache = VectorIndex(most=30)
    for tenant in ("a", "b"):
        cache.of(tenant, 100).add(page([(n, n, bytes([n] * BYTES)) for n in range(1, 21)]))
        cache.trim()
    assert len(cache.of("b", 100)) == 20 and len(cache.of("a", 100)) == 0
    cache.of("b", 100).add(page([(n, n, bytes([n] * BYTES)) for n in range(21, 61)]))
    cache.trim()
    kept = cache.of("b", 100)
    assert len(kept) <= 30 and not kept.is_whole
    assert len(cache.of("b", 10)) == 0


def test_vectors_are_kept_once_s283() -> None:
    """S283: what was added stays where it is, whatever comes after."""
    kept = TenantVectors()
    kept.add(page([(1, 1, bytes([1] * BYTES))]))
    first = kept.blocks[0].signs
    kept.add(page([(n, n, bytes([n % 256] * BYTES)) for n in range(2, 1_000)]))
    assert kept.blocks[0].signs is first and len(kept) == 999


def test_texts_alike_have_vectors_alike_s274() -> None:
    """S274: unit vectors, the same in any batch; nothing for a text without words."""
    model = embedder()
    assert model is not None
    texts = ["buyer asks for a refund", "customer wants money back", "kubernetes pod restarted", ""]
    made = model.embed(texts)
    assert made[0] @ made[1] > made[0] @ made[2]
    assert np.allclose(np.linalg.norm(made[:3], axis=1), 1) and not made[3].any()
    assert (model.embed(texts[1:2])[0] == made[1]).all()

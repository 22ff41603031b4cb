"""Tiles: names, widths, what an edge settles, and proofs read out of them against the plain tree."""

from __future__ import annotations

from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.ledger import merkle, tiles, tlog_proof
from observatory.ledger.note import BadNote
from observatory.ledger.tiles import Tile, TileEdge

LEAVES = [sha256(number.to_bytes(4, "big")).digest() for number in range(66_000)]


class Log:
    """A log of any size out of nodes that were settled once, as the store keeps them."""

    def __init__(self, size: int) -> None:
        self.size, self.edge = size, TileEdge()
        self.nodes: dict[tuple[int, int], bytes] = {}
        for node in self.edge.extend(LEAVES[:size]):
            self.nodes[node.level, node.position] = node.hash

    def tile(self, level: int, index: int) -> bytes:
        first = index * 256
        count = tiles.width_of(level, index, self.size)
        if level == 0:
            return b"".join(LEAVES[first : first + count])
        return b"".join(self.nodes[level, position] for position in range(first, first + count))

    def inclusion(self, index: int) -> list[bytes]:
        return [tiles.hash_of(span, self.tile) for span in merkle.inclusion_path(index, self.size)]

    def consistency(self, old: int) -> list[bytes]:
        return [tiles.hash_of(span, self.tile) for span in merkle.consistency_path(old, self.size)]


@cache
def plain_root(span: merkle.Range) -> bytes:
    return merkle.root(LEAVES[slice(*span)])


@pytest.fixture(scope="module")
def large() -> Log:
    return Log(65_537)


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "000"), (7, "007"), (999, "999"), (1_000, "x001/000"), (1_234_067, "x001/x234/067")],
)
def test_names_are_groups_of_three_digits_s365(index: int, name: str) -> None:
    """S365: and read back in that one spelling only."""
    assert tiles.name(index) == name and tiles.parse_name(name) == (index, 256)
    assert tiles.parse_name(f"{name}.p/17") == (index, 17)
    assert tiles.path(3, index) == f"tile/3/{name}" == tiles.path(3, index, 256)
    assert tiles.path("entries", index, 17) == f"tile/entries/{name}.p/17"


@pytest.mark.parametrize(
    "name",
    [
        *("", "0", "00", "0000", "1234", "x001", "x000/001", "x001/x000", "001/002", "x001/2", "-01", "٠٠٠"),
        *("000.p/", "000.p/0", "000.p/256", "000.p/01", "000.p/-1", "000.p/1/1", "000.q/1", "000.p/1000"),
        *("../000", "000/", "/000", "x999/" * 20 + "999", "000\n"),
    ],
)
def test_any_other_spelling_names_nothing_s365(name: str) -> None:
    """S365."""
    assert tiles.parse_name(name) is None


@given(st.integers(0, 2**40))
def test_every_name_reads_back_s365(index: int) -> None:
    """S365."""
    assert tiles.parse_name(tiles.name(index)) == (index, 256)


def test_the_check_value_of_the_standard_s365() -> None:
    """S365: 70,000 leaves are 273 full and one partial tile, then 1 and 1, then one."""
    found = list(tiles.of_size(70_000))
    assert sum(tile.level == 0 and tile.width == 256 for tile in found) == 273
    assert [tile for tile in found if tile.width < 256] == [Tile(0, 273, 112), Tile(1, 1, 17), Tile(2, 0, 1)]
    assert [tiles.width(level, 70_000) for level in range(4)] == [112, 17, 1, 0]
    assert list(tiles.of_size(0)) == [] and list(tiles.of_size(1)) == [Tile(0, 0, 1)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 100, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537])
def test_the_edge_has_the_root_of_the_plain_tree_s354(size: int) -> None:
    """S354: and each settled node is the root of its leaves."""
    log = Log(size)
    assert (log.edge.root(), log.edge.size) == (merkle.root(LEAVES[:size]), size)
    for (level, position), node in list(log.nodes.items())[-3:]:
        span = 256**level
        assert node == merkle.root(LEAVES[position * span : (position + 1) * span])
    partial = [(tile.level, tiles.cut(log.tile(tile.level, tile.index))) for tile in tiles.edge_spans(size)]
    assert TileEdge(size, partial).root() == log.edge.root()
    assert sorted(tiles.of_size(size)) == sorted(
        Tile(level, index, tiles.width_of(level, index, size))
        for level in range(3)
        for index in range(-(-(size >> 8 * level) // 256))
        if tiles.width_of(level, index, size)
    )


@given(st.lists(st.integers(0, 700), max_size=6))
def test_an_edge_grows_the_same_in_any_portions_s354(portions: list[int]) -> None:
    """S354."""
    edge, nodes, at = TileEdge(), [], 0
    for portion in portions:
        nodes += edge.extend(LEAVES[at : at + portion])
        at += portion
    whole = TileEdge()
    assert whole.extend(LEAVES[:at]) == nodes and whole.root() == edge.root() == edge.copy().root()


def test_an_edge_must_be_whole_s354() -> None:
    """S354."""
    with pytest.raises(ValueError):
        TileEdge(5, [(0, LEAVES[:4])])
    with pytest.raises(ValueError):
        TileEdge(256, [(0, LEAVES[:256])])


def test_every_proof_out_of_tiles_is_that_of_the_plain_tree_s353() -> None:
    """S353: all indexes and all older sizes up to 130: each subtree that any of their proofs names."""
    for size in range(1, 131):
        log = Log(size)
        paths = [merkle.inclusion_path(index, size) for index in range(size)]
        paths += [merkle.consistency_path(old, size) for old in range(1, size + 1)]
        for span in {span for path in paths for span in path}:
            assert tiles.hash_of(span, log.tile) == plain_root(span)
    log = Log(100)
    assert log.inclusion(37) == merkle.inclusion_proof(LEAVES[:100], 37)
    assert log.consistency(37) == merkle.consistency_proof(LEAVES[:100], 37)


@pytest.mark.parametrize("size", [255, 256, 257])
def test_proofs_around_a_full_tile_s353(size: int) -> None:
    """S353."""
    log, root = Log(size), merkle.root(LEAVES[:size])
    for index in range(size):
        assert merkle.verify_inclusion(LEAVES[index], index, size, log.inclusion(index), root)
    for old in range(1, size + 1, 3):
        proof = log.consistency(old)
        assert merkle.verify_consistency(old, size, merkle.root(LEAVES[:old]), root, proof)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537])
def test_proofs_around_a_full_tile_of_the_second_level_s353(large: Log, size: int) -> None:
    """S353: of older sizes the same stored nodes serve."""
    log = large
    before, log.size = log.size, size
    try:
        root = merkle.root(LEAVES[:size])
        for index in (0, 1, 255, 256, 32_767, 32_768, 65_279, 65_280, size - 2, size - 1):
            assert merkle.verify_inclusion(LEAVES[index], index, size, log.inclusion(index), root)
        for old in (1, 255, 256, 257, 32_768, 65_280, size - 1, size):
            older = merkle.root(LEAVES[:old])
            assert merkle.verify_consistency(old, size, older, root, log.consistency(old))
        assert tiles.needed(merkle.inclusion_path(0, size)) <= {(0, 0), (1, 0), (0, 255), (0, 256), (2, 0)}
    finally:
        log.size = before


def test_a_tile_that_is_too_short_is_no_proof_s353(large: Log) -> None:
    """S353."""
    with pytest.raises(ValueError, match="shorter"):
        tiles.hash_of((0, 256), lambda level, index: large.tile(level, index)[:31])


def test_entries_stand_behind_their_length_s365() -> None:
    """S365: two bytes, the larger first; what is too long for them is refused."""
    assert tiles.entry_bundle([b"ab", b"", b"x" * 300]) == b"\0\2ab\0\0\1\x2c" + b"x" * 300
    with pytest.raises(OverflowError):
        tiles.entry_bundle([b"x" * 65_536])


def test_a_tlog_proof_reads_back_s366(large: Log) -> None:
    """S366: index, hashes and the checkpoint byte for byte; an extra line is passed over."""
    hashes = large.inclusion(1_000)
    text = tlog_proof.write(1_000, hashes, b"origin\n1\nroot\n\nline\n")
    assert text.startswith(b"c2sp.org/tlog-proof@v1\nindex 1000\n")
    assert tlog_proof.read(text) == (1_000, hashes, b"origin\n1\nroot\n\nline\n")
    extra = text.replace(b"index", b"extra AAAA\nindex", 1)
    assert tlog_proof.read(extra) == tlog_proof.read(text)
    assert tlog_proof.read(tlog_proof.write(0, [], b"c")) == (0, [], b"c")


@pytest.mark.parametrize(
    ("spoilt", "received"),
    [
        (b"", "blank line"),
        (b"c2sp.org/tlog-proof@v1\nindex 1\n", "blank line"),
        (b"c2sp.org/tlog-proof@v2\nindex 1\n\nc", "first line"),
        (b"c2sp.org/tlog-proof@v1\n\nc", "index"),
        (b"c2sp.org/tlog-proof@v1\nindex\n\nc", "index"),
        (b"c2sp.org/tlog-proof@v1\nindex 01\n\nc", "index"),
        (b"c2sp.org/tlog-proof@v1\nindex -1\n\nc", "index"),
        (b"c2sp.org/tlog-proof@v1\nindex 1\nAAAA\n\nc", "32 bytes"),
        (b"c2sp.org/tlog-proof@v1\nindex 1\n\xff\n\nc", "ASCII"),
        (b"c2sp.org/tlog-proof@v1\nindex 1" + b"\nAAAA" * 64 + b"\n\nc", "63"),
        (b"c2sp.org/tlog-proof@v1\nindex 1\n\n" + b"c" * (1 << 17), "blank line"),
    ],
)
def test_what_is_no_tlog_proof_is_refused_s366(spoilt: bytes, received: str) -> None:
    """S366."""
    with pytest.raises(BadNote, match=received):
        tlog_proof.read(spoilt)

"""The comparison with a peer: what is stored counts, and a peer that cannot be had is told of plainly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import Found, settled, table
from bench.phoenix import NoPeer, installed

CASES = {
    "all are there at once": ([10], 10, (10, 0.0)),
    "the rest comes later": ([0, 4, 4, 10], 10, (10, 0.75)),
    "some never come": ([0, 7], 10, (7, 0.25)),
    "nothing ever comes": ([0], 10, (0, 0.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_counts_and_not_what_was_answered_s925(name: str) -> None:
    """S925: it waits until all are stored or nothing more comes, and tells when the last was seen."""
    seen, wanted, expected = CASES[name]
    now = 0.0

    def counts() -> Iterator[int]:
        yield from seen
        while True:
            yield seen[-1]

    answers = counts()

    def rest(seconds: float) -> None:
        nonlocal now
        now += seconds

    assert settled(lambda: next(answers), wanted, 20.0, lambda: now, rest) == expected


def test_the_table_says_what_was_answered_and_lost_s925() -> None:
    """S925: rate, ratio, and what was left after either end."""
    ours = Found(3_000, 3_000, 6_000.0, 6_000.0, 1_000, 1_000, 1_000)
    theirs = Found(3_000, 2_900, 9_000.0, 200.0, 1_000, 0, 142)
    said = table(ours, theirs)
    assert "30.0 ×" in said
    assert "2,900 of 3,000" in said and "0 of 1,000" in said and "142 of 1,000" in said


def test_a_peer_that_cannot_be_installed_is_told_of_s925(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S925: with the installer's own words; nothing half installed is taken for a peer."""
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho no such version >&2\nexit 1\n")
    uv.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    place = tmp_path / "peers"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "phoenix").touch()  # left by an installation that broke off
    with pytest.raises(NoPeer, match="no such version"):
        installed(place)

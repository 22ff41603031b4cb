"""The golden chain of thoughts: genesis, canonical text, both hashes, and the root of every prefix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from observatory.ledger import thoughts
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import root
from observatory.ledger.thoughts import Thought, ThoughtChain, ThoughtHashes

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden/thought_chain.json").read_text("utf-8"))
HASH = "sha256:"


def thought_of(record: dict[str, Any]) -> Thought:
    texts = {name: jcs(record[name]) for name in ("content", "references", "audit_event_ids")}
    return Thought(**(record | texts))


def hashes_of(one: dict[str, Any]) -> ThoughtHashes:
    return ThoughtHashes(*(HASH + one[name] for name in ("content_hash", "chain_hash", "parent_chain_hash")))


@pytest.mark.req(278)
def test_the_genesis_is_the_hash_of_the_sessions_beginning_s322() -> None:
    assert thoughts.genesis(**GOLDEN["session_metadata"]).hex() == GOLDEN["genesis"]


@pytest.mark.req(272, 273, 274, 275)
@pytest.mark.parametrize("one", GOLDEN["records"], ids=lambda one: str(one["record"]["record_id"]))
def test_every_record_hashes_as_it_is_written_down_s322(one: dict[str, Any]) -> None:
    thought = thought_of(one["record"])
    assert thoughts.canonical(thought).decode() == one["canonical"]
    assert thoughts.link(thought, HASH + one["parent_chain_hash"]) == hashes_of(one)


@pytest.mark.req(307, 313)
def test_the_walk_over_them_holds_and_gives_the_sealed_root_s336() -> None:
    walk = ThoughtChain("ses_1", HASH + GOLDEN["genesis"], None)
    roots = [root(walk.leaves).hex()]
    for one in GOLDEN["records"]:
        assert walk.step(thought_of(one["record"]), hashes_of(one))
        roots.append(root(walk.leaves).hex())
    assert roots == GOLDEN["roots_of_prefixes"] and roots[-1] == GOLDEN["seal_root"]
    assert thoughts.levels(walk.leaves)[-1] == [bytes.fromhex(GOLDEN["seal_root"])]

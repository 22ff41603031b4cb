"""The chain of thoughts and its tree: what is hashed is what is stored; a change breaks it where it is."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.ledger import thoughts
from observatory.ledger.canonical import jcs
from observatory.ledger.merkle import inclusion_path, inclusion_proof, root, verify_inclusion
from observatory.ledger.thoughts import Thought, ThoughtChain, ThoughtHashes

GENESIS = thoughts.text_of(thoughts.genesis("agt_1", "ses_1", "2026-02-16T14:32:00Z"))
PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.dictionaries(PLAIN, VALUES, max_size=4)


def thought(index: int = 0, **more: object) -> Thought:
    fields: dict[str, object] = {
        "record_id": f"rec_{index}",
        "session_id": "ses_1",
        "task_id": "tsk_1",
        "type": "plan",
        "content": b'{"trajectory":"on"}',
        "author": "agt_1",
        "created_at": "2026-02-16T14:32:01Z",
    }
    return Thought(index=index, **(fields | more))  # type: ignore[arg-type]


@given(CONTENT, st.lists(PLAIN, max_size=3), PLAIN, st.none() | PLAIN)
@settings(max_examples=60)
def test_the_hashed_text_is_rfc_8785_of_the_whole_record_s322(
    content: dict[str, object], names: list[str], author: str, embedded: str | None
) -> None:
    """S322: as another implementation writes it, from the stored parts alone."""
    made = thought(
        content=jcs(content), references=jcs(names), author=author, predecessor_chain_hash=embedded
    )
    whole = {
        name: value
        for name, value in msgspec.structs.asdict(made).items()
        if name not in ("content", "references", "audit_event_ids")
    } | {"content": content, "references": names, "audit_event_ids": []}
    assert thoughts.canonical(made) == rfc8785.dumps(whole)
    assert thoughts.content_hash(made) == hashlib.sha256(rfc8785.dumps(whole)).digest()


def test_the_chain_goes_over_raw_bytes_s322() -> None:
    """S322: 32 and 32, never their hex."""
    made = thought()
    hashes = thoughts.link(made, GENESIS)
    content, parent = thoughts.content_hash(made), thoughts.digest_of(GENESIS)
    assert hashes.chain_hash == "sha256:" + hashlib.sha256(content + parent).hexdigest()
    assert (
        thoughts.leaf(hashes)
        == hashlib.sha256(b"\x00" + content + thoughts.digest_of(hashes.chain_hash)).digest()
    )


@pytest.mark.parametrize(
    "text", ["", "sha256:", "0" * 64, "sha256:" + "0" * 63, "sha256:" + "A" * 64, "sha512:" + "0" * 64]
)
def test_a_hash_has_one_spelling_s322(text: str) -> None:
    with pytest.raises(ValueError):
        thoughts.digest_of(text)


def chain(count: int) -> list[tuple[Thought, ThoughtHashes]]:
    made, parent = [], GENESIS
    for index in range(count):
        one = thought(index)
        hashes = thoughts.link(one, parent)
        made.append((one, hashes))
        parent = hashes.chain_hash
    return made


CHANGES: list[dict[str, object]] = [
    {"record_id": "rec_x"},
    {"session_id": "ses_2"},
    {"task_id": "x"},
    {"index": 9},
    {"type": "decision"},
    {"type": "informational"},
    {"content": b'{"trajectory": "on"}'},
    {"content": b""},
    {"author": "agt_2"},
    {"author": b"agt_1"},
    {"created_at": "2026-02-16T14:32:02Z"},
    {"references": b'["rec_0"]'},
    {"audit_event_ids": b"[ ]"},
    {"predecessor_chain_hash": GENESIS},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("at", [0, 2])
def test_a_changed_record_breaks_the_walk_where_it_stands_s333(change: dict[str, object], at: int) -> None:
    """S333: and nothing after it counts, whatever it is."""
    walk, held = ThoughtChain("ses_1", GENESIS, None), []
    for index, (one, hashes) in enumerate(chain(4)):
        held.append(walk.step(msgspec.structs.replace(one, **change) if index == at else one, hashes))
    assert held == [index < at for index in range(4)]
    assert (walk.broken, len(walk.leaves)) == (at, at)


@pytest.mark.parametrize("name", ["content_hash", "chain_hash", "parent_chain_hash"])
@pytest.mark.parametrize("text", [GENESIS.upper(), "sha256:" + "0" * 64, ""])
def test_a_changed_hash_breaks_it_too_s333(name: str, text: str) -> None:
    walk, (first, second) = ThoughtChain("ses_1", GENESIS, None), chain(2)
    assert walk.step(*first)
    assert not walk.step(second[0], msgspec.structs.replace(second[1], **{name: text}))
    assert walk.broken == 1


def test_the_predecessors_hash_stands_in_the_first_record_and_in_no_other_s327() -> None:
    before = "sha256:" + "1" * 64
    one = thought(predecessor_chain_hash=before)
    assert ThoughtChain("ses_1", GENESIS, before).step(one, thoughts.link(one, GENESIS))
    assert not ThoughtChain("ses_1", GENESIS, None).step(one, thoughts.link(one, GENESIS))
    bare = thought()
    assert not ThoughtChain("ses_1", GENESIS, before).step(bare, thoughts.link(bare, GENESIS))


@pytest.mark.parametrize("size", [*range(1, 35), 127, 128, 129, 1_000])
def test_the_rows_of_a_tree_hold_every_proof_s336_s337(size: int) -> None:
    """S336, S337: each subtree a proof of RFC 6962 needs is a node of a level."""
    leaves = [hashlib.sha256(b"%d" % number).digest() for number in range(size)]
    tree = thoughts.levels(leaves)
    top = root(leaves)
    assert tree[-1] == [top]
    for index in range(0, size, max(1, size // 50)):
        nodes = []
        for span in inclusion_path(index, size):
            level, at = thoughts.place_of(span)
            nodes.append(tree[level][at])
        assert nodes == inclusion_proof(leaves, index)
        assert verify_inclusion(leaves[index], index, size, nodes, top)


def test_an_empty_session_has_no_tree() -> None:
    with pytest.raises(ValueError):
        thoughts.levels([])


def test_a_record_is_json_again_s322() -> None:
    """S322: what is spliced together is one object with the eleven members, sorted."""
    members = list(json.loads(thoughts.canonical(thought())))
    assert members == sorted(members) and len(members) == 11

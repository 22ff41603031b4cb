"""The golden tenant log through the writer and, apart from it, through the independent verifier."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from observatory.ledger import merkle, verify
from observatory.ledger.canonical import sha256_text
from observatory.ledger.chain import ChainHead, link

GOLDEN = json.loads((Path(__file__).parent / "golden/tenant_log.json").read_text("utf-8"))
EVENTS: list[dict[str, Any]] = GOLDEN["events"]
ROWS: list[verify.Row] = [
    (number, item["record_bytes"].encode(), bytes.fromhex(item["leaf_hash"]))
    for number, item in enumerate(EVENTS, 1)
]


@pytest.mark.req(324)
@pytest.mark.req(450)
def test_the_writer_makes_the_golden_records_hashes_and_leaves() -> None:
    head = ChainHead.genesis()
    for number, item in enumerate(EVENTS, 1):
        given = {key: value for key, value in item["event"].items() if key != "hash_chain"}
        linked = link(head, given, GOLDEN["tenant_id"])
        assert linked.record == item["record_bytes"].encode()
        assert linked.event_hash == item["event"]["hash_chain"]["event_hash"]
        assert "sha256:" + linked.record_hash.hex() == item["record_hash"] == sha256_text(linked.record)
        assert linked.leaf_hash.hex() == item["leaf_hash"]
        leaf = merkle.leaf_data(GOLDEN["tenant_id"], number, linked.event_hash, item["record_hash"])
        assert leaf == item["leaf"].encode() and merkle.leaf_hash(leaf).hex() == item["leaf_hash"]
        head = linked.head


@pytest.mark.req(324)
def test_the_verifier_accepts_the_golden_rows() -> None:
    check = verify.ChainCheck(GOLDEN["tenant_id"])
    assert check.feed(ROWS)
    last = EVENTS[-1]["event"]["hash_chain"]
    found = check.result(expected_head=(last["sequence_number"], last["event_hash"]))
    assert found.valid and found.events_verified == len(EVENTS) and found.first_break is None
    assert (
        found.first_hash == EVENTS[0]["event"]["hash_chain"]["event_hash"]
        and found.last_hash == last["event_hash"]
    )
    held = found.held
    assert held == verify.CheckedProperties(
        density=True, chain=True, record=True, leaf=True, columns=None, head=True
    )


def test_the_roots_of_every_prefix_are_the_golden_ones() -> None:
    tree = merkle.Accumulator()
    assert tree.root().hex() == GOLDEN["roots"][0]
    for row, golden in zip(ROWS, GOLDEN["roots"][1:], strict=True):
        assert row[2] is not None
        tree.append(row[2])
        assert tree.root().hex() == golden


def test_the_verifier_shares_no_code_with_the_writer() -> None:
    tree = ast.parse(Path(verify.__file__).read_text("utf-8"))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not [name for name in imported if name.startswith(("observatory", "None", "."))]
    allowed = {"collections", "functools", "hashlib", "itertools", "json", "msgspec", "typing"}
    assert {name.split(".")[0] for name in imported} <= allowed

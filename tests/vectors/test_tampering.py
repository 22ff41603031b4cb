"""The tamper matrix: every member of a record x edit, and every crime against the order of rows.

Rows are forged as someone with write access to the table would. Where the forger also recomputes what has no
key (trust.md §1.1), the leaf or a head held elsewhere must still convict.
"""

import copy
import json
import random
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from observatory.ledger.verify import ChainBreak, ChainCheck, ChainResult, Row

GOLDEN = json.loads((Path(__file__).parent / "golden/tenant_log.json").read_text("utf-8"))
TENANT: str = GOLDEN["tenant_id"]
EVENTS: list[dict[str, Any]] = [item["event"] for item in GOLDEN["events"]]
ROWS: list[Row] = [
    (number, item["record_bytes"].encode(), bytes.fromhex(item["leaf_hash"]))
    for number, item in enumerate(GOLDEN["events"], 1)
]
HEAD = (len(EVENTS), EVENTS[-1]["hash_chain"]["event_hash"])
VICTIM = 3


def run(rows: list[Row], tenant_id: str = TENANT, head: tuple[int, str] | None = HEAD) -> ChainResult:
    check = ChainCheck(tenant_id)
    check.feed(rows)
    return check.result(head)


def broken(found: ChainResult) -> ChainBreak:
    assert not found.valid and found.first_break is not None
    return found.first_break


def paths(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(value, dict):
        inner = [found for name, item in value.items() for found in paths(item, (*path, name))]
        return [*inner, path] if path else inner
    return [path]


def edited(value: Any) -> Any:
    if isinstance(value, dict):
        return {**value, "added": "x"}
    if isinstance(value, int):
        return value + 1
    return "x" if value is None else value[:-1] + ("0" if value[-1] != "0" else "1")


def change(event: dict[str, Any], path: tuple[str, ...], how: Callable[[dict[str, Any], str], None]) -> bytes:
    forged = copy.deepcopy(event)
    place = forged
    for name in path[:-1]:
        place = place[name]
    how(place, path[-1])
    return rfc8785.dumps(forged)


def set_edited(place: dict[str, Any], name: str) -> None:
    place[name] = edited(place[name])


def set_null(place: dict[str, Any], name: str) -> None:
    place[name] = None if place[name] is not None else 0


def remove(place: dict[str, Any], name: str) -> None:
    del place[name]


def with_record(record: bytes, leaf: bytes | None) -> list[Row]:
    return [*ROWS[: VICTIM - 1], (VICTIM, record, leaf), *ROWS[VICTIM:]]


@pytest.mark.req(324)
@pytest.mark.parametrize("how", [set_edited, set_null, remove])
@pytest.mark.parametrize("path", paths(EVENTS[VICTIM - 1]), ids="/".join)
def test_every_member_of_a_record_resists_an_edit(
    path: tuple[str, ...], how: Callable[[dict[str, Any], str], None]
) -> None:
    record = change(EVENTS[VICTIM - 1], path, how)
    found = run(with_record(record, ROWS[VICTIM - 1][2]))
    assert broken(found).sequence_number == VICTIM
    assert (
        found.events_verified == VICTIM - 1
        and found.last_hash == EVENTS[VICTIM - 2]["hash_chain"]["event_hash"]
    )


@pytest.mark.req(452)
@pytest.mark.parametrize(
    "name", ["severity_number", "severity_text", "parent_span_id", "trace_flags", "audit_event_id"]
)
def test_what_the_seeds_hash_leaves_out_is_caught_by_the_leaf(name: str) -> None:
    record = change(EVENTS[VICTIM - 1], (name,), set_edited)
    assert broken(run(with_record(record, ROWS[VICTIM - 1][2]))).what == "leaf"
    assert run(with_record(record, None)).valid, "without its leaf nothing in the seed's chain sees this edit"
    assert run(with_record(record, None)).held.leaf is None, "and the result says the leaf was not checked"


def test_a_column_beside_the_record_that_differs_is_named() -> None:
    event = EVENTS[VICTIM - 1]
    mirror: dict[str, object] = {
        name: event[name]
        for name in ("severity_number", "trace_id", "parent_span_id", "timestamp", "body", "attributes")
    }
    mirror |= event["hash_chain"] | {
        "tenant_id": TENANT,
        "av.message.type": event["attributes"]["av.message.type"],
        "event_type": event["body"]["event_type"],
        "av.recipient.entity_id": None,
        "record_hash": sha256(ROWS[VICTIM - 1][1]).digest(),
    }
    honest: Row = (VICTIM, ROWS[VICTIM - 1][1], ROWS[VICTIM - 1][2], mirror)
    assert run([*ROWS[: VICTIM - 1], honest, *ROWS[VICTIM:]]).valid
    for name, value in mirror.items():
        false = {**mirror, name: sha256(b"").digest() if isinstance(value, bytes) else edited(value)}
        row: Row = (VICTIM, ROWS[VICTIM - 1][1], ROWS[VICTIM - 1][2], false)
        found = broken(run([*ROWS[: VICTIM - 1], row, *ROWS[VICTIM:]]))
        assert (found.what, found.sequence_number) == ("column", VICTIM) and name in found.sentence


@pytest.mark.req(460)
@pytest.mark.parametrize("place", range(len(ROWS) - 1))
def test_a_deleted_row_is_a_gap(place: int) -> None:
    found = broken(run(ROWS[:place] + ROWS[place + 1 :]))
    assert (found.what, found.sequence_number) == ("density", place + 1)


@pytest.mark.req(460)
@pytest.mark.parametrize("place", range(len(ROWS) - 1))
def test_two_swapped_rows_are_seen_even_when_renumbered(place: int) -> None:
    swapped = [*ROWS[:place], ROWS[place + 1], ROWS[place], *ROWS[place + 2 :]]
    assert broken(run(swapped)).sequence_number == place + 1
    renumbered: list[Row] = [(number, row[1], row[2]) for number, row in enumerate(swapped, 1)]
    found = broken(run(renumbered))
    assert (found.what, found.sequence_number) == ("density", place + 1)


@pytest.mark.req(460)
def test_a_doubled_row_is_seen() -> None:
    assert broken(run([*ROWS[:4], ROWS[3], *ROWS[4:]])).what == "density"


@pytest.mark.parametrize("kept", range(len(ROWS)))
def test_a_cut_tail_is_seen_only_against_a_head_held_elsewhere(kept: int) -> None:
    assert run(ROWS[:kept], head=None).valid
    found = run(ROWS[:kept])
    assert broken(found).what == "head" and "ead moved" in broken(found).sentence
    assert found.held.head is False and found.events_verified == kept


def test_rows_beyond_the_head_move_it_too() -> None:
    early = (4, EVENTS[3]["hash_chain"]["event_hash"])
    assert broken(run(ROWS, head=early)).what == "head"


@pytest.mark.req(459)
def test_a_chain_is_not_another_tenants() -> None:
    found = broken(run(ROWS, tenant_id="tnt_2"))
    assert (found.what, found.sequence_number) == ("tenant", 1)


def seed_hash(event: dict[str, Any]) -> str:
    body = {
        "previous_hash": event["hash_chain"]["previous_hash"],
        "sequence_number": event["hash_chain"]["sequence_number"],
        "sender": event["attributes"].get("av.sender.entity_id"),
        "recipient": event["attributes"].get("av.recipient.entity_id"),
        **{name: event[name] for name in ("timestamp", "trace_id", "span_id", "body")},
    }
    return "sha256:" + sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def rewritten(forge: Callable[[list[dict[str, Any]]], None]) -> list[dict[str, Any]]:
    """The whole chain recomputed after the crime: the seed's functions accept it."""
    events = copy.deepcopy(EVENTS)
    forge(events)
    previous = EVENTS[0]["hash_chain"]["previous_hash"]
    for event in events:
        event["hash_chain"]["previous_hash"] = previous
        previous = event["hash_chain"]["event_hash"] = seed_hash(event)
    return events


def edit_summary(events: list[dict[str, Any]]) -> None:
    events[2]["body"]["summary"] = "nothing happened"


def relabel(events: list[dict[str, Any]]) -> None:
    for event in events:
        event["resource"]["av.tenant.id"] = "tnt_2"


def test_a_chain_relabelled_to_another_tenant_does_not_fit_its_leaves() -> None:
    rows: list[Row] = [
        (number, rfc8785.dumps(event), ROWS[number - 1][2])
        for number, event in enumerate(rewritten(relabel), 1)
    ]
    assert (broken(run(rows, tenant_id="tnt_2")).what, broken(run(rows)).what) == ("leaf", "tenant")


def test_a_rewritten_chain_is_convicted_by_the_leaves_or_by_the_head() -> None:
    events = rewritten(edit_summary)
    kept: list[Row] = [
        (number, rfc8785.dumps(event), ROWS[number - 1][2]) for number, event in enumerate(events, 1)
    ]
    assert (broken(run(kept)).what, broken(run(kept)).sequence_number) == ("leaf", 3)
    bare: list[Row] = [(number, record, None) for number, record, _ in (row[:3] for row in kept)]
    assert run(bare, head=None).valid, "whoever recomputes everything needs a signed head against him"
    assert broken(run(bare)).what == "head"


def test_a_jump_in_numbers_with_recomputed_links_is_seen() -> None:
    def jump(events: list[dict[str, Any]]) -> None:
        for event in events[2:]:
            event["hash_chain"]["sequence_number"] += 6

    events = rewritten(jump)
    rows: list[Row] = [
        (event["hash_chain"]["sequence_number"], rfc8785.dumps(event), None) for event in events
    ]
    assert (broken(run(rows)).what, broken(run(rows)).sequence_number) == ("density", 3)


@pytest.mark.parametrize(
    "respell",
    [
        lambda raw: raw.replace(b":", b": ", 1),
        lambda raw: raw + b"\n",
        lambda raw: raw.replace(b'"INFO"', b'"\\u0049NFO"'),
        lambda raw: raw.replace("é".encode(), b"\\u00e9"),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":1.0'),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":1e0'),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":0,"trace_flags":1'),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":9007199254740993'),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":-0'),
        lambda raw: raw.replace(b'"trace_flags":1', b'"trace_flags":NaN'),
        lambda raw: raw.replace(b'"trace_flags":1,', b"")[:-1] + b',"trace_flags":1}',
        lambda raw: b"[" + raw + b"]",
        lambda raw: b"",
        lambda raw: b"{}",
        lambda raw: b"null",
        lambda raw: raw[:-1],
        lambda raw: raw.replace("é".encode(), b"\xff"),
        lambda raw: b"[" * 100_000,
    ],
)
def test_other_bytes_for_one_event_are_refused_even_without_a_leaf(respell: Callable[[bytes], bytes]) -> None:
    raw = ROWS[VICTIM - 1][1]
    assert respell(raw) != raw
    found = broken(run(with_record(respell(raw), None)))
    assert (found.what, found.sequence_number) == ("record", VICTIM)


def test_no_flipped_bit_passes_and_none_makes_the_verifier_fall() -> None:
    rng = random.Random(36)
    for _ in range(3_000):
        raw = bytearray(ROWS[VICTIM - 1][1])
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        assert broken(run(with_record(bytes(raw), ROWS[VICTIM - 1][2]))).sequence_number == VICTIM


def test_a_false_leaf_is_named() -> None:
    found = run(with_record(ROWS[VICTIM - 1][1], ROWS[0][2]))
    assert broken(found).what == "leaf" and found.held.leaf is False and found.held.chain is True

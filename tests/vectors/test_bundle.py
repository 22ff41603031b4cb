"""The tamper matrix of an evidence bundle: whatever is done to it is found, and named for what it is.

Every crime is committed twice where it can be: bare, so that the manifest convicts, and with the manifest
written anew, so that only the proofs are left to tell.
"""

from __future__ import annotations

import io
import json
import random
import re
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from observatory.ledger import bundle, thoughts
from observatory.ledger.verify_bundle import CHECKS
from observatory.ledger.verify_evidence import trace_of
from observatory.protocol.otel import trace_id_of_session
from tests.vectors.forging import (
    ORIGIN,
    SESSION,
    Files,
    Json,
    Log,
    check,
    honest,
    lines_of,
    make,
    relisted,
    whats,
    with_lines,
)


@pytest.mark.req(101, 263, 313, 457)
def test_an_honest_bundle_holds_in_every_respect_s383() -> None:
    """S383."""
    found = check(dict(honest().files))
    assert found.valid and found.checks == dict.fromkeys(CHECKS, True) and not found.breaks
    assert (found.events, found.records, found.origin, found.tree_size) == (7, 4, ORIGIN, 15)
    assert found.pinned and not check(dict(honest().files), []).pinned


def test_the_same_state_gives_the_same_bytes_s385() -> None:
    """S385."""
    written = []
    for _ in range(2):
        target = io.BytesIO()
        bundle.write(target, make(Log()).files)
        written.append(target.getvalue())
    assert written[0] == written[1]


def test_a_session_that_was_not_sealed_says_so_s384() -> None:
    """S384: what there is nothing to check by is not called held."""
    found = check(dict(make(sealed=False).files))
    assert found.valid and found.checks["seal"] is None and found.checks["missing_tail"] is None
    assert found.checks["records"] and found.checks["anchored"]


def test_a_session_without_thoughts_is_events_and_proofs_s384() -> None:
    """S384."""
    found = check(of_messages(SESSION))
    assert found.valid and found.events == 1 and found.checks["inclusion"]
    assert [found.checks[name] for name in ("records", "seal", "anchored", "missing_tail")] == [None] * 4


def of_messages(session_id: str) -> Files:
    """A session of one message, between two of others."""
    log = Log()
    for trace_id in ("0" * 31 + "1", trace_id_of_session(session_id), "0" * 31 + "2"):
        log.add("message_delivered", {"trace_id": trace_id})
    said = {"session": None, "thoughts": (), "seal": None, "older": None, "events": [log.event(2)]}
    signed = {"session_id": session_id, "checkpoint": log.checkpoint(), "tree_size": 3}
    return bundle.files(msgspec.structs.replace(honest().evidence, **said, **signed))


NAMES = ["ses_1", "", "0" * 32, "0" * 31 + "a", "00000000-0000-0000-0000-000000000000", "straße",
         "01A1E39F-0ec8-7ef7-a804-5ef417edd060", "01a1e39f0ec87ef7a8045ef417edd06g"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_events_of_one_session_are_no_evidence_of_another_s386(name: str) -> None:
    """S386: true events, truly signed, under the name of a session they are not of."""
    assert trace_of(name) == trace_id_of_session(name)
    files = of_messages(name)
    assert check(files).valid
    found = check(relisted(files, session_id="ses_else"))
    assert whats(found) == {"anchored"} and "Event 2 is not of this session" in found.breaks[0].sentence


# --- each member of each line ---


def edited(value: Any) -> Any:
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return value[:-1] if value else ["x"]
    if isinstance(value, dict):
        return {**value, "added": "x"}
    if value is None:
        return "x"
    text = str(value)
    at = len(text) // 2
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


LINES = {
    "events.jsonl": {"chain", "inclusion", "anchored", "records", "missing_tail"},
    "proofs.jsonl": {"inclusion"},
    "thoughts.jsonl": {"records"},
    "seal_proofs.jsonl": {"seal"},
}
CELLS = [
    (name, number, member)
    for name in LINES
    for number, line in enumerate(lines_of(honest().files, name))
    for member in line
]


@pytest.mark.req(313, 457, 458)
@pytest.mark.parametrize("name", LINES)
def test_every_cell_of_every_line_resists_an_edit_s386(name: str) -> None:
    """S386: edited, emptied or taken away, under a manifest that fits."""
    for _, number, member in [cell for cell in CELLS if cell[0] == name]:
        for how in ("edited", "null", "gone", "more"):
            lines = lines_of(honest().files, name)
            if how == "gone":
                del lines[number][member]
            elif how == "more":
                lines[number]["note"] = "x"
            else:
                lines[number][member] = edited(lines[number][member]) if how == "edited" else None
            found = check(relisted(with_lines(honest().files, name, lines)))
            assert not found.valid and whats(found) & LINES[name], (number, member, how)


def inside(name: str) -> list[tuple[int, tuple[str, ...]]]:
    """Every member of every record that a line carries as text."""
    found: list[tuple[int, tuple[str, ...]]] = []
    for number, line in enumerate(lines_of(honest().files, name)):
        stack: list[tuple[tuple[str, ...], Any]] = [((), json.loads(line["record"]))]
        while stack:
            path, value = stack.pop()
            if isinstance(value, dict):
                stack += [((*path, key), item) for key, item in value.items()]
            if path:
                found.append((number, path))
    return found


@pytest.mark.req(313, 458)
@pytest.mark.parametrize(("name", "what"), [("events.jsonl", "chain"), ("thoughts.jsonl", "records")])
@pytest.mark.parametrize("recomputed", [False, True], ids=["bare", "hashes recomputed"])
def test_every_member_inside_a_record_resists_an_edit_s386(name: str, what: str, recomputed: bool) -> None:
    """S386: also when whatever hash stands beside it is computed anew."""
    for number, path in inside(name):
        lines = lines_of(honest().files, name)
        record = json.loads(lines[number]["record"])
        place = record
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = edited(place[path[-1]])
        if recomputed:
            rehash(name, record, lines, number)
        else:
            lines[number]["record"] = canonical(record)
        if recomputed and path == ("hash_chain", "event_hash"):
            continue  # computed anew it is what it was
        found = check(relisted(with_lines(honest().files, name, lines)))
        assert not found.valid, path
        assert whats(found) & {what, "inclusion", "anchored", "seal"}, (path, found.breaks)


def canonical(record: Json) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rehash(name: str, record: Json, lines: list[Json], number: int) -> None:
    """As a forger would: every hash from here on, as far as it needs no key."""
    if name == "events.jsonl":
        chain = record["hash_chain"] if isinstance(record.get("hash_chain"), dict) else {}
        if chain.keys() == {"event_hash", "previous_hash", "sequence_number"}:
            hashed = {
                "body": record["body"],
                "previous_hash": chain["previous_hash"],
                "recipient": record["attributes"].get("av.recipient.entity_id"),
                "sender": record["attributes"].get("av.sender.entity_id"),
                "sequence_number": chain["sequence_number"],
                **{key: record[key] for key in ("span_id", "timestamp", "trace_id")},
            }
            text = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
            chain["event_hash"] = "sha256:" + sha256(text.encode()).hexdigest()
        lines[number]["record"] = canonical(record)
        return
    lines[number]["record"] = canonical(record)
    parent = bytes.fromhex(lines[number]["parent_chain_hash"][7:])
    for line in lines[number:]:
        content = sha256(line["record"].encode()).digest()
        line["content_hash"], line["parent_chain_hash"] = thoughts.text_of(content), thoughts.text_of(parent)
        parent = sha256(content + parent).digest()
        line["chain_hash"] = thoughts.text_of(parent)


# --- whole lines and whole files ---


def without(name: str, number: int) -> Files:
    lines = lines_of(honest().files, name)
    del lines[number]
    return with_lines(honest().files, name, lines)


def swapped(name: str, number: int) -> Files:
    lines = lines_of(honest().files, name)
    lines[number - 1], lines[number] = lines[number], lines[number - 1]
    return with_lines(honest().files, name, lines)


def doubled(name: str, number: int) -> Files:
    lines = lines_of(honest().files, name)
    return with_lines(honest().files, name, [*lines[:number], lines[number], *lines[number:]])


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("how", [without, swapped, doubled])
def test_a_line_deleted_swapped_or_doubled_is_found_s386(name: str, how: Callable[[str, int], Files]) -> None:
    """S386."""
    for number in range(1, len(lines_of(honest().files, name))):
        found = check(relisted(how(name, number)))
        assert not found.valid and whats(found) - {"manifest"}, number


OPTIONAL = {"consistency.json"}  # left out, a check less is claimed
WORDS_ONLY = {"README.txt"}  # proves nothing


@pytest.mark.parametrize("name", [name for name in honest().files if name != "manifest.json"])
def test_a_file_edited_cut_exchanged_or_gone_is_found_s386(name: str) -> None:
    """S386: by the manifest; and by what it proves when the manifest was written anew."""
    data, rng = honest().files[name], random.Random(name)
    others = [other for other in honest().files if other not in (name, "manifest.json")]
    crimes: list[Files] = [
        dict(honest().files) | {name: data[: len(data) // 2]},
        dict(honest().files) | {name: b""},
        dict(honest().files) | {name: honest().files[rng.choice(others)]},
        {other: held for other, held in honest().files.items() if other != name},
    ]
    for files in crimes:
        bare, anew = check(files), check(relisted(files))
        assert "manifest" in whats(bare) and name in str(bare.breaks), "the manifest names the file"
        if name in OPTIONAL and name not in files:
            assert anew.checks[name.removesuffix(".json")] is None
        elif name not in WORDS_ONLY:
            assert not anew.valid, f"{name}: {anew}"


def test_a_file_nobody_named_is_found_s386() -> None:
    """S386."""
    assert "manifest" in whats(check(dict(honest().files) | {"extra.txt": b"x"}))
    for spoilt in (b"", b"{}", b"[", b"\xff", b'{"format":"observatory-evidence/2"}'):
        assert whats(check(dict(honest().files) | {"manifest.json": spoilt})) == {"manifest"}


def test_no_flipped_bit_passes_and_nothing_makes_the_verifier_fall_s386() -> None:
    """S386: 1,000 bits over all files that prove something."""
    rng = random.Random(386)
    names = [name for name in honest().files if name not in WORDS_ONLY | {"manifest.json"}]
    for _ in range(1_000):
        name = rng.choice(names)
        raw = bytearray(honest().files[name])
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        files = dict(honest().files) | {name: bytes(raw)}
        assert not check(files).valid
        found = check(relisted(files))
        assert not found.valid or same_meaning(name, bytes(raw)), (name, bytes(raw))


def same_meaning(name: str, raw: bytes) -> bool:
    """Blanks of pretty JSON may be other blanks; a bit cannot make a text JSON with another meaning pass."""
    if name not in ("seal.json", "session.json", "consistency.json"):
        return False
    try:
        return bool(json.loads(raw) == json.loads(honest().files[name]))
    except ValueError:
        return False


HOSTILE = [
    "10" * 2_400, "-1", "1e400", "NaN", "1.5", "true", "null", "[]", "{}", '""', '"\\ud800"', '"\\u0000"',
    "[" * 100_000, '{"a":' * 50_000, '"' + "A" * 10_000 + '"', "18446744073709551616",
]  # fmt: skip


def test_whatever_stands_where_a_value_must_nothing_raises_s384() -> None:
    """S384: numbers without end, nesting without end, halves of characters."""
    rng = random.Random(384)
    for name in honest().files:
        text = honest().files[name].decode()
        spots = [match.span() for match in re.finditer(r'(?<=:) ?("[^"]*"|-?\d+|\[|\{)', text)]
        for start, end in rng.sample(spots, min(3, len(spots))):
            for value in HOSTILE:
                files = dict(honest().files) | {name: f"{text[:start]}{value}{text[end:]}".encode()}
                assert not check(files if name == "manifest.json" else relisted(files)).valid or value == "[]"
    assert not check({}).valid and not check({"manifest.json": b"{}"}).valid
    for vkey in ("", "+", "a+b+c", "\ud800+1+2", "x" * 100_000):
        assert not check(dict(honest().files), [vkey]).valid


@pytest.mark.parametrize("ids", [b"[{}]", b"[[]]", b"[null]", b'["evt_2",{}]'])
def test_a_record_that_goes_by_what_is_no_name_is_broken_s384(ids: bytes) -> None:
    """S384: whoever has the key can sign anything."""
    made = make(change=lambda index, one: msgspec.structs.replace(one, audit_event_ids=ids))
    assert "Record 0 does not have the members" in str(check(dict(made.files)).breaks)


@pytest.mark.parametrize("name", [[], {}, None, 7])
def test_an_event_whose_id_is_no_name_is_judged_s384(name: Any) -> None:
    """S384."""
    log, add = Log(), Log.add
    log.add = lambda kind, **body: add(log, kind, {"audit_event_id": name}, **body)  # type: ignore[method-assign]
    assert not check(dict(make(log).files)).valid


FLOODS = {
    "events.jsonl": b"\n",
    "proofs.jsonl": b'{"sequence_number":2,"hashes":[]}\n',
    "seal_proofs.jsonl": b'{"index":0,"hashes":[]}\n',
    "vkeys.txt": b"\n",
}


@pytest.mark.parametrize("name", FLOODS)
def test_lines_without_end_cost_no_memory_s384(name: str) -> None:
    """S384: a few bytes packed may be very many lines."""
    size = 2 << 20
    files = relisted(dict(honest().files) | {name: FLOODS[name] * (size // len(FLOODS[name]))})
    tracemalloc.start()
    try:
        assert not check(files).valid
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()

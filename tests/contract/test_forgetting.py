"""Words of thoughts go by an order; chain, seal, bundle and import hold as before, and say so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from observatory.cli.terminal import CommandFailed
from observatory.features.backup.cli_export import export
from observatory.features.backup.cli_import import import_
from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import commands_thoughts as forgetting
from observatory.features.redaction.worker import DAY_NS
from observatory.ledger.verify_bundle import check_bundle
from observatory.pipeline.state import HOME_TENANT, SubmissionResult
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.test_evidence import Office
from tests.contract.test_relay import events
from tests.contract.test_shredding import keeper
from tests.contract.test_thought_export import TABLES, edited, lived, rows_of
from tests.contract.test_thought_rows import disarmed
from tests.contract.test_thoughts import reason
from tests.contract.thinking import CONTENT, SESSION, TASK, Thinker
from tests.samples import envelope
from tests.vectors.forging import lines_of, relisted, with_lines

Json = dict[str, Any]


def shred(
    harness: Harness, *record_ids: str, session_id: str = SESSION, intent: bool = True
) -> SubmissionResult:
    act = forgetting.shred(harness.admin(), session_id, record_ids, intent, "asked for", harness.now())
    return harness.submit(act)[0]


def ids(ann: Thinker, session_id: str = SESSION) -> list[str]:
    return [row["record_id"] for row in ann.records(session_id)]


def test_words_go_by_an_order_and_the_seal_holds_s610(harness: Harness) -> None:
    """S610: every hash and row stays; verifying says how many are gone; nothing is ordered twice."""
    ann = Thinker(harness)
    root = ann.whole().answer["root"]
    before = ann.records()
    done = shred(harness, *ids(ann)).answer
    assert done.shredded == 4
    for old, new in zip(before, ann.records(), strict=True):
        assert (bytes(new["content"]), new["shredded_by"]) == (b"", done.event)
        assert {**old, "content": b"", "shredded_by": done.event} == {**new, "content": b""}
    (event,) = events(harness, "thoughts_shredded")
    received = {name: event["body"][name] for name in ("session_id", "records", "intent", "reason", "cause")}
    assert received == {
        "session_id": SESSION, "records": [0, 1, 2, 3], "intent": True, "reason": "asked for",
        "cause": "order",
    }  # fmt: skip
    assert ann.row()["intent"] == "" and ann.row()["intent_shredded_by"] == done.event
    verdict = ann.verify().answer
    assert verdict == {"valid": True, "records": 4, "first_broken_index": None, "shredded": 4}
    assert ann.seal().answer["root"] == root
    assert shred(harness, *ids(ann)).answer == shredding.Shredded(shredded=0)
    assert shred(harness, session_id="ses_none").code == 404


def test_a_repeat_is_known_by_its_hash_s611(harness: Harness) -> None:
    """S611: the same record again is answered as the first was, other words are a conflict; so is a start."""
    ann = Thinker(harness)
    ann.start()
    first = ann.think("plan", record_id="rec_1")
    shred(harness, "rec_1")
    assert ann.think("plan", record_id="rec_1").answer == first.answer
    other = ann.think("plan", record_id="rec_1", content={"trajectory": "another"})
    assert reason(other) == (409, "id_conflict")
    assert ann.start().code == 201
    assert ann.think("analysis").answer["index"] == 1, "a session whose words went goes on"
    assert ann.close().code == 200
    assert ann.verify().answer["shredded"] == 1


REFUSED = (
    "UPDATE thought_records SET content = {x} WHERE record_index = 0",
    "UPDATE thought_records SET shredded_by = NULL WHERE record_index = 0",
    "UPDATE thought_records SET shredded_by = 1 WHERE record_index = 0",
    "UPDATE thought_records SET content = {none} WHERE record_index = 1",
    "UPDATE thought_records SET shredded_by = 1 WHERE record_index = 1",
    "UPDATE thought_records SET content = {none}, shredded_by = 1, author = 'x' WHERE record_index = 1",
    "UPDATE thought_sessions SET intent = 'x'",
    "UPDATE thought_sessions SET intent_shredded_by = NULL",
    "UPDATE thought_sessions SET intent_shredded_by = 1",
    "DELETE FROM thought_records",
)


def test_the_database_lets_words_go_once_and_nothing_else_s612(harness: Harness) -> None:
    """S612: what is gone does not come back, no word goes without an order, nor anything beside it."""
    ann = Thinker(harness)
    ann.start()
    ann.think("plan", record_id="rec_1")
    ann.think("analysis")
    shred(harness, "rec_1")
    lite, before = harness.name == "sqlite", ann.records()
    x, none = ("x'78'", "x''") if lite else ("'x'::bytea", "''::bytea")
    for statement in REFUSED:
        assert harness.refuses(statement.format(x=x, none=none)), statement
    assert ann.records() == before


def test_words_that_are_gone_without_an_order_are_a_break_s613(harness: Harness) -> None:
    """S613: emptied past the gateway, in the name of another event, of another record or of nobody."""
    ann = Thinker(harness)
    ann.whole()
    names = ids(ann)
    order = shred(harness, names[0], intent=False).answer.event
    empty = "x''" if harness.name == "sqlite" else "''::bytea"
    for by in ("NULL", "1", "999999", str(order)):
        disarmed(
            harness,
            f"UPDATE thought_records SET content = {empty}, shredded_by = {by} WHERE record_index = 2",
        )
        assert ann.verify().answer["first_broken_index"] == 2, by
    shred(harness, names[1])
    disarmed(harness, f"UPDATE thought_sessions SET intent_shredded_by = {order}")
    assert ann.verify().answer["first_broken_index"] == 0, "that order was not of the intent"


def test_evidence_of_shredded_thoughts_holds_and_a_false_claim_is_found_s614(office: Office) -> None:
    """S614: the bundle holds without the words; who strips words and claims an order is found."""
    harness, ann = office.harness, Thinker(office.harness)
    honest = office.evidence()
    shred(harness, *ids(ann)[:2])
    office.log_sealer.look()
    files = office.evidence()
    found = check_bundle(files, [office.vkey])
    assert (found.valid, found.shredded, found.records) == (True, 2, 4), found.breaks
    assert b"look, decide, tell" in honest["thoughts.jsonl"]
    assert not any(b"look, decide, tell" in content for content in files.values())

    def forged(change: Callable[[int, Json, Json], None]) -> list[str]:
        lines = lines_of(files, "thoughts.jsonl")
        for place, line in enumerate(lines):
            record = json.loads(line["record"])
            change(place, line, record)
            line["record"] = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        bent = check_bundle(relisted(with_lines(files, "thoughts.jsonl", lines)), [office.vkey])
        return [] if bent.valid else [one.what for one in bent.breaks]

    order = json.loads(files["thoughts.jsonl"].splitlines()[0])["shredded_by"]

    def claimed(place: int, line: Json, record: Json) -> None:
        if place == 2:
            del record["content"]
            line["shredded_by"] = order

    assert forged(lambda place, line, record: None) == []
    assert "records" in forged(claimed)
    for member, value in (("author", "usr_else"), ("task_id", "x"), ("created_at", "x"), ("type", "plan")):

        def told_otherwise(
            place: int, _: Json, record: Json, member: str = member, value: str = value
        ) -> None:
            if place == 1:
                record[member] = value

        assert "records" in forged(told_otherwise), member


@pytest.fixture
def office(harness: Harness, tmp_path: Path) -> Office:
    return Office(harness, tmp_path)


def test_an_import_follows_the_orders_s615(harness: Harness, tmp_path: Path) -> None:
    """S615: rows there are rows here; words that are missing without an order are refused."""
    ann, out = lived(harness), tmp_path / "trail.jsonl"
    shred(harness, *ids(ann)[1:3])
    export(out=out, db=harness.url)
    path = tmp_path / "new" / "observatory.db"
    import_(in_=out, data=str(path.parent), db=f"sqlite:///{path}")
    there = SqliteHarness(path)
    there.open()
    try:
        for table in TABLES:
            assert rows_of(there, table) == rows_of(harness, table), table
        assert Thinker(there).verify().answer["shredded"] == 2
    finally:
        there.end()

    def stripped(line: Json) -> None:
        if line.get("words") == json.dumps(CONTENT["plan"], separators=(",", ":")):
            line["words"] = ""

    edited(out, stripped)
    other = tmp_path / "other" / "observatory.db"
    with pytest.raises(CommandFailed, match="no event orders its shredding"):
        import_(in_=out, data=str(other.parent), db=f"sqlite:///{other}")


def test_retention_takes_thoughts_only_if_that_is_said_s616(harness: Harness) -> None:
    """S616: by age, in orders of one session each; off without a word of it, like all of retention."""
    ann = Thinker(harness)
    ann.whole()
    ann.think("plan", session_id="ses_2", task_id=TASK)
    clock, _ = keeper(harness)
    harness.submit(redaction_rules.set_retention(harness.admin(), 30, harness.now()))
    assert harness.read(clock.due(harness.now() + 31 * DAY_NS)) == 0
    harness.submit(redaction_rules.set_retention(harness.admin(), 30, harness.now(), thoughts=True))
    assert harness.read(clock.due(harness.now() + 29 * DAY_NS)) == 0
    later = harness.wait(20 * DAY_NS)
    ann.think("analysis", session_id="ses_2", task_id=TASK)
    assert harness.read(clock.due(later + 11 * DAY_NS)) == 5
    assert [bool(row["content"]) for row in ann.records("ses_2")] == [False, True]
    received = [
        (event["body"]["cause"], event["body"]["records"]) for event in events(harness, "thoughts_shredded")
    ]
    assert received == [("retention", [0, 1, 2, 3]), ("retention", [0])]
    assert harness.read(clock.due(later + 11 * DAY_NS)) == 0
    assert ann.verify().answer["valid"] and ann.verify("ses_2").answer["valid"]


def test_what_a_heartbeat_said_of_its_work_goes_with_it_s607(harness: Harness) -> None:
    """S607: of the pulse too; what was said later, and the pulse itself, stay."""

    def beat(title: str) -> int:
        task = {"task_id": "tsk_1", "description": title}
        sender = {"entity_id": "agt_1", "entity_type": "agent"}
        body = envelope("heartbeat", sender=sender, payload={"agent_status": "working", "current_task": task})
        (verdict,) = harness.send(body)
        assert verdict.code == 202, verdict
        return int(verdict.answer.sequence_number)

    def task() -> str:
        (row,) = harness.read(harness.store.rows(HOME_TENANT, "pulses"))
        assert row["heartbeat_ns"] and row["status"] == "working"
        return str(row["task"])

    def gone(number: int) -> None:
        assert (
            harness.submit(shredding.shred(harness.admin(), [number], "asked", harness.now()))[0].code == 200
        )

    first, second = beat("about Zanzibar"), beat("about Helsinki")
    gone(first)
    assert "Helsinki" in task()
    gone(second)
    assert task() == "None"

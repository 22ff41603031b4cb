"""The decision trail against who may write the database, and against who may only speak at its doors."""

from __future__ import annotations

import json

import pytest

from observatory.features.thoughts import commands_sealing as concluding
from observatory.ledger import thoughts as ledger
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness, SqliteHarness
from tests.contract.test_redaction import MAIL, add, remove
from tests.contract.test_relay import AGENT, events, new_message
from tests.contract.test_relay import SESSION as MESH
from tests.contract.test_thought_rows import ELSE, disarmed
from tests.contract.test_thoughts import reason, received
from tests.contract.thinking import SESSION, TASK, Thinker


@pytest.fixture
def ann(harness: Harness) -> Thinker:
    return Thinker(harness)


def cut(ann: Thinker, harness: Harness) -> None:
    """The last two records, the tree and the seal are gone, and every row says so alike."""
    last = ann.records()[1]["chain_hash"]
    disarmed(
        harness,
        "DELETE FROM thought_records WHERE record_index >= 2;DELETE FROM merkle_nodes;"
        f"UPDATE thought_sessions SET records = 2, last_chain_hash = '{last}', sealed_ns = NULL, "
        "root = NULL, verified_records = NULL, open_tasks = 1",
    )
    on = "" if isinstance(harness, SqliteHarness) else " ON thought_tasks"
    harness.sql(f"DROP TRIGGER thought_tasks_closed{on}")
    harness.sql("UPDATE thought_tasks SET state = 'open', closed_by = NULL")


def test_a_tail_that_was_cut_off_is_missed_and_never_sealed_again_s333(
    ann: Thinker, harness: Harness
) -> None:
    """S333: the trail has more events of this session than there are records; also after new ones."""
    ann.whole()
    cut(ann, harness)
    assert ann.verify().answer == {"valid": False, "records": 2, "first_broken_index": 2}
    assert ann.think("reflection").code == 201
    assert ann.verify().answer == {"valid": False, "records": 3, "first_broken_index": 3}
    assert reason(ann.seal()) == (409, "chain_broken")
    assert len(received(harness, "thought_session_sealed")) == 1


def test_a_session_that_was_taken_away_whole_cannot_be_begun_anew_s333(
    ann: Thinker, harness: Harness
) -> None:
    """S333: its first start is still told of."""
    ann.whole()
    disarmed(harness, "DELETE FROM thought_records;DELETE FROM merkle_nodes;DELETE FROM thought_sessions")
    on = "" if isinstance(harness, SqliteHarness) else " ON thought_tasks"
    harness.sql(f"DROP TRIGGER thought_tasks_no_delete{on}")
    harness.sql("DELETE FROM thought_tasks")
    assert ann.start().code == 201
    assert ann.verify().answer == {"valid": False, "records": 0, "first_broken_index": 0}


def test_a_hashed_text_has_one_reading_s322(ann: Thinker, harness: Harness) -> None:
    """S322, S333: words moved over the borders of columns, so that the very same text is hashed."""
    ann.start()
    forged = {"observation": "EVIL"}
    long_ago = "2020-01-01T00:00:00.000000000Z"
    content = {
        "a": 1,
        "author": "usr_victim",
        "content": forged,
        "created_at": long_ago,
        "index": 0,
        "predecessor_chain_hash": None,
        "record_id": "rec_m",
        "references": [],
        "trajectory": "x",
        "zz": 1,
    }
    ann.think("plan", content=content, record_id="rec_m")
    (row,) = ann.records()
    thought = ledger.Thought(
        record_id="rec_m",
        session_id=SESSION,
        task_id=TASK,
        index=0,
        type="plan",
        content=bytes(row["content"]),
        author=row["author"],
        created_at=row["created_at"],
    )
    whole = ledger.canonical(thought).decode()
    assert ledger.text_of(ledger.content_hash(thought)) == row["content_hash"]
    tail = f',"session_id":"{SESSION}","task_id":"{TASK}","type":"plan"}}'
    event_ids, _, rest = whole.removesuffix(tail).partition(',"author":"usr_victim","content":')
    other, _, rest = rest.partition(f',"created_at":"{long_ago}"')
    refs = rest.partition('"references":')[2]
    assert json.loads(other) == forged
    disarmed(harness, "SELECT 1")
    harness.sql(
        "UPDATE thought_records SET event_ids = :ids, content = :content, author = 'usr_victim', "
        "created_at = :at, refs = :refs",
        ids=event_ids.removeprefix('{"audit_event_ids":'),
        content=other.encode(),
        at=long_ago,
        refs=refs,
    )
    assert ann.verify().answer == {"valid": False, "records": 1, "first_broken_index": 0}


@pytest.mark.parametrize(
    ("change", "index"),
    [
        ("intent = 'forged'", 0),
        ("proof_grade = 0", 0),
        ("task_id = 'forged'", 0),
        ("opened_by = 'usr_mallory'", 0),
        ("predecessor_session_id = 'ses_x'", 0),
        ("sealed_ns = 1", 4),
        ("ended_ns = 5", 4),
        ("ended_ns = NULL", 4),
        ("verified_records = 1", 4),
        ("open_tasks = 1", 4),
        ("sealed_ns = NULL, root = NULL", 4),
    ],
)
def test_a_sessions_row_says_what_its_events_told_s333(
    ann: Thinker, harness: Harness, change: str, index: int
) -> None:
    """S333: every column that its start, its seal and its end are on record with."""
    ann.whole()
    ann.end()
    assert ann.verify().answer["valid"]
    disarmed(harness, f"UPDATE thought_sessions SET {change}")
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": index}


def test_a_predecessor_put_there_before_the_first_record_is_found_s333(
    ann: Thinker, harness: Harness
) -> None:
    """S333: its start was told without one."""
    ann.start()
    disarmed(
        harness,
        f"UPDATE thought_sessions SET predecessor_chain_hash = {ELSE}, predecessor_session_id = 'ses_x'",
    )
    ann.think("plan")
    assert ann.verify().answer == {"valid": False, "records": 1, "first_broken_index": 0}


def test_a_flipped_byte_of_an_event_is_a_break_s333(ann: Thinker, harness: Harness) -> None:
    """S333: no text any more, so it tells of nothing."""
    ann.whole()
    is_lite = isinstance(harness, SqliteHarness)
    table, key = ("audit_log", "key & 1099511627775") if is_lite else ("audit_events", "sequence_number")
    number = ann.records()[1]["sequence_number"]
    if is_lite:
        for (name,) in harness.sql(
            f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
        ):
            harness.sql(f"DROP TRIGGER {name}")
    else:
        harness.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    ((record,),) = harness.sql(f"SELECT record FROM {table} WHERE {key} = {number}")
    bent = bytes(record).replace(b"thought_recorded", b"thought\xffrecorded")
    harness.sql(f"UPDATE {table} SET record = :bent WHERE {key} = {number}", bent=bent)
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 1}


@pytest.mark.parametrize("column", ["author", "refs", "chain_hash"])
def test_text_that_is_no_text_is_a_break_s333(sqlite_harness: SqliteHarness, column: str) -> None:
    """S333: SQLite takes any bytes for text; reading them fails nobody."""
    ann = Thinker(sqlite_harness)
    ann.whole()
    bent = f"UPDATE thought_records SET {column} = CAST(x'ff41' AS TEXT) WHERE record_index = 1"
    disarmed(sqlite_harness, bent)
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 1}


BENT = {
    "caller": 0, "opened_by": 0, "intent": 0, "task_id": 0, "started_at": 0, "genesis": 0,
    "predecessor_session_id": 0, "predecessor_chain_hash": 0, "last_chain_hash": 3, "root": 4,
}  # fmt: skip


def test_a_session_that_is_no_text_is_a_break_s618(sqlite_harness: SqliteHarness) -> None:
    """S618: in any column of its row; found by verifying, read under the lock, and failing nobody."""
    harness, ann = sqlite_harness, Thinker(sqlite_harness)
    ann.whole()
    for column, index in BENT.items():
        ((before,),) = harness.sql(f"SELECT {column} FROM thought_sessions")
        disarmed(harness, f"UPDATE thought_sessions SET {column} = CAST(x'ff41' AS TEXT)")
        row = harness.read(harness.store.thought_session(HOME_TENANT, SESSION))
        assert row is not None
        act = concluding.verify(ann.voice, SESSION, ann.seen_of(row), harness.now())
        assert harness.submit(act)[0].answer["first_broken_index"] == index, column
        harness.sql(f"UPDATE thought_sessions SET {column} = :before", before=before)
    assert ann.verify().answer["valid"]


def test_a_verification_nobody_made_counts_for_nothing_s619(ann: Thinker, harness: Harness) -> None:
    """S619: what is told as verified is held against its event; so no seal is had without one."""
    ann.start()
    ann.think("plan")
    ann.verify()
    assert ann.think("reflection").code == 201
    number = ann.row()["verified_by"]
    for change in (
        "verified_records = 2",
        "verified_by = 1",
        "verified_by = NULL",
        "verified_records = NULL",
    ):
        disarmed(harness, f"UPDATE thought_sessions SET {change}")
        assert ann.verify().answer["first_broken_index"] == 2, change
        disarmed(harness, f"UPDATE thought_sessions SET verified_records = 1, verified_by = {number}")
    assert ann.seal().code == 200


# --- who comes too late ---


def test_a_verification_that_lost_the_race_against_the_closing_does_not_count_s334(
    ann: Thinker, harness: Harness
) -> None:
    """S334, S339: it had not seen the reflection that was written before it was decided."""
    ann.start()
    ann.think("plan")
    late = concluding.verify(ann.voice, SESSION, ann.seen(), harness.now())
    ann.think("reflection")
    (verdict,) = ann.do(late)
    assert verdict is concluding.SESSION_CHANGED and received(harness, "thought_chain_verified") == []
    ann.verify()
    assert reason(ann.seal()) == (409, "not_verified")


def test_a_slow_verification_does_not_undo_a_newer_one_s334(ann: Thinker, harness: Harness) -> None:
    """S334: what it saw is not the whole any more."""
    ann.start()
    ann.think("plan")
    slow = concluding.verify(ann.voice, SESSION, ann.seen(), harness.now())
    ann.think("analysis")
    ann.verify()
    ann.think("reflection")
    assert ann.do(slow)[0] is concluding.SESSION_CHANGED
    assert ann.seal().code == 200


def test_what_is_written_while_it_is_looked_at_breaks_nothing_s339(ann: Thinker, harness: Harness) -> None:
    """S339: the trail is a step ahead of the row that was read; it is looked at again, or has moved on."""
    ann.start()
    ann.think("plan")
    before = ann.row()
    ann.verify()
    ann.think("reflection")
    seen = ann.seen_of(before)
    assert seen.is_valid
    assert ann.do(concluding.verify(ann.voice, SESSION, seen, harness.now()))[0] is concluding.SESSION_CHANGED
    before = ann.row()
    ann.seal()
    assert ann.seen_of(before).is_valid, "sealed meanwhile"
    before = ann.row()
    ann.end()
    assert ann.seen_of(before).is_valid, "ended meanwhile"


# --- who may ---


def test_a_session_of_the_mesh_is_thought_about_by_those_who_speak_in_it_s348(harness: Harness) -> None:
    """S348: another agent neither starts nor opens one of its name; whoever operates may."""
    harness.send(new_message("1"))
    alpha, beta = (Thinker(harness, f"usr_{name}", agent_id=name) for name in (AGENT, "beta"))
    boss = Thinker(harness, "usr_op", "operator")
    assert reason(beta.start(MESH)) == (403, "not_yours")
    assert reason(beta.think("plan", session_id=MESH)) == (403, "not_yours")
    assert received(harness, "thought_session_started") == []
    assert alpha.start(MESH).code == 201
    assert reason(beta.think("plan", session_id=MESH)) == (403, "not_yours")
    assert boss.think("plan", session_id=MESH, task_id="b").code == 201
    assert beta.start("ses_betas").code == 201
    free = Thinker(harness, "usr_free")
    claimed = free.voice._replace(agent_id="beta")
    assert reason(free.think("plan", session_id=MESH, voice=claimed)) == (403, "not_yours")


def test_agents_that_speak_in_a_session_prove_it_together_s340(harness: Harness) -> None:
    """S340: members of the mesh session record in the proof of it; ending it stays with who began it."""
    harness.send(new_message("1"), new_message("2", agent="beta"))
    alpha, beta, eve = (Thinker(harness, f"usr_{name}", agent_id=name) for name in (AGENT, "beta", "eve"))
    alpha.start(MESH)
    assert beta.think("analysis", session_id=MESH, task_id="b").code == 201
    assert beta.think("reflection", session_id=MESH, task_id="b").code == 201
    assert reason(eve.think("analysis", session_id=MESH, task_id="e")) == (403, "not_yours")
    assert alpha.close(MESH).code == 200
    assert reason(beta.seal(MESH)) == (403, "not_yours")


def test_a_seal_covers_the_steps_before_it_s342(harness: Harness) -> None:
    """S342: later ones are not under it."""
    harness.send(new_message("1"))
    ann = Thinker(harness)
    ann.start(MESH)
    assert harness.read(harness.store.sealed_before(HOME_TENANT, MESH)) is None
    ann.close(MESH)
    harness.send(new_message("2"))
    first, second = (event["hash_chain"]["sequence_number"] for event in events(harness, "message_delivered"))
    bound = harness.read(harness.store.sealed_before(HOME_TENANT, MESH))
    assert first < bound < second


def test_a_name_taken_before_its_session_began_proves_nothing_of_it_s342(harness: Harness) -> None:
    """S342: unless the agent that took it speaks in that session too."""
    for agent, is_there in (("beta", False), (AGENT, True)):
        early = Thinker(harness, f"usr_{agent}", agent_id=agent)
        session = MESH if is_there else MESH.replace("0", "1")
        early.start(session)
        harness.send(
            new_message(agent)
            | {"meta": new_message(agent)["meta"] | {"session_id": session, "trace_id": session}}
        )
        assert early.close(session).code == 200
        found = harness.read(harness.store.sealed_before(HOME_TENANT, session))
        assert (found is not None) is is_there


# --- what may not be kept ---


def test_words_of_thoughts_are_redacted_before_they_are_hashed_s347(ann: Thinker, harness: Harness) -> None:
    """S347: content and intent; a repeat is known, whatever the rules did meanwhile."""
    rule = add(harness, type="builtin", name="email").answer["rule_id"]
    add(harness, type="field", name="hidden", path="thought.inner")
    content = {"trajectory": f"write to {MAIL}", "meta": {"step_id": MAIL}, "inner": "all of it"}

    def sent() -> tuple[int, dict[str, object]]:
        done = ann.think("plan", record_id="mine", content=content)
        return done.code, done.answer

    started = ann.start(intent=f"tell {MAIL}")
    first = sent()
    assert started.code == first[0] == 201 and sent() == first
    (row,) = ann.records()
    kept = bytes(row["content"])
    assert MAIL.encode() not in kept and kept.count(b"[redacted:email:") == 2
    assert b"[redacted:hidden:" in kept and MAIL not in ann.row()["intent"]
    (event,) = events(harness, "thought_recorded")
    assert event["attributes"]["av.redaction.version"] == 2
    assert ann.verify().answer["valid"]
    remove(harness, rule)
    assert sent() == first and ann.start(intent=f"tell {MAIL}").answer == started.answer
    other = ann.think("plan", record_id="mine", content={"trajectory": "write to nobody"})
    assert reason(other) == (409, "id_conflict")


def test_what_is_no_thought_without_its_secrets_is_refused_s347(ann: Thinker, harness: Harness) -> None:
    """S347: nothing of it is kept."""
    add(harness, type="pattern", name="word", pattern="traject[a-z]{1,9}")
    ann.start()
    assert reason(ann.think("plan")) == (422, "not_redactable")
    assert ann.records() == []

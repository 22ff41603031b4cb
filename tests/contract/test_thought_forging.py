"""The decision trail against who may write the database, and against who may only speak at its doors."""

from __future__ import annotations

import json

import pytest

from observatory.features.thoughts import commands_sealing as concluding
from observatory.ledger import thoughts as ledger
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House, SqliteHouse
from tests.contract.test_redaction import MAIL, add, remove
from tests.contract.test_relay import AGENT, events, said
from tests.contract.test_relay import SESSION as MESH
from tests.contract.test_thought_rows import ELSE, disarmed
from tests.contract.test_thoughts import reason, told
from tests.contract.thinking import SESSION, TASK, Thinker


@pytest.fixture
def ann(house: House) -> Thinker:
    return Thinker(house)


def cut(ann: Thinker, house: House) -> None:
    """The last two records, the tree and the seal are gone, and every row says so alike."""
    last = ann.records()[1]["chain_hash"]
    disarmed(
        house,
        "DELETE FROM thought_records WHERE record_index >= 2;DELETE FROM merkle_nodes;"
        f"UPDATE thought_sessions SET records = 2, last_chain_hash = '{last}', sealed_ns = NULL, "
        "root = NULL, verified_records = NULL, open_tasks = 1",
    )
    on = "" if isinstance(house, SqliteHouse) else " ON thought_tasks"
    house.sql(f"DROP TRIGGER thought_tasks_closed{on}")
    house.sql("UPDATE thought_tasks SET state = 'open', closed_by = NULL")


def test_a_tail_that_was_cut_off_is_missed_and_never_sealed_again_s333(ann: Thinker, house: House) -> None:
    """S333: the trail has more events of this session than there are records; also after new ones."""
    ann.whole()
    cut(ann, house)
    assert ann.verify().answer == {"valid": False, "records": 2, "first_broken_index": 2}
    assert ann.think("reflection").code == 201
    assert ann.verify().answer == {"valid": False, "records": 3, "first_broken_index": 3}
    assert reason(ann.seal()) == (409, "chain_broken")
    assert len(told(house, "thought_session_sealed")) == 1


def test_a_session_that_was_taken_away_whole_cannot_be_begun_anew_s333(ann: Thinker, house: House) -> None:
    """S333: its first start is still told of."""
    ann.whole()
    disarmed(house, "DELETE FROM thought_records;DELETE FROM merkle_nodes;DELETE FROM thought_sessions")
    on = "" if isinstance(house, SqliteHouse) else " ON thought_tasks"
    house.sql(f"DROP TRIGGER thought_tasks_no_delete{on}")
    house.sql("DELETE FROM thought_tasks")
    assert ann.start().code == 201
    assert ann.verify().answer == {"valid": False, "records": 0, "first_broken_index": 0}


def test_a_hashed_text_has_one_reading_s322(ann: Thinker, house: House) -> None:
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
    disarmed(house, "SELECT 1")
    house.sql(
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
    ann: Thinker, house: House, change: str, index: int
) -> None:
    """S333: every column that its start, its seal and its end are on record with."""
    ann.whole()
    ann.end()
    assert ann.verify().answer["valid"]
    disarmed(house, f"UPDATE thought_sessions SET {change}")
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": index}


def test_a_predecessor_put_there_before_the_first_record_is_found_s333(ann: Thinker, house: House) -> None:
    """S333: its start was told without one."""
    ann.start()
    disarmed(
        house,
        f"UPDATE thought_sessions SET predecessor_chain_hash = {ELSE}, predecessor_session_id = 'ses_x'",
    )
    ann.think("plan")
    assert ann.verify().answer == {"valid": False, "records": 1, "first_broken_index": 0}


def test_a_flipped_byte_of_an_event_is_a_break_s333(ann: Thinker, house: House) -> None:
    """S333: no text any more, so it tells of nothing."""
    ann.whole()
    is_lite = isinstance(house, SqliteHouse)
    table, key = ("audit_log", "key & 1099511627775") if is_lite else ("audit_events", "sequence_number")
    number = ann.records()[1]["sequence_number"]
    if is_lite:
        for (name,) in house.sql(
            f"SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = '{table}'"
        ):
            house.sql(f"DROP TRIGGER {name}")
    else:
        house.sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    ((record,),) = house.sql(f"SELECT record FROM {table} WHERE {key} = {number}")
    bent = bytes(record).replace(b"thought_recorded", b"thought\xffrecorded")
    house.sql(f"UPDATE {table} SET record = :bent WHERE {key} = {number}", bent=bent)
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 1}


@pytest.mark.parametrize("column", ["author", "refs", "chain_hash"])
def test_text_that_is_no_text_is_a_break_s333(sqlite_house: SqliteHouse, column: str) -> None:
    """S333: SQLite takes any bytes for text; reading them fails nobody."""
    ann = Thinker(sqlite_house)
    ann.whole()
    bent = f"UPDATE thought_records SET {column} = CAST(x'ff41' AS TEXT) WHERE record_index = 1"
    disarmed(sqlite_house, bent)
    assert ann.verify().answer == {"valid": False, "records": 4, "first_broken_index": 1}


BENT = {
    "caller": 0, "opened_by": 0, "intent": 0, "task_id": 0, "started_at": 0, "genesis": 0,
    "predecessor_session_id": 0, "predecessor_chain_hash": 0, "last_chain_hash": 3, "root": 4,
}  # fmt: skip


def test_a_session_that_is_no_text_is_a_break_s618(sqlite_house: SqliteHouse) -> None:
    """S618: in any column of its row; found by verifying, read under the lock, and failing nobody."""
    house, ann = sqlite_house, Thinker(sqlite_house)
    ann.whole()
    for column, index in BENT.items():
        ((before,),) = house.sql(f"SELECT {column} FROM thought_sessions")
        disarmed(house, f"UPDATE thought_sessions SET {column} = CAST(x'ff41' AS TEXT)")
        row = house.read(house.store.thought_session(HOME_TENANT, SESSION))
        assert row is not None
        act = concluding.verify(ann.voice, SESSION, ann.seen_of(row), house.now())
        assert house.submit(act)[0].answer["first_broken_index"] == index, column
        house.sql(f"UPDATE thought_sessions SET {column} = :before", before=before)
    assert ann.verify().answer["valid"]


def test_a_verification_nobody_made_counts_for_nothing_s619(ann: Thinker, house: House) -> None:
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
        disarmed(house, f"UPDATE thought_sessions SET {change}")
        assert ann.verify().answer["first_broken_index"] == 2, change
        disarmed(house, f"UPDATE thought_sessions SET verified_records = 1, verified_by = {number}")
    assert ann.seal().code == 200


# --- who comes too late ---


def test_a_verification_that_lost_the_race_against_the_closing_does_not_count_s334(
    ann: Thinker, house: House
) -> None:
    """S334, S339: it had not seen the reflection that was written before it was decided."""
    ann.start()
    ann.think("plan")
    late = concluding.verify(ann.voice, SESSION, ann.seen(), house.now())
    ann.think("reflection")
    (verdict,) = ann.do(late)
    assert verdict is concluding.MOVED_ON and told(house, "thought_chain_verified") == []
    ann.verify()
    assert reason(ann.seal()) == (409, "not_verified")


def test_a_slow_verification_does_not_undo_a_newer_one_s334(ann: Thinker, house: House) -> None:
    """S334: what it saw is not the whole any more."""
    ann.start()
    ann.think("plan")
    slow = concluding.verify(ann.voice, SESSION, ann.seen(), house.now())
    ann.think("analysis")
    ann.verify()
    ann.think("reflection")
    assert ann.do(slow)[0] is concluding.MOVED_ON
    assert ann.seal().code == 200


def test_what_is_written_while_it_is_looked_at_breaks_nothing_s339(ann: Thinker, house: House) -> None:
    """S339: the trail is a step ahead of the row that was read; it is looked at again, or has moved on."""
    ann.start()
    ann.think("plan")
    before = ann.row()
    ann.verify()
    ann.think("reflection")
    seen = ann.seen_of(before)
    assert seen.is_valid
    assert ann.do(concluding.verify(ann.voice, SESSION, seen, house.now()))[0] is concluding.MOVED_ON
    before = ann.row()
    ann.seal()
    assert ann.seen_of(before).is_valid, "sealed meanwhile"
    before = ann.row()
    ann.end()
    assert ann.seen_of(before).is_valid, "ended meanwhile"


# --- who may ---


def test_a_session_of_the_mesh_is_thought_about_by_those_who_speak_in_it_s348(house: House) -> None:
    """S348: another agent neither starts nor opens one of its name; whoever operates may."""
    house.send(said("1"))
    alpha, beta = (Thinker(house, f"usr_{name}", agent_id=name) for name in (AGENT, "beta"))
    boss = Thinker(house, "usr_op", "operator")
    assert reason(beta.start(MESH)) == (403, "not_yours")
    assert reason(beta.think("plan", session_id=MESH)) == (403, "not_yours")
    assert told(house, "thought_session_started") == []
    assert alpha.start(MESH).code == 201
    assert reason(beta.think("plan", session_id=MESH)) == (403, "not_yours")
    assert boss.think("plan", session_id=MESH, task_id="b").code == 201
    assert beta.start("ses_betas").code == 201
    free = Thinker(house, "usr_free")
    claimed = free.voice._replace(agent_id="beta")
    assert reason(free.think("plan", session_id=MESH, voice=claimed)) == (403, "not_yours")


def test_agents_that_speak_in_a_session_prove_it_together_s340(house: House) -> None:
    """S340: members of the mesh session record in the proof of it; ending it stays with who began it."""
    house.send(said("1"), said("2", agent="beta"))
    alpha, beta, eve = (Thinker(house, f"usr_{name}", agent_id=name) for name in (AGENT, "beta", "eve"))
    alpha.start(MESH)
    assert beta.think("analysis", session_id=MESH, task_id="b").code == 201
    assert beta.think("reflection", session_id=MESH, task_id="b").code == 201
    assert reason(eve.think("analysis", session_id=MESH, task_id="e")) == (403, "not_yours")
    assert alpha.close(MESH).code == 200
    assert reason(beta.seal(MESH)) == (403, "not_yours")


def test_a_seal_covers_the_steps_before_it_s342(house: House) -> None:
    """S342: later ones are not under it."""
    house.send(said("1"))
    ann = Thinker(house)
    ann.start(MESH)
    assert house.read(house.store.sealed_before(HOME_TENANT, MESH)) is None
    ann.close(MESH)
    house.send(said("2"))
    first, second = (event["hash_chain"]["sequence_number"] for event in events(house, "message_delivered"))
    bound = house.read(house.store.sealed_before(HOME_TENANT, MESH))
    assert first < bound < second


def test_a_name_taken_before_its_session_began_proves_nothing_of_it_s342(house: House) -> None:
    """S342: unless the agent that took it speaks in that session too."""
    for agent, is_there in (("beta", False), (AGENT, True)):
        early = Thinker(house, f"usr_{agent}", agent_id=agent)
        session = MESH if is_there else MESH.replace("0", "1")
        early.start(session)
        house.send(said(agent) | {"meta": said(agent)["meta"] | {"session_id": session, "trace_id": session}})
        assert early.close(session).code == 200
        found = house.read(house.store.sealed_before(HOME_TENANT, session))
        assert (found is not None) is is_there


# --- what may not be kept ---


def test_words_of_thoughts_are_redacted_before_they_are_hashed_s347(ann: Thinker, house: House) -> None:
    """S347: content and intent; a repeat is known, whatever the rules did meanwhile."""
    rule = add(house, type="builtin", name="email").answer["rule_id"]
    add(house, type="field", name="hidden", path="thought.inner")
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
    (event,) = events(house, "thought_recorded")
    assert event["attributes"]["av.redaction.version"] == 2
    assert ann.verify().answer["valid"]
    remove(house, rule)
    assert sent() == first and ann.start(intent=f"tell {MAIL}").answer == started.answer
    other = ann.think("plan", record_id="mine", content={"trajectory": "write to nobody"})
    assert reason(other) == (409, "id_conflict")


def test_what_is_no_thought_without_its_secrets_is_refused_s347(ann: Thinker, house: House) -> None:
    """S347: nothing of it is kept."""
    add(house, type="pattern", name="word", pattern="traject[a-z]{1,9}")
    ann.start()
    assert reason(ann.think("plan")) == (422, "not_redactable")
    assert ann.records() == []

"""The decision trail over both databases: every rule of its order, rows held fast, every change found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.features.thoughts import commands_sealing as concluding
from observatory.features.thoughts import queries as store_thoughts
from observatory.ledger import thoughts as ledger
from observatory.ledger.merkle import root, verify_inclusion
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from observatory.protocol.thoughts import RECORDS
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_fact_acts import at_once
from tests.contract.test_relay import SESSION as MESH
from tests.contract.test_relay import events, new_message
from tests.contract.thinking import CONTENT, SESSION, TASK, Thinker


@pytest.fixture
def ann(harness: Harness) -> Thinker:
    return Thinker(harness)


def reason(verdict: SubmissionResult) -> tuple[int, str]:
    return verdict.code, verdict.answer.reason


def received(harness: Harness, kind: str) -> list[dict[str, Any]]:
    return [event["body"] for event in events(harness, kind)]


@pytest.mark.req(101, 261, 262, 272, 273, 274, 275, 276, 278, 279, *range(280, 291))
def test_records_are_chained_stored_and_told_of_without_their_words_s322_s325(
    ann: Thinker, harness: Harness
) -> None:
    """S322, S323, S325: genesis first, each after the one before, hashes in the record, words beside it."""
    started = ann.start().answer
    genesis = ledger.text_of(ledger.genesis("sys_usr_ann", SESSION, started["started_at"]))
    assert started == {
        "session_id": SESSION,
        "task_id": TASK,
        "genesis": genesis,
        "started_at": started["started_at"],
        "proof_grade": True,
    }
    answers = [ann.think(kind).answer for kind in ("plan", "analysis", "decision", "reflection")]
    rows = ann.records()
    parent = genesis
    for index, (answer, row) in enumerate(zip(answers, rows, strict=True)):
        assert (answer["index"], answer["parent_chain_hash"]) == (index, parent)
        assert json.loads(bytes(row["content"])) == CONTENT[answer["type"]]
        for name in ("record_id", "session_id", "task_id", "type", "content_hash", "chain_hash"):
            assert answer[name] == row[name]
        parent = answer["chain_hash"]
    (begun,) = received(harness, "thought_session_started")
    assert begun["genesis"] == genesis and "Ship it" not in str(begun)
    recorded = events(harness, "thought_recorded")
    assert [event["body"]["chain_hash"] for event in recorded] == [row["chain_hash"] for row in rows]
    assert [event["audit_event_id"] for event in recorded] == [one["audit_event_id"] for one in answers]
    assert [event["hash_chain"]["sequence_number"] for event in recorded] == [
        row["sequence_number"] for row in rows
    ]
    trail = b"".join(event.record for event in harness.trail_of()).decode()
    assert "green" not in trail and "load at night" not in trail


@pytest.mark.req(263, 291, *range(292, 299), 310, 318)
def test_the_seeds_sequence_seals_and_ends_s335_s336(ann: Thinker, harness: Harness) -> None:
    """S335, S336, S338: start, think, verify, reflect, seal, end; each leaves its event."""
    sealed = ann.whole()
    assert sealed.code == 200 and sealed.answer["size"] == 4
    hashes = [
        ledger.ThoughtHashes(row["content_hash"], row["chain_hash"], row["parent_chain_hash"])
        for row in ann.records()
    ]
    assert sealed.answer["root"] == ledger.text_of(root(map(ledger.leaf, hashes)))
    (body,) = received(harness, "thought_session_sealed")
    names = ("session_id", "genesis", "n_records", "last_chain_hash", "root")
    row = ann.row()
    assert {name: body[name] for name in names} == {
        "session_id": SESSION,
        "genesis": row["genesis"],
        "n_records": 4,
        "last_chain_hash": hashes[-1].chain_hash,
        "root": row["root"],
    }
    before = len(harness.trail_of())
    assert ann.seal().answer == sealed.answer, "twice is the same root"
    ended = ann.end()
    assert ended.answer == ann.end().answer
    assert (ended.answer["records"], ended.answer["root"]) == (4, row["root"])
    assert len(harness.trail_of()) == before + 1, "repeats write nothing"
    kinds = [event["body"]["event_type"] for event in events(harness)][1:]
    assert kinds == [
        "thought_session_started",
        *["thought_recorded"] * 3,
        "thought_chain_verified",
        "thought_recorded",
        "thought_session_sealed",
        "thought_session_ended",
    ]
    tree = harness.read(
        harness.store.merkle_nodes(HOME_TENANT, SESSION, [(0, 1), (0, 0), (1, 1), (2, 0), (9, 9)])
    )
    assert ledger.text_of(tree[2, 0]) == row["root"] and len(tree) == 4
    assert verify_inclusion(tree[0, 1], 1, 4, [tree[0, 0], tree[1, 1]], tree[2, 0])


@pytest.mark.req(291, 310)
def test_every_way_out_of_order_is_refused_and_says_what_to_do_s334(ann: Thinker, harness: Harness) -> None:
    """S334, S338: nothing is sealed or ended before its time."""
    ann.start()
    assert reason(ann.seal()) == (409, "empty_session")
    assert reason(ann.end()) == (409, "not_sealed")
    ann.verify()
    ann.think("plan")
    early = ann.seal()
    assert reason(early) == (409, "no_reflection") and "verify the chain" in early.answer.detail
    ann.verify()
    late = ann.seal()
    assert reason(late) == (409, "no_reflection") and "verify the chain" not in late.answer.detail
    ann.think("analysis")
    ann.think("reflection")
    assert reason(ann.seal()) == (409, "not_verified"), "an analysis stands between"
    ann.verify()
    assert reason(ann.seal()) == (409, "not_verified"), "verified after the closing reflection, not before"
    ann.think("plan", task_id="second")
    ann.think("plan", task_id="third")
    ann.verify()
    ann.think("reflection", task_id="second")
    left = ann.seal()
    assert reason(left) == (409, "open_tasks") and "third" in left.answer.detail
    assert received(harness, "thought_session_sealed") == []
    ann.verify()
    ann.think("reflection", task_id="third")
    ann.verify()
    assert ann.seal().code == 200, "looking once more does not undo that it was verified"


@pytest.mark.req(270, 299)
def test_a_reflection_closes_its_task_s330(ann: Thinker, harness: Harness) -> None:
    """S330: proof-grade or not; nothing more is recorded for it, and other tasks go on."""
    for session_id in (SESSION, "ses_open"):
        ann.start() if session_id == SESSION else None
        ann.think("plan", session_id=session_id)
        assert ann.think("reflection", session_id=session_id).code == 201
        for kind in CONTENT:
            assert reason(ann.think(kind, session_id=session_id)) == (409, "task_closed")
        assert ann.think("plan", session_id=session_id, task_id="next").code == 201
    assert reason(ann.end("ses_open")) == (409, "open_tasks")
    assert ann.think("reflection", session_id="ses_open", task_id="next").code == 201
    assert ann.end("ses_open").answer["root"] is None, "not proof-grade: it ends without a seal"
    assert reason(ann.think("plan", session_id="ses_open", task_id="late")) == (409, "ended")


@pytest.mark.req(279, 299)
def test_a_record_outside_a_started_session_opens_one_s326(ann: Thinker, harness: Harness) -> None:
    """S326: with its genesis event, not proof-grade; of one caller and task it is one."""
    first, second = (ann.think(kind, session_id=None).answer for kind in ("plan", "reflection"))
    assert first["session_id"] == second["session_id"] and second["index"] == 1
    assert not ann.row(first["session_id"])["proof_grade"]
    assert len(received(harness, "thought_session_started")) == 1
    other = ann.think("plan", session_id=None, task_id="other").answer
    assert other["session_id"] != first["session_id"]
    ben = Thinker(harness, "usr_ben")
    assert ben.think("plan", session_id=None).answer["session_id"] not in (
        first["session_id"],
        other["session_id"],
    )
    assert reason(ann.start(first["session_id"])) == (409, "already_started")
    home = harness.read(harness.store.task_home(HOME_TENANT, TASK, ann.voice.name))
    assert home == first["session_id"]
    assert harness.read(harness.store.task_home(HOME_TENANT, "none", ann.voice.name)) is None


@pytest.mark.req(277)
def test_the_first_record_of_a_successor_embeds_the_last_hash_before_it_s327(ann: Thinker) -> None:
    """S327: at its start, and only the first one."""
    ann.whole()
    last = ann.row()["last_chain_hash"]
    assert ann.start("ses_2", after=SESSION).code == 201
    ann.think("plan", session_id="ses_2")
    ann.think("analysis", session_id="ses_2")
    assert [row["predecessor_chain_hash"] for row in ann.records("ses_2")] == [last, None]
    assert ann.verify("ses_2").answer == {"valid": True, "records": 2, "first_broken_index": None}
    assert reason(ann.start("ses_3", after="ses_none")) == (404, "not_found")
    assert reason(ann.start("ses_4", after="ses_4")) == (404, "not_found")


@pytest.mark.req(289, 314, 315)
def test_a_correction_is_a_new_record_that_names_the_one_before_s328(ann: Thinker, harness: Harness) -> None:
    """S328: references are records of this tenant; another's are none."""
    harness.create_tenant(OTHER_TENANT)
    ben = Thinker(harness, tenant_id=OTHER_TENANT)
    ann.start()
    wrong = ann.think("decision").answer["record_id"]
    theirs = ben.think("plan", record_id="rec_theirs").answer["record_id"]
    right = ann.think("analysis", references=(wrong,), audit_event_ids=("evt_1",))
    assert right.code == 201
    (body,) = [one for one in received(harness, "thought_recorded") if one["references"]]
    assert (body["references"], body["audit_event_ids"]) == ([wrong], ["evt_1"])
    known = harness.store.records_known(HOME_TENANT, ["rec_none", wrong, theirs])
    assert harness.read(known) == {wrong}, "what the door asks before it lets a record through"


def test_a_repeat_is_answered_as_the_first_and_other_words_are_a_conflict_s324_s329(
    ann: Thinker, harness: Harness
) -> None:
    """S324, S329: also when the session is sealed by then."""
    first, started = None, ann.start()
    assert ann.start().answer == started.answer == ann.start(task_id=None).answer
    for other in (ann.start(intent="Other"), ann.start(task_id="other"), Thinker(harness, "usr_b").start()):
        assert reason(other) == (409, "already_started")
    first = ann.think("plan", record_id="mine")
    ann.close()
    before = len(harness.trail_of())
    assert ann.think("plan", record_id="mine").answer == first.answer
    assert len(harness.trail_of()) == before
    for act in (
        ann.thinking("plan", record_id="mine", content={"trajectory": "another"}),
        ann.thinking("plan", record_id="mine", task_id="another"),
        ann.thinking("plan", record_id="mine", session_id="another"),
        ann.thinking("plan", record_id="mine", audit_event_ids=("evt_2",)),
        Thinker(harness, "usr_b").thinking("plan", record_id="mine"),
    ):
        assert reason(ann.do(act)[0]) == (409, "id_conflict")
    assert len(received(harness, "security_violation")) == 5
    assert len(ann.records()) == 2


def test_nothing_is_appended_once_sealed_s335(ann: Thinker, harness: Harness) -> None:
    """S335: by nobody, whatever the type and the task."""
    ann.whole()
    for kind in CONTENT:
        for who in (ann, Thinker(harness, "usr_op", "operator")):
            assert reason(who.think(kind, task_id="late")) == (409, "sealed")
    assert len(ann.records()) == 4 and ann.verify().answer["valid"]


def test_a_session_is_closed_by_whoever_began_it_or_an_operator_s340(ann: Thinker, harness: Harness) -> None:
    """S340: of one that is to be proved others keep away; what has ended tells them nothing either."""
    ann.start()
    ben, boss = Thinker(harness, "usr_ben"), Thinker(harness, "usr_op", "operator")
    assert ann.think("plan").code == 201
    for kind, task in (("analysis", TASK), ("plan", "bens"), ("reflection", TASK)):
        assert reason(ben.think(kind, task_id=task)) == (403, "not_yours")
    assert boss.think("plan", task_id="bosses").code == 201
    assert ann.think("reflection", task_id="bosses").code == 201, "who began the session closes it all"
    ann.verify()
    ann.think("reflection")
    for _ in range(2):
        assert reason(ben.seal()) == (403, "not_yours")
        assert reason(ben.end()) == (403, "not_yours")
        assert boss.seal().code == 200
        assert boss.end().code == 200


def test_one_that_proves_nothing_is_a_room_of_many_s340(ann: Thinker, harness: Harness) -> None:
    """S330, S340: others may think in it, and not close what is not theirs."""
    ben = Thinker(harness, "usr_ben")
    ann.think("plan")
    assert ben.think("analysis").code == 201
    assert reason(ben.think("reflection")) == (403, "not_yours")
    assert ben.think("plan", task_id="bens").code == 201
    assert ann.think("reflection", task_id="bens").code == 201
    assert reason(ben.end()) == (403, "not_yours")


def test_who_thinks_is_judged_as_who_sends_s331(harness: Harness) -> None:
    """S331: a bound key thinks as its agent, a person in their own name; else it is a security event."""
    bound = Thinker(harness, "usr_bound", agent_id="alpha")
    entity = bound.voice.name
    assert entity.startswith("agt_")
    assert bound.think("plan").code == 201
    assert bound.records()[0]["author"] == bound.row()["caller"] == entity
    free = Thinker(harness, "usr_free")
    assert free.think("plan", voice=free.voice._replace(agent_id="alpha")).code == 201
    assert bound.records()[1]["author"] == entity
    person = Thinker(harness, "usr_op", "operator")
    for who, claimed in ((bound, "beta"), (person, "alpha")):
        voice = who.voice._replace(agent_id=claimed)
        for act in (who.thinking("plan", voice=voice), who.starting("ses_9", voice=voice)):
            assert reason(who.do(act)[0]) == (403, "sender_mismatch")
    assert len(received(harness, "security_violation")) == 4


@pytest.mark.parametrize("way", ["one batch", "committer"])
def test_of_racers_one_wins_and_all_get_a_true_answer_s339(ann: Thinker, harness: Harness, way: str) -> None:
    """S339: indices without a gap, one closing, one seal."""

    def together(*acts: Command) -> list[SubmissionResult]:
        return ann.do(*acts) if way == "one batch" else at_once(harness, *acts)

    starts = together(*(ann.starting() for _ in range(3)))
    assert len({one.answer["genesis"] for one in starts}) == 1
    many = together(*(ann.thinking("analysis") for _ in range(5)))
    assert sorted(one.answer["index"] for one in many) == list(range(5))
    homes = together(*(ann.thinking("plan", session_id=None, task_id="free") for _ in range(3)))
    assert len({one.answer["session_id"] for one in homes}) == 1
    ann.verify()
    closings = together(*(ann.thinking("reflection") for _ in range(2)))
    assert sorted(one.code for one in closings) == [201, 409]
    seen, now = ann.seen(), harness.now()
    seals = [concluding.seal(ann.voice, SESSION, seen, now) for _ in range(3)]
    sealed = together(*seals)
    assert len({one.answer["root"] for one in sealed}) == 1
    assert len(received(harness, "thought_session_sealed")) == 1
    assert len(received(harness, "thought_session_started")) == 2


def test_a_seal_over_what_has_moved_on_is_looked_at_again_s339(ann: Thinker, harness: Harness) -> None:
    """S339: what was read before the lock is not the whole any more."""
    ann.start()
    ann.think("plan")
    ann.verify()
    ann.think("reflection")
    seen = ann.seen()
    ann.think("plan", task_id="late")
    (verdict,) = ann.do(concluding.seal(ann.voice, SESSION, seen, harness.now()))
    assert verdict is concluding.SESSION_CHANGED
    assert ann.row()["root"] is None


def test_a_session_holds_so_many_records_s321(ann: Thinker, harness: Harness) -> None:
    """S321: its seal is one transaction, so it is bounded."""
    ann.start()
    harness.sql(f"UPDATE thought_sessions SET records = {RECORDS}")
    assert reason(ann.think("plan")) == (409, "session_full")


TREES = [1, 2, 3, 7, 1_025]


@pytest.mark.parametrize("size", TREES)
def test_every_record_is_under_the_seal_s337(ann: Thinker, harness: Harness, size: int) -> None:
    """S336, S337: nodes of the tree are rows, and each path of RFC 6962 is found among them."""
    from observatory.ledger.merkle import inclusion_path

    ann.start()
    acts = [ann.thinking("analysis") for _ in range(size - 1)]
    for start in range(0, len(acts), 200):
        ann.do(*acts[start : start + 200])
    top = ledger.digest_of(ann.close().answer["root"])
    for index in {0, 1, size // 2, size - 1} & set(range(size)):
        places = [(0, index), *map(ledger.place_of, inclusion_path(index, size))]
        nodes = harness.read(harness.store.merkle_nodes(HOME_TENANT, SESSION, places))
        leaf, *path = [nodes[place] for place in places]
        assert verify_inclusion(leaf, index, size, path, top)


def test_events_of_a_mesh_session_stand_in_its_trace_s342(ann: Thinker, harness: Harness) -> None:
    """S342: when the session of that name is known; else they belong to the house."""
    harness.send(new_message("1"))
    ann.start(MESH)
    ann.think("plan", session_id=MESH)
    ann.start("ses_alone")
    (first, alone), (thought,) = (
        events(harness, "thought_session_started"),
        events(harness, "thought_recorded"),
    )
    (sent,) = events(harness, "message_delivered")
    assert first["trace_id"] == thought["trace_id"] == sent["trace_id"] != alone["trace_id"]
    assert ann.row(MESH)["session_no"] == 1


def test_which_of_many_sessions_are_sealed_s342(
    ann: Thinker, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S342: asked about a few, about many, and where more are sealed than one look reads."""
    for session_id in ("ses_a", "ses_b", "ses_c"):
        ann.start(session_id)
        ann.close(session_id)
    ann.start("ses_open")
    many = ["ses_a", "ses_c", "ses_open", *(f"ses_{number}" for number in range(600))]
    for most in (1_000, 2):
        monkeypatch.setattr(store_thoughts, "MAX_SEALED", most)
        for asked in (many, many[:3]):
            assert harness.read(harness.store.sealed_among(HOME_TENANT, asked)) == {"ses_a", "ses_c"}
    assert harness.read(harness.store.sealed_among(HOME_TENANT, [])) == set()

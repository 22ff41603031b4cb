"""What a reminder carries goes with the message that asked for it, wherever it waits by then."""

from __future__ import annotations

import json
import uuid
from typing import Any

from observatory.features.policies import commands as rulemaking
from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction.worker import DAY_NS
from observatory.features.schedule import commands_firing as firing
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.tenant_config import Match, PolicyRule
from observatory.store.shredding import EMPTY, LETTER
from tests.contract.clockwork import HOUR, MINUTE, START, Clockwork
from tests.contract.conftest import Harness
from tests.contract.test_shredding import archive, keeper, proven, shred
from tests.samples import decision_log

WORDS = "quokka marsupial"
EMPTIED = {"shredded": True}


def ask(harness: Harness, delay_ms: int = 3_600_000, session_id: str = "room") -> int:
    """An agent asks to be reminded of these words; the number of that step."""
    given = json.dumps({"delay_ms": delay_ms, "payload": {"of": WORDS}})
    body = decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": session_id, "parent_step_id": None},
        identity={"agent_id": "sweeper"},
        action={"tool_call": "schedule_reminder", "tool_input": given},
    )
    (verdict,) = harness.send(body)
    assert verdict.code == 202, verdict
    number: int = verdict.answer.sequence_number
    return number


def rows(harness: Harness, table: str) -> list[dict[str, Any]]:
    return harness.read(harness.store.rows(HOME_TENANT, table))


def kept(harness: Harness) -> str:
    """Every row of the schedule."""
    return repr([rows(harness, table) for table in ("jobs", "job_runs", "dead_letters")])


def mute(harness: Harness) -> None:
    rule = PolicyRule(rule_id="pol_mute", position=1, effect="deny", match=Match(sender=(firing.SENDER,)))
    assert harness.submit(rulemaking.create_rule(harness.admin(), rule, True, harness.now()))[0].code == 201


def test_a_reminder_whose_step_is_shredded_comes_without_what_it_carried_s790(harness: Harness) -> None:
    """S790: another's stays; it comes at its time, in its session, and says that it was shredded."""
    one = Clockwork(harness)
    harness.wait(START - harness.now())
    gone, other = ask(harness), ask(harness, session_id="hall")
    assert [row["asked_seq"] for row in rows(harness, "jobs")] == [gone, other]
    assert shred(harness, gone).answer.shredded == 1
    assert [row["payload"] for row in rows(harness, "jobs")] == [EMPTY, json.dumps({"of": WORDS})]
    one.look(START + HOUR + MINUTE)
    said = [json.loads(row.raw) for row in archive(harness)[2:] if row.raw is not None]
    received = {row["metadata"]["session_id"]: row["metadata"]["payload"] for row in said}
    assert received == {"room": EMPTIED, "hall": {"of": WORDS}}
    assert proven(harness)


def test_runs_that_wait_and_dead_letters_forget_too_and_can_be_tried_again_s790(harness: Harness) -> None:
    """S790: refused and waiting, then dead: nothing of the words is left; a letter still brings it back."""
    one = Clockwork(harness)
    harness.wait(START - harness.now())
    mute(harness)
    waits = ask(harness, delay_ms=0)
    one.look(START + MINUTE)
    assert rows(harness, "job_runs")[0]["state"] == "refused" and "quokka" in kept(harness)
    assert shred(harness, waits).answer.shredded == 1
    assert "quokka" not in kept(harness)
    for minute in (2, 4):
        one.look(START + minute * MINUTE)
    (letter,) = rows(harness, "dead_letters")
    assert EMPTY.replace(" ", "") in letter["preview"].replace(" ", "") and "quokka" not in kept(harness)
    dead = ask(harness, delay_ms=0, session_id="hall")
    for minute in (10, 12, 16):
        one.look(START + minute * MINUTE)
    assert (
        "quokka" in next(row for row in rows(harness, "dead_letters") if row["asked_seq"] == dead)["preview"]
    )
    assert shred(harness, dead).answer.shredded == 1
    second = next(row for row in rows(harness, "dead_letters") if row["asked_seq"] == dead)
    assert second["preview"] == LETTER and "quokka" not in kept(harness)
    harness.submit(rulemaking.remove_rule(harness.admin(), "pol_mute", True, harness.now()))
    assert harness.submit(firing.revive(harness.admin(), second, harness.now()))[0].code == 200
    one.look(START + 20 * MINUTE)
    last = json.loads(next(row.raw for row in reversed(archive(harness)) if row.raw is not None))
    assert last["metadata"]["payload"] == EMPTIED


def test_retention_takes_what_a_reminder_carries_and_jobs_of_people_stay_s790(harness: Harness) -> None:
    """S790: by the clock as by an order; a job of a person is no message and keeps its payload."""
    one = Clockwork(harness)
    harness.wait(START - harness.now())
    job = one.make()
    ask(harness, delay_ms=300 * 86_400_000)
    harness.submit(redaction_rules.set_retention(harness.admin(), 30, harness.now()))
    clock, _ = keeper(harness)
    assert harness.read(clock.due(harness.now() + 31 * DAY_NS)) == 1
    assert "quokka" not in kept(harness)
    assert one.job(job["job_id"])["payload"] == job["payload"]


def test_what_somebody_broke_is_forgotten_all_the_same_s790(harness: Harness) -> None:
    """S790: no statement reads what it takes away."""
    number = ask(harness)
    harness.sql("UPDATE jobs SET payload = '{quokka'")
    assert shred(harness, number).answer.shredded == 1
    assert "quokka" not in kept(harness)

"""Shredding over both databases: bytes go by an order on record, everything that proves them stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction.commands_shredding import AT_ONCE
from observatory.features.redaction.worker import DAY_NS, RetentionWorker
from observatory.features.relay import commands as interventions
from observatory.ledger.verify import ChainCheck
from observatory.pipeline.ports import MessageFilter, StoredMessage
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.runtime.worker_context import TenantWatch, WorkerContext
from tests.contract.analysis import Analyst
from tests.contract.conftest import Harness
from tests.contract.test_facts import step
from tests.contract.test_relay import AGENT, SESSION, approve, events, new_message, person, rewritten

WORDS = "quokka marsupial Rottnest"


def shred(harness: Harness, *numbers: int, **more: Any) -> SubmissionResult:
    act = shredding.shred(harness.admin(), numbers, "asked by the person it is about", harness.now(), **more)
    return harness.submit(act)[0]


def archive(harness: Harness) -> list[StoredMessage]:
    return harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 2_000, False))


def proven(harness: Harness) -> bool:
    """Chain, records and leaves of the whole trail."""
    check = ChainCheck(HOME_TENANT)
    check.feed((event.sequence_number, event.record, event.leaf_hash) for event in harness.trail_of())
    return check.result(harness.read(harness.store.head(HOME_TENANT))).first_break is None


def test_bytes_go_by_an_order_that_names_them_and_every_proof_stays_s450(harness: Harness) -> None:
    """S450: the order is in the session's trail; what was shredded before is not ordered again."""
    harness.send(*(new_message(f"s{number}") for number in range(3)))
    first, second, _ = archive(harness)
    verdict = shred(harness, first.sequence_number, second.sequence_number, session_id=SESSION)
    assert (verdict.code, verdict.answer.shredded) == (200, 2)
    gone = archive(harness)
    assert [one.raw is None for one in gone] == [True, True, False]
    assert [one.shredded_by for one in gone] == [verdict.answer.event, verdict.answer.event, None]
    (event,) = events(harness, "payload_shredded")
    assert event["hash_chain"]["sequence_number"] == verdict.answer.event
    assert event["body"]["shredded_sequence_numbers"] == [first.sequence_number, second.sequence_number]
    assert event["body"]["reason"] == "asked by the person it is about"
    assert event["trace_id"] == events(harness, "message_delivered")[0]["trace_id"]
    one, two = (
        shredding.shred(harness.admin(), [archive(harness)[2].sequence_number], "racers", harness.now())
        for _ in range(2)
    )
    assert [racer.answer.shredded for racer in harness.submit(one, two)] == [1, 0], "two racers, one order"
    again = shred(harness, first.sequence_number)
    assert (again.code, again.answer.shredded, again.answer.event) == (200, 0, None)
    assert len(events(harness, "payload_shredded")) == 2
    assert proven(harness)
    assert harness.send(new_message("s0", parent="s9"))[0].code == 409, (
        "other content under its name is still another message"
    )


def test_a_repeat_of_a_shredded_message_is_answered_as_the_first_was_s451(harness: Harness) -> None:
    """S451: its digest stays; nothing of it comes back."""
    body = new_message("s0")
    (first,) = harness.send(body)
    shred(harness, first.answer.sequence_number)
    assert harness.send(body) == [first]
    assert archive(harness)[0].raw is None


def test_what_is_held_is_not_shredded_and_what_a_person_put_there_goes_too_s452(harness: Harness) -> None:
    """S452: a person must decide about a held message first; then both contents go by one order."""
    harness.send(new_message("h1", hitl=True))
    (held,) = archive(harness)
    refused = shred(harness, held.sequence_number)
    assert (refused.code, refused.answer.reason) == (409, "held")
    body = new_message("h1")
    body["cognition"]["intent"] = WORDS
    new = rewritten(harness, "h1", body)
    act = interventions.rewrite(person(harness), SESSION, AGENT, held.sequence_number, new, harness.now())
    assert harness.submit(act)[0].code == 200
    assert approve(harness, "h1").code == 200
    assert shred(harness, held.sequence_number).answer.shredded == 1
    assert harness.sql("SELECT raw FROM rewrites") == [(None,)]
    assert harness.refuses("UPDATE rewrites SET raw = digest"), "it does not come back"
    (gone,) = archive(harness)
    assert gone.raw is None and gone.rewritten is None


def test_the_derived_store_forgets_what_was_said_s453(harness: Harness) -> None:
    """S453: documents, facts, goals, whichever way it is folded; made anew it knows no more."""
    harness.send(
        step("1", added=[f"The {WORDS} lives there"], intent=f"find {WORDS}"),
        step("2", "beta", added=["Paris is in France"], read=[f"The {WORDS} lives there"]),
    )
    number = archive(harness)[0].sequence_number
    with Analyst(harness) as analyst:
        analyst.catch_up()
        assert "quokka" in json.dumps(_texts(analyst)).lower()
        shred(harness, number)
        analyst.catch_up()
        forgotten = _texts(analyst)
        assert "quokka" not in json.dumps(forgotten["insight_documents"][number]).lower()
        facts = json.dumps([forgotten["insight_facts"], forgotten["insight_session_lines"]])
        assert "quokka" not in facts and "Paris" in facts
        harness.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up()
        assert _texts(analyst) == forgotten
        harness.read(analyst.derived.restart(HOME_TENANT))
        analyst.catch_up(page=1)
        assert _texts(analyst) == forgotten


def _texts(analyst: Analyst) -> dict[str, Any]:
    documents = {row["seq"]: row["body"] for row in analyst.table("insight_documents")}
    facts = [(row["fact_id"], row["text"], row["subject"]) for row in analyst.table("insight_facts")]
    goals = [(row["session_no"], row["goal"], row["turn"]) for row in analyst.table("insight_session_lines")]
    return {"insight_documents": documents, "insight_facts": facts, "insight_session_lines": goals}


class Counted:
    """The committer in one's own hand."""

    def __init__(self, harness: Harness) -> None:
        self.harness, self.submitted = harness, 0

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        self.submitted += 1
        return await asyncio.to_thread(lambda: self.harness.submit(*items, tenant_id=tenant_id))


def keeper(harness: Harness) -> tuple[RetentionWorker, Counted]:
    committer = Counted(harness)

    def principal(tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")

    home = SimpleNamespace(store=harness.store, committer=committer, gateway_principal=principal)
    return RetentionWorker(cast(WorkerContext, home), TenantWatch(harness.store)), committer


def test_retention_is_off_until_an_admin_says_how_long_and_takes_the_oldest_s454(harness: Harness) -> None:
    """S454: by the gateway's clock, bounded at a look, held messages left alone; null ends it."""
    harness.send(
        *(new_message(f"a{number}") for number in range(3)), new_message("h", hitl=True, agent="other")
    )
    clock, committer = keeper(harness)
    assert harness.read(clock.due(harness.now() + 1_000 * DAY_NS)) == 0 and not committer.submitted
    harness.submit(redaction_rules.set_retention(harness.admin(), 30, harness.now()))
    assert harness.read(clock.due(harness.now() + 29 * DAY_NS)) == 0
    later = harness.wait(20 * DAY_NS)
    harness.send(new_message("b"))
    assert harness.read(clock.due(later + 11 * DAY_NS)) == 3
    kept = {one.step_id for one in archive(harness) if one.raw is not None}
    assert kept == {"h", "b"}
    (event,) = events(harness, "payload_shredded")
    assert (
        event["body"]["cause"] == "retention" and event["attributes"]["av.sender.entity_id"] == "sys_gateway"
    )
    assert harness.read(clock.due(later + 11 * DAY_NS)) == 0
    harness.submit(redaction_rules.set_retention(harness.admin(), None, harness.now()))
    assert harness.read(clock.due(later + 1_000 * DAY_NS)) == 0
    received = [event["body"] for event in events(harness, "setting_changed")]
    assert [(one["before"], one["after"]) for one in received] == [(None, 30), (30, None)]
    assert proven(harness)


def test_many_are_shredded_in_orders_of_bounded_size_s454(sqlite_harness: Any) -> None:
    """S454: one event names 500 at most."""
    harness: Harness = sqlite_harness
    harness.send(*(new_message(f"m{number}") for number in range(AT_ONCE + 7)))
    harness.submit(redaction_rules.set_retention(harness.admin(), 1, harness.now()))
    clock, committer = keeper(harness)
    assert harness.read(clock.due(harness.now() + 2 * DAY_NS)) == AT_ONCE + 7
    sizes = [len(one["body"]["shredded_sequence_numbers"]) for one in events(harness, "payload_shredded")]
    assert sizes == [AT_ONCE, 7] and committer.submitted == 2

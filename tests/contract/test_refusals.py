"""Refusals that are only counted, and quotas of agents, on both databases: the clock is the test's own."""

from __future__ import annotations

import json
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.features.refusals import worker as counted
from observatory.features.relay import commands as interventions
from observatory.features.relay import release
from observatory.features.schedule import commands as jobs
from observatory.features.verification.cli_state import check
from observatory.http.ingest import Ingest
from observatory.ledger.canonical import jcs
from observatory.pipeline.authority import denied
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.runtime.worker_context import TenantWatch
from tests.contract.conftest import Harness
from tests.samples import decision_log, envelope

SECOND = 1_000_000_000
Row = dict[str, Any]


def key(name: str = "key_agent", **more: Any) -> Principal:
    return Principal(tenant_id=HOME_TENANT, role="agent", key_id=name, **more)


def judged(harness: Harness, who: Principal, body: bytes) -> Submission | SubmissionResult:
    endpoint = Ingest(SimpleNamespace(settings=SimpleNamespace(message_bytes=1 << 20)))  # type: ignore[arg-type]
    return endpoint.judge(who, harness.now(), None, body)


def breaks(
    harness: Harness, count: int, who: Principal | None = None, start: int = 0
) -> list[SubmissionResult]:
    """So many lines in one batch, each with a fault and content of its own."""
    items = []
    for number in range(start, start + count):
        log = decision_log(identity={"agent_id": f"wrong-{number}"}, cognition={"intent": 7})
        made = judged(harness, who or key(), json.dumps(log).encode())
        assert not isinstance(made, SubmissionResult)
        items.append(made)
    return harness.submit(*items)


def bodies(harness: Harness, *kinds: str) -> list[Row]:
    found = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in found if body["event_type"] in kinds]


def tells(harness: Harness, at_ns: int | None = None) -> list[Row]:
    """After the gateway has looked for minutes that are over: the summaries on record."""
    if at_ns is not None:
        harness.wait(at_ns)

    async def submit(tenant_id: str, items: list[Submission]) -> list[SubmissionResult]:
        waiting.extend(items)
        return []

    waiting: list[Submission] = []
    home = SimpleNamespace(
        store=harness.store,
        committer=SimpleNamespace(submit=submit),
        gateway_principal=lambda tenant_id: harness.admin(tenant_id),
    )
    harness.read(counted.due(home, TenantWatch(harness.store), harness.now()))
    if waiting:
        harness.submit(*waiting)
    return bodies(harness, "refusals_counted")


def root_of(leaves: list[bytes]) -> str:
    """RFC 6962 §2.1, written anew."""
    hashes = [sha256(b"\0" + leaf).digest() for leaf in leaves]

    def mth(some: list[bytes]) -> bytes:
        if len(some) == 1:
            return some[0]
        split = 1
        while split * 2 < len(some):
            split *= 2
        return sha256(b"\1" + mth(some[:split]) + mth(some[split:])).digest()

    return f"sha256:{mth(hashes).hex()}"


def test_ten_violations_a_minute_are_recorded_in_full_and_the_rest_by_count_and_root_s1160(
    harness: Harness,
) -> None:
    """S1160: the answers stay whole; whoever kept them can work out the root; the next minute begins anew."""
    answers = breaks(harness, 25)
    assert [verdict.code for verdict in answers] == [422] * 25
    assert len({verdict.answer.raw_payload_hash for verdict in answers}) == 25
    assert len(bodies(harness, "schema_violation")) == 10
    assert tells(harness) == [], "its minute is not over"
    breaks(harness, 5, start=25)
    (received,) = tells(harness, 61 * SECOND)
    assert (received["refused"], received["reason"], received["count"], received["in_full"]) == (
        "schema_violation",
        "schema_violation",
        20,
        10,
    )
    assert received["key_id"] == "key_agent" and received["since"] < received["until"]
    assert tells(harness, 61 * SECOND) == [received], "told once"
    breaks(harness, 3)
    assert len(bodies(harness, "schema_violation")) == 13


def test_the_root_over_counted_refusals_is_checked_with_the_answers_alone_s1160(harness: Harness) -> None:
    """S1160: its leaves are the RFC 8785 bytes of what each would have said."""
    answers = breaks(harness, 17)
    reason = bodies(harness, "schema_violation")[0]["violation_reason"]
    version = bodies(harness, "schema_violation")[0]["capability_version"]
    (received,) = tells(harness, 61 * SECOND)
    leaves = [
        jcs(
            {
                "event_type": "schema_violation",
                "summary": f"refused a message of wrong-{number}",
                "detail": {
                    "agent_id": f"wrong-{number}",
                    "capability_version": version,
                    "violation_reason": reason,
                    "raw_payload_hash": answers[number].answer.raw_payload_hash,
                },
            }
        )
        for number in range(10, 17)
    ]
    assert received["root"] == root_of(leaves)


def test_counted_violations_make_no_ghosts_and_still_mark_agents_that_are_known_s1161(
    harness: Harness,
) -> None:
    """S1161, S31: thousands of names in one request are not thousands of rows that nobody can delete."""
    breaks(harness, 40)
    agents = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    assert len(agents) == 10
    harness.send(decision_log(identity={"agent_id": "wrong-39"}))
    breaks(harness, 40)
    (marked,) = harness.read(harness.store.rows(HOME_TENANT, "agents", agent_id="wrong-39"))
    assert marked["violation_ns"] is not None


def test_keys_and_reasons_are_counted_by_themselves_and_by_all_gateways_together_s1160(
    harness: Harness,
) -> None:
    """S1160: the count is a row: another process, or the same after kill -9, goes on from it."""
    breaks(harness, 8)
    harness.reopen()
    breaks(harness, 8)
    breaks(harness, 3, key("key_other"))
    lines = [judged(harness, key(), b"not json at all") for _ in range(3)]
    harness.submit(*(line for line in lines if not isinstance(line, SubmissionResult)))
    assert len(bodies(harness, "schema_violation")) == 10 + 3 + 3
    (received,) = tells(harness, 61 * SECOND)
    assert (received["count"], received["key_id"]) == (6, "key_agent")


def test_refused_reads_and_messages_in_anothers_name_are_counted_too_s1160(harness: Harness) -> None:
    """S1160: security violations and denied permissions, found only after the message was looked at."""
    bound = key("key_bound", agent_id="mine")
    forged = [
        judged(harness, bound, json.dumps(decision_log(identity={"agent_id": f"theirs-{n}"})).encode())
        for n in range(30)
    ]
    answers = harness.submit(*(one for one in forged if not isinstance(one, SubmissionResult)))
    assert [verdict.code for verdict in answers] == [403] * 30
    for _ in range(30):
        assert harness.submit(denied(bound, "read", harness.now()))[0].code == 403
    assert len(bodies(harness, "security_violation")) == 10
    assert len(bodies(harness, "permission_denied")) == 10
    received = {(row["refused"], row["reason"]): row["count"] for row in tells(harness, 61 * SECOND)}
    assert received == {("security_violation", "sender_mismatch"): 20, ("permission_denied", "read"): 20}
    severities = {
        json.loads(event.record)["severity_number"]
        for event in harness.trail_of()
        if b'"refusals_counted"' in event.record
    }
    assert severities == {13, 21}, "as severe as what it counts"


def test_a_minute_that_is_over_is_told_before_the_next_refusal_s1160(harness: Harness) -> None:
    """S1160: also by the refusal that begins the next one, and whichever way the clock was set."""
    breaks(harness, 12)
    harness.wait(61 * SECOND)
    breaks(harness, 1)
    assert [row["count"] for row in bodies(harness, "refusals_counted")] == [2]
    breaks(harness, 20)
    assert [row["count"] for row in tells(harness, -3_600 * SECOND)] == [2, 11]


def request(number: int, agent: str = "agt_asker") -> Row:
    return envelope(
        "decision_request",
        sender={"entity_id": agent},
        payload={"decision_id": f"dec_{agent}_{number}"},
    )


def reminder(number: int, agent: str = "sleeper") -> Row:
    return decision_log(
        meta={"step_id": f"s-{number}", "session_id": "ses-1"},
        identity={"agent_id": agent},
        action={"tool_call": "schedule_reminder", "tool_input": '{"delay_ms": 60000, "payload": {}}'},
    )


def test_an_agent_has_at_most_twenty_pending_decisions_s1163(harness: Harness) -> None:
    """S1163: in one batch and over several; others are not touched, and an answer makes room."""
    first = harness.send(*(request(number) for number in range(25)))
    assert [verdict.code for verdict in first] == [202] * 20 + [403] * 5
    assert first[-1].answer.reason == "too_many_decisions" and "agent_decisions" in first[-1].answer.detail
    assert harness.send(request(30))[0].code == 403
    assert harness.send(request(1, "agt_another"))[0].code == 202
    harness.sql("UPDATE decisions SET state = 'expired' WHERE decision_id = 'dec_agt_asker_3'")
    assert [verdict.code for verdict in harness.send(request(31), request(32))] == [202, 403]


def test_an_agent_has_at_most_a_hundred_reminders_that_wait_s1163(harness: Harness) -> None:
    """S1163: one that was removed, or has come, makes room."""
    first = harness.send(*(reminder(number) for number in range(103)))
    assert [verdict.code for verdict in first] == [202] * 100 + [403] * 3
    assert first[-1].answer.reason == "too_many_reminders"
    job = harness.read(harness.store.rows(HOME_TENANT, "jobs"))[0]
    assert harness.submit(jobs.remove(harness.admin(), job["job_id"], harness.now()))[0].code == 200
    assert [verdict.code for verdict in harness.send(reminder(200), reminder(201))] == [202, 403]
    assert harness.send(reminder(300, "another"))[0].code == 202


@pytest.mark.parametrize(("asks", "table", "most"), [(request, "decisions", 20), (reminder, "jobs", 100)])
def test_what_was_held_is_counted_when_it_is_forwarded_s1163(
    harness: Harness, asks: Any, table: str, most: int
) -> None:
    """S1163: a pause collects no more than the quota lets through at its end; what is too much is told."""
    who, first = harness.admin(), asks(0)
    name = "agt_asker" if table == "decisions" else "sleeper"
    session = harness.send(first)[0].answer.session_id
    later = [asks(number) for number in range(1, most + 6)]
    for one in later:
        if "trace_id" in one:
            one["trace_id"] = first["trace_id"]
    assert harness.submit(interventions.pause(who, session, name, None, harness.now()))[0].code in (200, 202)
    assert {verdict.answer.state for verdict in harness.send(*later)} == {"held"}
    assert harness.submit(interventions.unpause(who, session, name, None, harness.now()))[0].code in (
        200,
        202,
    )
    harness.submit(release.drain(who, session, harness.now()))
    assert len(harness.read(harness.store.rows(HOME_TENANT, table))) == most
    received = bodies(harness, "message_undeliverable")
    assert len(received) == 6 and {row["reason"].partition("_")[0] for row in received} == {"too"}
    report = check(harness.url, HOME_TENANT)
    assert report.held, report.sentence  # S1306: what is not asked is missed by nobody

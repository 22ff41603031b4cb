"""Reading what was committed: filters, pages and the seed's own queries, the same over both databases."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.access import commands as access
from observatory.pipeline.ports import EventFilter, MessageFilter
from observatory.pipeline.state import HOME_TENANT, RejectedBody
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.otel import trace_id_of_session
from tests.contract.conftest import Harness
from tests.samples import decision_log, envelope


def log(agent: str = "alpha", session: str = "ses-1", at: str | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"step_id": str(uuid.uuid4()), "session_id": session}
    if at is not None:
        meta["timestamp"] = at
    return decision_log(meta=meta, identity={"agent_id": agent})


def breach(harness: Harness) -> RejectedBody:
    return RejectedBody(
        harness.admin(), harness.now(), "alpha", None, "action: missing", "sha256:" + "0" * 64, None
    )


def numbers(harness: Harness, newest_first: bool = False, limit: int = 1000, **where: Any) -> list[int]:
    found = harness.read(harness.store.events(HOME_TENANT, EventFilter(**where), limit, newest_first))
    return [event.sequence_number for event in found]


def decoded(harness: Harness, **where: Any) -> list[dict[str, Any]]:
    found = harness.read(harness.store.events(HOME_TENANT, EventFilter(**where), 1000, False))
    return [msgspec.json.decode(event.record) for event in found]


@pytest.mark.parametrize("newest_first", [True, False], ids=["newest first", "oldest first"])
def test_pages_by_key_meet_without_gap_or_repeat_whatever_is_filtered(
    harness: Harness, newest_first: bool
) -> None:
    harness.send(*(log(session=f"ses-{i % 3}") for i in range(30)))
    for where in ({}, {"trace_id": trace_id_of_session("ses-1")}, {"severity_min": 9}):
        whole = numbers(harness, newest_first, **where)
        pages: list[int] = []
        while True:
            edge = {("before" if newest_first else "after"): pages[-1]} if pages else {}
            page = numbers(harness, newest_first, 4, **where, **edge)
            if not page:
                break
            assert len(page) <= 4
            pages += page
        assert pages == whole == sorted(whole, reverse=newest_first)


def test_a_trace_is_its_session_and_nothing_else(harness: Harness) -> None:
    harness.send(log(session="ses-1"), log(session="ses-2"), log(session="ses-1"))
    trace = trace_id_of_session("ses-1")
    found = decoded(harness, trace_id=trace)
    assert [event["body"]["event_type"] for event in found] == ["message_delivered"] * 2
    assert {event["trace_id"] for event in found} == {trace}
    assert numbers(harness, trace_id=uuid.uuid4().hex) == []


def test_events_of_no_session_share_the_tenants_system_trace(harness: Harness) -> None:
    (event,) = decoded(harness)
    assert event["body"]["event_type"] == "tenant_created"
    assert numbers(harness, trace_id=event["trace_id"]) == [1]


def test_an_entity_is_found_as_sender_and_as_recipient(harness: Harness) -> None:
    user = f"usr_{uuid.uuid4()}"
    entity = agent_entity_id(HOME_TENANT, "alpha")
    (verdict,) = harness.send(
        envelope(
            "text",
            sender={"entity_id": entity, "entity_type": "agent"},
            recipient={"entity_id": user, "entity_type": "user"},
        )
    )
    harness.send(log("beta"), log("alpha"))
    assert numbers(harness, entity_id=user) == [verdict.answer.sequence_number]
    found = [event for event in decoded(harness, entity_id=entity) if event["body"]["message_id"]]
    assert [event["attributes"].get("av.sender.entity_id") for event in found] == [entity, entity]
    assert numbers(harness, entity_id="agt_nobody") == []


def test_time_is_inclusive_since_exclusive_until_and_exact_to_the_nanosecond(harness: Harness) -> None:
    times = [f"2026-02-16T14:32:00.12345{tail}Z" for tail in ("6499", "6500", "6501", "7499", "7500")]
    first = harness.send(*(log(at=at) for at in times))[0].answer.sequence_number
    expected = dict(zip(times, range(first, first + 5), strict=True))
    for at in times:
        since = [number for text, number in expected.items() if text >= at]
        until = [number for text, number in expected.items() if text < at]
        early, late = to_ns("2026-02-16T14:32:00Z"), to_ns("2026-02-16T14:33:00Z")
        assert numbers(harness, since_ns=to_ns(at), until_ns=late) == since
        assert numbers(harness, since_ns=early, until_ns=to_ns(at)) == until
    assert numbers(harness, since_ns=0, until_ns=to_ns("2026-01-01T00:00:00Z")) == []


def test_severity_is_a_minimum_with_and_without_the_index_of_errors(harness: Harness) -> None:
    harness.send(log())
    harness.submit(breach(harness))
    for minimum in (1, 9, 13, 17, 21):
        expected = [
            e["hash_chain"]["sequence_number"] for e in decoded(harness) if e["severity_number"] >= minimum
        ]
        assert numbers(harness, severity_min=minimum) == expected


def test_messages_are_filtered_by_session_agent_type_and_state(harness: Harness) -> None:
    harness.send(log("alpha", "ses-1"), log("beta", "ses-1"), log("alpha", "ses-2"), envelope("text"))

    def count(**where: Any) -> int:
        return len(harness.read(harness.store.messages(HOME_TENANT, MessageFilter(**where), 100, True)))

    assert count() == 4
    assert count(session_id="ses-1") == 2
    assert count(agent="alpha") == 2
    assert count(agent=agent_entity_id(HOME_TENANT, "alpha"), session_id="ses-2") == 1
    assert count(message_type="text") == 1
    assert (count(state="forwarded"), count(state="held")) == (4, 0)


def test_rows_of_small_tables_come_oldest_first_even_after_changes(harness: Harness) -> None:
    base = {"tenant_id": HOME_TENANT, "role": "viewer"}
    for name in ("c", "a", "b"):
        row = base | {
            "user_id": f"usr_{name}",
            "name": name,
            "display_name": name,
            "created_ns": harness.now(),
        }
        harness.submit(access.create_user(harness.admin(), row, harness.now()))
    harness.submit(access.disable_user(harness.admin(), "usr_c", harness.now()))
    assert [row["name"] for row in harness.read(harness.store.rows(HOME_TENANT, "users"))] == ["c", "a", "b"]
    (one,) = harness.read(harness.store.rows(HOME_TENANT, "users", name="a"))
    assert one["disabled_ns"] is None


def test_an_empty_tenant_has_the_genesis_head_and_a_ping_holds(harness: Harness) -> None:
    number, event_hash = harness.read(harness.store.head("tnt_none"))
    assert (number, event_hash[:7]) == (0, "sha256:")
    harness.read(harness.store.ping())


# The seed's "Key Query Patterns", word for word but for the day ago, which each database spells its way.
TRAIL = "SELECT * FROM audit_events WHERE trace_id = :trace_id ORDER BY sequence_number ASC"
SEVERE = """SELECT * FROM audit_events
WHERE tenant_id = :tenant_id
  AND severity_number >= 17
  AND timestamp > {day_ago}
ORDER BY timestamp DESC"""
CHAIN = """SELECT
    sequence_number,
    event_hash,
    previous_hash,
    LAG(event_hash) OVER (ORDER BY sequence_number) as expected_previous
FROM audit_events
WHERE tenant_id = :tenant_id"""


@pytest.mark.req(486)
def test_the_seeds_query_for_a_conversation_gives_its_trail_in_order(harness: Harness) -> None:
    harness.send(log(session="ses-1"), log(session="ses-2"), log(session="ses-1"))
    trace = trace_id_of_session("ses-1")
    rows = harness.sql(TRAIL, trace_id=trace)
    assert [row[2] for row in rows] == numbers(harness, trace_id=trace)
    assert len(rows) == 2


@pytest.mark.req(487)
def test_the_seeds_query_for_the_last_days_errors_gives_them_newest_first(harness: Harness) -> None:
    harness.submit(breach(harness), breach(harness))
    now = time.time_ns()
    old = harness.send(
        *(
            envelope(
                "status_alert",
                timestamp=from_ns(now - hours * 3_600_000_000_000),
                payload={"severity": "critical"},
            )
            for hours in (25, 2, 1)
        )
    )
    assert {verdict.code for verdict in old} == {202}
    severe = decoded(harness, severity_min=17, since_ns=now - 86_400_000_000_000)
    assert len(severe) == 3, "that of yesterday too: it was recorded now (S1168)"
    of_today = sorted(severe, key=lambda e: e["timestamp"], reverse=True)[:2]
    expected = [e["audit_event_id"] for e in of_today]
    assert [
        row[0] for row in harness.sql(SEVERE.format(day_ago=harness.now_sql), tenant_id=HOME_TENANT)
    ] == expected


@pytest.mark.req(488)
def test_the_seeds_query_for_the_chain_shows_each_hash_beside_the_one_before(harness: Harness) -> None:
    harness.send(*(log() for _ in range(5)))
    rows = sorted(harness.sql(CHAIN, tenant_id=HOME_TENANT))
    assert [row[0] for row in rows] == numbers(harness)
    assert rows[0][3] is None
    assert all(row[2] == row[3] for row in rows[1:])


def test_events_of_thousands_of_senders_are_found_in_one_question_s756(harness: Harness) -> None:
    """S756: keys are never deleted, so a tenant's people are many after years; of others nothing is told."""
    harness.send(log(agent="alpha"), log(agent="beta"))
    many = tuple(f"key_{n}" for n in range(5_000))
    alpha = agent_entity_id(HOME_TENANT, "alpha")
    assert numbers(harness, senders=many) == []
    assert numbers(harness, senders=(*many, alpha)) == numbers(harness, senders=(alpha,)) != []

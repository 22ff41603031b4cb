"""Reading what was committed: filters, pages and the seed's own queries, the same over both databases."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec
import pytest

from observatory.features.access import commands as access
from observatory.pipeline.ports import EventFilter, MessageFilter
from observatory.pipeline.state import HOME_TENANT, Breach
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.otel import trace_id_of_session
from tests.contract.conftest import House
from tests.samples import decision_log, envelope


def log(agent: str = "alpha", session: str = "ses-1", at: str | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"step_id": str(uuid.uuid4()), "session_id": session}
    if at is not None:
        meta["timestamp"] = at
    return decision_log(meta=meta, identity={"agent_id": agent})


def breach(house: House) -> Breach:
    return Breach(house.admin(), house.now(), "alpha", None, "action: missing", "sha256:" + "0" * 64, None)


def numbers(house: House, newest_first: bool = False, limit: int = 1000, **where: Any) -> list[int]:
    found = house.read(house.store.events(HOME_TENANT, EventFilter(**where), limit, newest_first))
    return [event.sequence_number for event in found]


def decoded(house: House, **where: Any) -> list[dict[str, Any]]:
    found = house.read(house.store.events(HOME_TENANT, EventFilter(**where), 1000, False))
    return [msgspec.json.decode(event.record) for event in found]


@pytest.mark.parametrize("newest_first", [True, False], ids=["newest first", "oldest first"])
def test_pages_by_key_meet_without_gap_or_repeat_whatever_is_filtered(
    house: House, newest_first: bool
) -> None:
    house.send(*(log(session=f"ses-{i % 3}") for i in range(30)))
    for where in ({}, {"trace_id": trace_id_of_session("ses-1")}, {"severity_min": 9}):
        whole = numbers(house, newest_first, **where)
        pages: list[int] = []
        while True:
            edge = {("before" if newest_first else "after"): pages[-1]} if pages else {}
            page = numbers(house, newest_first, 4, **where, **edge)
            if not page:
                break
            assert len(page) <= 4
            pages += page
        assert pages == whole == sorted(whole, reverse=newest_first)


def test_a_trace_is_its_session_and_nothing_else(house: House) -> None:
    house.send(log(session="ses-1"), log(session="ses-2"), log(session="ses-1"))
    trace = trace_id_of_session("ses-1")
    found = decoded(house, trace_id=trace)
    assert [event["body"]["event_type"] for event in found] == ["message_delivered"] * 2
    assert {event["trace_id"] for event in found} == {trace}
    assert numbers(house, trace_id=uuid.uuid4().hex) == []


def test_events_of_no_session_share_the_tenants_system_trace(house: House) -> None:
    (event,) = decoded(house)
    assert event["body"]["event_type"] == "tenant_created"
    assert numbers(house, trace_id=event["trace_id"]) == [1]


def test_an_entity_is_found_as_sender_and_as_recipient(house: House) -> None:
    user = f"usr_{uuid.uuid4()}"
    entity = agent_entity_id(HOME_TENANT, "alpha")
    (verdict,) = house.send(
        envelope(
            "text",
            sender={"entity_id": entity, "entity_type": "agent"},
            recipient={"entity_id": user, "entity_type": "user"},
        )
    )
    house.send(log("beta"), log("alpha"))
    assert numbers(house, entity_id=user) == [verdict.answer.sequence_number]
    found = [event for event in decoded(house, entity_id=entity) if event["body"]["message_id"]]
    assert [event["attributes"].get("av.sender.entity_id") for event in found] == [entity, entity]
    assert numbers(house, entity_id="agt_nobody") == []


def test_time_is_inclusive_since_exclusive_until_and_exact_to_the_nanosecond(house: House) -> None:
    times = [f"2026-02-16T14:32:00.12345{tail}Z" for tail in ("6499", "6500", "6501", "7499", "7500")]
    first = house.send(*(log(at=at) for at in times))[0].answer.sequence_number
    expected = dict(zip(times, range(first, first + 5), strict=True))
    for at in times:
        since = [number for text, number in expected.items() if text >= at]
        until = [number for text, number in expected.items() if text < at]
        early, late = to_ns("2026-02-16T14:32:00Z"), to_ns("2026-02-16T14:33:00Z")
        assert numbers(house, since_ns=to_ns(at), until_ns=late) == since
        assert numbers(house, since_ns=early, until_ns=to_ns(at)) == until
    assert numbers(house, since_ns=0, until_ns=to_ns("2026-01-01T00:00:00Z")) == []


def test_severity_is_a_minimum_with_and_without_the_index_of_errors(house: House) -> None:
    house.send(log())
    house.submit(breach(house))
    for minimum in (1, 9, 13, 17, 21):
        expected = [
            e["hash_chain"]["sequence_number"] for e in decoded(house) if e["severity_number"] >= minimum
        ]
        assert numbers(house, severity_min=minimum) == expected


def test_messages_are_filtered_by_session_agent_type_and_state(house: House) -> None:
    house.send(log("alpha", "ses-1"), log("beta", "ses-1"), log("alpha", "ses-2"), envelope("text"))

    def count(**where: Any) -> int:
        return len(house.read(house.store.messages(HOME_TENANT, MessageFilter(**where), 100, True)))

    assert count() == 4
    assert count(session_id="ses-1") == 2
    assert count(agent="alpha") == 2
    assert count(agent=agent_entity_id(HOME_TENANT, "alpha"), session_id="ses-2") == 1
    assert count(message_type="text") == 1
    assert (count(state="forwarded"), count(state="held")) == (4, 0)


def test_rows_of_small_tables_come_oldest_first_even_after_changes(house: House) -> None:
    base = {"tenant_id": HOME_TENANT, "role": "viewer"}
    for name in ("c", "a", "b"):
        row = base | {"user_id": f"usr_{name}", "name": name, "display_name": name, "created_ns": house.now()}
        house.submit(access.create_user(house.admin(), row, house.now()))
    house.submit(access.disable_user(house.admin(), "usr_c", house.now()))
    assert [row["name"] for row in house.read(house.store.rows(HOME_TENANT, "users"))] == ["c", "a", "b"]
    (one,) = house.read(house.store.rows(HOME_TENANT, "users", name="a"))
    assert one["disabled_ns"] is None


def test_an_empty_tenant_has_the_genesis_head_and_a_ping_holds(house: House) -> None:
    number, event_hash = house.read(house.store.head("tnt_none"))
    assert (number, event_hash[:7]) == (0, "sha256:")
    house.read(house.store.ping())


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
def test_the_seeds_query_for_a_conversation_gives_its_trail_in_order(house: House) -> None:
    house.send(log(session="ses-1"), log(session="ses-2"), log(session="ses-1"))
    trace = trace_id_of_session("ses-1")
    rows = house.sql(TRAIL, trace_id=trace)
    assert [row[2] for row in rows] == numbers(house, trace_id=trace)
    assert len(rows) == 2


@pytest.mark.req(487)
def test_the_seeds_query_for_the_last_days_errors_gives_them_newest_first(house: House) -> None:
    house.submit(breach(house), breach(house))
    now = time.time_ns()
    old = house.send(
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
    severe = decoded(house, severity_min=17, since_ns=now - 86_400_000_000_000)
    assert len(severe) == 3, "that of yesterday too: it was recorded now (S1168)"
    of_today = sorted(severe, key=lambda e: e["timestamp"], reverse=True)[:2]
    expected = [e["audit_event_id"] for e in of_today]
    assert [
        row[0] for row in house.sql(SEVERE.format(day_ago=house.now_sql), tenant_id=HOME_TENANT)
    ] == expected


@pytest.mark.req(488)
def test_the_seeds_query_for_the_chain_shows_each_hash_beside_the_one_before(house: House) -> None:
    house.send(*(log() for _ in range(5)))
    rows = sorted(house.sql(CHAIN, tenant_id=HOME_TENANT))
    assert [row[0] for row in rows] == numbers(house)
    assert rows[0][3] is None
    assert all(row[2] == row[3] for row in rows[1:])


def test_events_of_thousands_of_senders_are_found_in_one_question_s756(house: House) -> None:
    """S756: keys are never deleted, so a tenant's people are many after years; of others nothing is told."""
    house.send(log(agent="alpha"), log(agent="beta"))
    many = tuple(f"key_{n}" for n in range(5_000))
    alpha = agent_entity_id(HOME_TENANT, "alpha")
    assert numbers(house, senders=many) == []
    assert numbers(house, senders=(*many, alpha)) == numbers(house, senders=(alpha,)) != []

"""Exporters on both databases: a cursor only grows unless a person moves it, and no secret is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.errors import StatementFailed
from observatory.features.exporters import commands as exporting
from observatory.features.exporters.commands import Change, Failure, NewExporter, Progress, Refusal
from observatory.features.exporters.types_settings import Filters
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Principal, Verdict
from tests.contract.conftest import OTHER_TENANT, House
from tests.samples import decision_log

SECRET = "planted-secret-value"
Row = dict[str, Any]
SYSTEM = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")


def made(house: House, name: str = "grafana", after: int | None = 0, **more: Any) -> Verdict:
    given: Row = {"protocol": "http", "url": "https://otlp.example", "headers": {"api-key": SECRET}} | more
    new = NewExporter(name=name, filters=Filters(severity_min=5), after=after, **given)
    return house.submit(exporting.create(house.admin(), new, house.now()))[0]


def row(house: House, exporter_id: str) -> Row:
    return house.read(house.store.rows(HOME_TENANT, "exporters", exporter_id=exporter_id))[0]


def told(house: House, event_type: str) -> list[Row]:
    bodies = [json.loads(event.record)["body"] for event in house.trail_of()]
    return [body for body in bodies if body["event_type"] == event_type]


def go(house: House, at: Row, until: int, sent: int = 0, **more: Any) -> Row | None:
    done = Progress(at["exporter_id"], at["rounds"], at["cursor"], until, sent, 0, **more)
    answer: Row | None = house.submit(exporting.progress(SYSTEM, done, house.now()))[0].answer
    return answer


@pytest.mark.req(513)
def test_an_exporter_is_made_changed_paused_and_removed_on_record_s564(house: House) -> None:
    """S564, S569: names of headers are told, values stand in no event; another host gets none of the old."""
    first = made(house)
    exporter_id = first.answer["exporter_id"]
    assert first.code == 201 and exporter_id.startswith("exp_")
    assert made(house).answer.reason == "name_taken"
    assert made(house, "datadog", protocol="grpc").code == 201, "a tenant may have several"

    def change(**wish: Any) -> Verdict:
        act = exporting.change(house.admin(), exporter_id, Change(**wish), house.now())
        return house.submit(act)[0]

    assert change(name="datadog").code == 409
    assert change(url="https://otlp.example/otlp").code == 200
    assert json.loads(row(house, exporter_id)["headers"]) == {"api-key": SECRET}, "the same host"
    assert change(url="https://other.example").code == 200
    assert json.loads(row(house, exporter_id)["headers"]) == {}, "another host is told nothing"
    assert change(url="https://third.example", headers={"x": SECRET}).code == 200
    assert json.loads(row(house, exporter_id)["headers"]) == {"x": SECRET}
    before = len(house.trail_of())
    assert change(url="https://third.example").code == 200
    assert len(house.trail_of()) == before, "what is so already is no change"
    for is_halted in (True, True, False):
        house.submit(exporting.halt(house.admin(), exporter_id, is_halted, house.now()))
    assert [one["changes"] for one in told(house, "exporter_changed")] == [
        ["url"],
        ["headers", "url"],
        ["headers", "url"],
        ["state"],
        ["state"],
    ]
    assert house.submit(exporting.remove(house.admin(), exporter_id, house.now()))[0].code == 200
    assert house.submit(exporting.remove(house.admin(), exporter_id, house.now()))[0].code == 404
    assert row(house, exporter_id)["headers"] == "{}"
    assert told(house, "exporter_created")[0]["backend"] == "https://otlp.example"
    assert told(house, "exporter_created")[0]["headers"] == ["api-key"]
    assert not [event for event in house.trail_of() if SECRET.encode() in event.record]
    assert made(house).code == 201, "its name is free again"


def test_a_tenant_has_so_many_exporters_s569(house: House) -> None:
    """S569: and of two in one batch with one name the first is made."""
    new = NewExporter("twin", "http", "https://otlp.example", {}, Filters(), None)
    acts = [exporting.create(house.admin(), new, house.now()) for _ in range(2)]
    assert [one.code for one in house.submit(*acts)] == [201, 409]
    for number in range(exporting.MOST - 1):
        assert made(house, f"e{number}").code == 201
    assert made(house).answer.reason == "too_many_exporters"


@pytest.mark.parametrize(("after", "cursor"), [(None, "head"), (0, 0), (2, 2), (10**6, "head")])
def test_it_begins_where_it_is_told_s565(house: House, after: int | None, cursor: Any) -> None:
    """S565: now, at the start, at a number; never past the record."""
    house.send(decision_log())
    head, _ = house.read(house.store.head(HOME_TENANT))
    assert made(house, after=after).answer["cursor"] == (head if cursor == "head" else cursor)


@pytest.mark.req(515)
def test_the_cursor_goes_on_from_where_the_batch_began_or_not_at_all_s565(house: House) -> None:
    """S565: of two that sent the same one counts; the database itself refuses to go back."""
    house.send(*(decision_log() for _ in range(5)))
    begun = row(house, made(house).answer["exporter_id"])
    done = go(house, begun, 3, sent=3)
    assert done is not None and (done["cursor"], done["sent"]) == (3, 3)
    assert go(house, begun, 3, sent=3) is None, "another gateway with the same batch"
    assert row(house, begun["exporter_id"])["sent"] == 3
    where = {"tenant_id": HOME_TENANT, "exporter_id": begun["exporter_id"]}

    def back(desk: Any) -> Verdict:
        return Verdict(200, None, writes=[Write("exporters", {"cursor": 1}, where)])

    with pytest.raises(StatementFailed):
        house.submit(Act(house.admin(), house.now(), back))
    assert house.refuses("DELETE FROM exporters") and row(house, begun["exporter_id"])["cursor"] == 3


def test_who_moves_it_begins_a_new_round_s570(house: House) -> None:
    """S570: what was on its way under the round before is not counted; the move is on record."""
    house.send(*(decision_log() for _ in range(5)))
    begun = row(house, made(house).answer["exporter_id"])
    at_4 = go(house, begun, 4, sent=4)
    assert at_4 is not None

    def move(to: int) -> Verdict:
        act = exporting.rewind(house.admin(), begun["exporter_id"], to, house.now())
        return house.submit(act)[0]

    assert move(2).answer["cursor"] == 1
    assert go(house, at_4, 6) is None
    stale = Failure(begun["exporter_id"], at_4["rounds"], "away", 1, 5)
    assert house.submit(exporting.fail(SYSTEM, stale, house.now()))[0].answer is None
    head, _ = house.read(house.store.head(HOME_TENANT))
    assert move(head + 2).answer.reason == "beyond_the_record"
    assert move(head + 1).answer["cursor"] == head, "past what a backend will never take"
    assert [(one["before"], one["cursor"]) for one in told(house, "exporter_rewound")] == [(4, 1), (1, head)]


def test_what_is_refused_is_told_once_and_never_of_itself_s567(house: House) -> None:
    """S567: counted and on record; a refusal of what tells of refusals is counted only."""
    house.send(*(decision_log() for _ in range(5)))
    begun = row(house, made(house).answer["exporter_id"])
    refusals = (
        Refusal(2, 2, 1, "the backend answered 400", False),
        Refusal(3, 5, 2, "too old", False),
        Refusal(6, 6, 1, "the backend answered 400", True),
    )
    done = go(house, begun, 6, sent=2, refusals=refusals)
    assert done is not None and done["refused"] == 4
    bodies = told(house, "export_refused")
    assert [(one["first_sequence"], one["last_sequence"], one["refused"]) for one in bodies] == [
        (2, 2, 1),
        (3, 5, 2),
    ]
    assert bodies[0]["reason"] == "the backend answered 400"


def test_a_failure_is_seen_and_ends_with_the_next_success_s568(house: House) -> None:
    """S568: why, how often, and when it is tried again; neither writes an event."""
    house.send(*(decision_log() for _ in range(5)))
    begun = row(house, made(house).answer["exporter_id"])
    before = len(house.trail_of())
    house.submit(exporting.fail(SYSTEM, Failure(begun["exporter_id"], 0, "x" * 999, 3, 77), house.now()))
    found = row(house, begun["exporter_id"])
    assert (found["failures"], found["next_ns"], len(found["problem"])) == (3, 77, exporting.LONGEST)
    assert go(house, found, 2, sent=2) is not None
    found = row(house, begun["exporter_id"])
    assert (found["failures"], found["next_ns"], found["problem"]) == (0, None, None)
    assert len(house.trail_of()) == before


def test_an_exporter_is_its_tenants_alone_s564(house: House) -> None:
    """S564: another tenant neither sees nor moves it."""
    house.create_tenant(OTHER_TENANT)
    exporter_id = made(house).answer["exporter_id"]
    other = house.admin(OTHER_TENANT)
    act = exporting.rewind(other, exporter_id, 1, house.now())
    assert house.submit(act, tenant_id=OTHER_TENANT)[0].code == 404
    assert house.read(house.store.rows(OTHER_TENANT, "exporters")) == []

"""Exporters on both databases: a cursor only grows unless a person moves it, and no secret is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.errors import StatementFailed
from observatory.features.exporters import commands as exporting
from observatory.features.exporters.commands import (
    ExporterChange,
    ExportFailure,
    ExportProgress,
    ExportRefusal,
    NewExporter,
)
from observatory.features.exporters.types_settings import Filters
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.samples import decision_log

SECRET = "planted-secret-value"
Row = dict[str, Any]
SYSTEM = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")


def made(harness: Harness, name: str = "grafana", after: int | None = 0, **more: Any) -> SubmissionResult:
    given: Row = {"protocol": "http", "url": "https://otlp.example", "headers": {"api-key": SECRET}} | more
    new = NewExporter(name=name, filters=Filters(severity_min=5), after=after, **given)
    return harness.submit(exporting.create(harness.admin(), new, harness.now()))[0]


def row(harness: Harness, exporter_id: str) -> Row:
    return harness.read(harness.store.rows(HOME_TENANT, "exporters", exporter_id=exporter_id))[0]


def received(harness: Harness, event_type: str) -> list[Row]:
    bodies = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in bodies if body["event_type"] == event_type]


def go(harness: Harness, at: Row, until: int, sent: int = 0, **more: Any) -> Row | None:
    done = ExportProgress(at["exporter_id"], at["rounds"], at["cursor"], until, sent, 0, **more)
    answer: Row | None = harness.submit(exporting.progress(SYSTEM, done, harness.now()))[0].answer
    return answer


@pytest.mark.req(513)
def test_an_exporter_is_made_changed_paused_and_removed_on_record_s564(harness: Harness) -> None:
    """S564, S569: names of headers are told, values stand in no event; another host gets none of the old."""
    first = made(harness)
    exporter_id = first.answer["exporter_id"]
    assert first.code == 201 and exporter_id.startswith("exp_")
    assert made(harness).answer.reason == "name_taken"
    assert made(harness, "datadog", protocol="grpc").code == 201, "a tenant may have several"

    def change(**wish: Any) -> SubmissionResult:
        act = exporting.change(harness.admin(), exporter_id, ExporterChange(**wish), harness.now())
        return harness.submit(act)[0]

    assert change(name="datadog").code == 409
    assert change(url="https://otlp.example/otlp").code == 200
    assert json.loads(row(harness, exporter_id)["headers"]) == {"api-key": SECRET}, "the same host"
    assert change(url="https://other.example").code == 200
    assert json.loads(row(harness, exporter_id)["headers"]) == {}, "another host is told nothing"
    assert change(url="https://third.example", headers={"x": SECRET}).code == 200
    assert json.loads(row(harness, exporter_id)["headers"]) == {"x": SECRET}
    before = len(harness.trail_of())
    assert change(url="https://third.example").code == 200
    assert len(harness.trail_of()) == before, "what is so already is no change"
    for is_halted in (True, True, False):
        harness.submit(exporting.set_paused(harness.admin(), exporter_id, is_halted, harness.now()))
    assert [one["changes"] for one in received(harness, "exporter_changed")] == [
        ["url"],
        ["headers", "url"],
        ["headers", "url"],
        ["state"],
        ["state"],
    ]
    assert harness.submit(exporting.remove(harness.admin(), exporter_id, harness.now()))[0].code == 200
    assert harness.submit(exporting.remove(harness.admin(), exporter_id, harness.now()))[0].code == 404
    assert row(harness, exporter_id)["headers"] == "{}"
    assert received(harness, "exporter_created")[0]["backend"] == "https://otlp.example"
    assert received(harness, "exporter_created")[0]["headers"] == ["api-key"]
    assert not [event for event in harness.trail_of() if SECRET.encode() in event.record]
    assert made(harness).code == 201, "its name is free again"


def test_a_tenant_has_so_many_exporters_s569(harness: Harness) -> None:
    """S569: and of two in one batch with one name the first is made."""
    new = NewExporter("twin", "http", "https://otlp.example", {}, Filters(), None)
    acts = [exporting.create(harness.admin(), new, harness.now()) for _ in range(2)]
    assert [one.code for one in harness.submit(*acts)] == [201, 409]
    for number in range(exporting.MAX_EXPORTERS - 1):
        assert made(harness, f"e{number}").code == 201
    assert made(harness).answer.reason == "too_many_exporters"


@pytest.mark.parametrize(("after", "cursor"), [(None, "head"), (0, 0), (2, 2), (10**6, "head")])
def test_it_begins_where_it_is_told_s565(harness: Harness, after: int | None, cursor: Any) -> None:
    """S565: now, at the start, at a number; never past the record."""
    harness.send(decision_log())
    head, _ = harness.read(harness.store.head(HOME_TENANT))
    assert made(harness, after=after).answer["cursor"] == (head if cursor == "head" else cursor)


@pytest.mark.req(515)
def test_the_cursor_goes_on_from_where_the_batch_began_or_not_at_all_s565(harness: Harness) -> None:
    """S565: of two that sent the same one counts; the database itself refuses to go back."""
    harness.send(*(decision_log() for _ in range(5)))
    begun = row(harness, made(harness).answer["exporter_id"])
    done = go(harness, begun, 3, sent=3)
    assert done is not None and (done["cursor"], done["sent"]) == (3, 3)
    assert go(harness, begun, 3, sent=3) is None, "another gateway with the same batch"
    assert row(harness, begun["exporter_id"])["sent"] == 3
    where = {"tenant_id": HOME_TENANT, "exporter_id": begun["exporter_id"]}

    def back(uow: Any) -> SubmissionResult:
        return SubmissionResult(200, None, writes=[RowWrite("exporters", {"cursor": 1}, where)])

    with pytest.raises(StatementFailed):
        harness.submit(Command(harness.admin(), harness.now(), back))
    assert harness.refuses("DELETE FROM exporters") and row(harness, begun["exporter_id"])["cursor"] == 3


def test_who_moves_it_begins_a_new_round_s570(harness: Harness) -> None:
    """S570: what was on its way under the round before is not counted; the move is on record."""
    harness.send(*(decision_log() for _ in range(5)))
    begun = row(harness, made(harness).answer["exporter_id"])
    at_4 = go(harness, begun, 4, sent=4)
    assert at_4 is not None

    def move(to: int) -> SubmissionResult:
        act = exporting.rewind(harness.admin(), begun["exporter_id"], to, harness.now())
        return harness.submit(act)[0]

    assert move(2).answer["cursor"] == 1
    assert go(harness, at_4, 6) is None
    stale = ExportFailure(begun["exporter_id"], at_4["rounds"], "away", 1, 5)
    assert harness.submit(exporting.fail(SYSTEM, stale, harness.now()))[0].answer is None
    head, _ = harness.read(harness.store.head(HOME_TENANT))
    assert move(head + 2).answer.reason == "beyond_the_record"
    assert move(head + 1).answer["cursor"] == head, "past what a backend will never take"
    assert [(one["before"], one["cursor"]) for one in received(harness, "exporter_rewound")] == [
        (4, 1),
        (1, head),
    ]


def test_what_is_refused_is_told_once_and_never_of_itself_s567(harness: Harness) -> None:
    """S567: counted and on record; a refusal of what tells of refusals is counted only."""
    harness.send(*(decision_log() for _ in range(5)))
    begun = row(harness, made(harness).answer["exporter_id"])
    refusals = (
        ExportRefusal(2, 2, 1, "the backend answered 400", False),
        ExportRefusal(3, 5, 2, "too old", False),
        ExportRefusal(6, 6, 1, "the backend answered 400", True),
    )
    done = go(harness, begun, 6, sent=2, refusals=refusals)
    assert done is not None and done["refused"] == 4
    bodies = received(harness, "export_refused")
    assert [(one["first_sequence"], one["last_sequence"], one["refused"]) for one in bodies] == [
        (2, 2, 1),
        (3, 5, 2),
    ]
    assert bodies[0]["reason"] == "the backend answered 400"


def test_a_failure_is_seen_and_ends_with_the_next_success_s568(harness: Harness) -> None:
    """S568: why, how often, and when it is tried again; neither writes an event."""
    harness.send(*(decision_log() for _ in range(5)))
    begun = row(harness, made(harness).answer["exporter_id"])
    before = len(harness.trail_of())
    harness.submit(
        exporting.fail(SYSTEM, ExportFailure(begun["exporter_id"], 0, "x" * 999, 3, 77), harness.now())
    )
    found = row(harness, begun["exporter_id"])
    assert (found["failures"], found["next_ns"], len(found["problem"])) == (3, 77, exporting.LONGEST)
    assert go(harness, found, 2, sent=2) is not None
    found = row(harness, begun["exporter_id"])
    assert (found["failures"], found["next_ns"], found["problem"]) == (0, None, None)
    assert len(harness.trail_of()) == before


def test_an_exporter_is_its_tenants_alone_s564(harness: Harness) -> None:
    """S564: another tenant neither sees nor moves it."""
    harness.create_tenant(OTHER_TENANT)
    exporter_id = made(harness).answer["exporter_id"]
    other = harness.admin(OTHER_TENANT)
    act = exporting.rewind(other, exporter_id, 1, harness.now())
    assert harness.submit(act, tenant_id=OTHER_TENANT)[0].code == 404
    assert harness.read(harness.store.rows(OTHER_TENANT, "exporters")) == []

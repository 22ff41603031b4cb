"""The exporter over both databases: looking when it is told to, to a backend that is a list."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from observatory.bus.memory import MemoryBus
from observatory.errors import NotDurable
from observatory.features.exporters import commands as exporting
from observatory.features.exporters import otlp
from observatory.features.exporters import worker as exporter
from observatory.features.exporters.commands import NewExporter
from observatory.features.exporters.transports import ExportResult
from observatory.features.exporters.types_settings import Filters
from observatory.features.exporters.worker import ExportWorker
from observatory.pipeline.state import HOME_TENANT, Submission, SubmissionResult
from observatory.runtime.leader import Leader
from observatory.runtime.outbound_http import OutboundHttp
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.sealing import Keeper
from tests.contract.test_exporting import made, row
from tests.flows.otlp_backend import events_of
from tests.samples import decision_log

Judge = Callable[[str], ExportResult]
TAKEN = ExportResult("taken")


class Line:
    """A way to a backend that has what it takes; `judge` may refuse a tenant's."""

    def __init__(self) -> None:
        self.had: list[int] = []
        self.tenants: set[str] = set()
        self.judge: Judge = lambda _: TAKEN

    async def send(self, body: bytes) -> ExportResult:
        events = events_of(ExportLogsServiceRequest.FromString(body))
        numbers = [event["hash_chain"]["sequence_number"] for event in events]
        tenant_id: str = events[0]["resource"]["av.tenant.id"]
        answer = self.judge(tenant_id)
        if answer.kind == "taken":
            self.had += numbers
            self.tenants.add(tenant_id)
        return answer

    async def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    line = Line()
    monkeypatch.setattr(exporter, "open_transport", lambda *_: line)
    return line


class Clocked(Keeper):
    clock = staticmethod(time.time_ns)


def one(harness: Harness, name: str = "export", home: Clocked | None = None) -> ExportWorker:
    """Of a gateway of its own; with another name of the lease both think that they lead."""
    leader = Leader(harness.store, name)
    return ExportWorker(cast(Any, home or Clocked(harness)), OutboundHttp(), leader, MemoryBus())


def look(harness: Harness, *exporters: ExportWorker) -> None:
    """Until whoever was set to work has ended."""

    async def looked() -> None:
        async with asyncio.TaskGroup() as group:
            await asyncio.gather(*(one.look(group) for one in exporters))

    harness.read(looked())


@pytest.mark.req(513, 515)
def test_it_has_everything_once_whoever_sends_s565(harness: Harness, line: Line) -> None:
    """S565: two that both think they lead, anew each time; every event is there, and counted once."""
    exporter_id = made(harness).answer["exporter_id"]
    for number in range(3):
        harness.send(*(decision_log() for _ in range(4)))
        home = Clocked(harness)  # a tenant's batches are written one at a time, whichever gateway's
        look(harness, one(harness, f"one {number}", home), one(harness, f"another {number}", home))
    found = row(harness, exporter_id)
    head, _ = harness.read(harness.store.head(HOME_TENANT))
    assert found["cursor"] == found["sent"] == head, "what was sent twice counts once"
    assert set(line.had) == set(range(1, head + 1))
    assert harness.read(harness.store.rows(HOME_TENANT, "exporters"))[0]["failures"] == 0
    line.had.clear()
    look(harness, one(harness, "a third"))
    assert line.had == [], "at the end of the record there is nothing to send"


def test_who_does_not_lead_sends_nothing_s565(harness: Harness, line: Line) -> None:
    """S565: the lease saves the work; what counts does not depend on it."""
    made(harness)
    leads, waits = one(harness), one(harness)
    look(harness, leads)
    line.had.clear()
    harness.send(decision_log())
    look(harness, waits)
    assert line.had == []
    look(harness, leads)
    assert line.had != []


def test_one_that_fails_holds_up_no_other_s568(harness: Harness, line: Line) -> None:
    """S568: another tenant's events go; it is tried again only when its time has come."""
    harness.create_tenant(OTHER_TENANT)
    exporter_id = made(harness).answer["exporter_id"]
    other = NewExporter("theirs", "http", "https://otlp.example", {}, Filters(), 0)
    harness.submit(
        exporting.create(harness.admin(OTHER_TENANT), other, harness.now()), tenant_id=OTHER_TENANT
    )
    line.judge = lambda tenant: ExportResult("later", "away", after_s=60) if tenant == HOME_TENANT else TAKEN
    daemon = one(harness)
    look(harness, daemon)
    assert line.tenants == {OTHER_TENANT}
    failed = row(harness, exporter_id)
    assert (failed["failures"], failed["problem"], failed["cursor"]) == (1, "away", 0)
    assert failed["next_ns"] > time.time_ns() + 50 * 10**9
    line.judge = lambda _: TAKEN
    look(harness, daemon)
    assert line.tenants == {OTHER_TENANT} and row(harness, exporter_id)["failures"] == 1
    figures = {one.name: one.value for one in daemon.measures()}
    head, _ = harness.read(harness.store.head(HOME_TENANT))
    assert figures["observatory_export_lag_events"] == head
    assert figures["observatory_export_lag_seconds"] > 0
    assert figures["observatory_exporters_failing"] == figures["observatory_export_failures_total"] == 1


def test_a_clock_set_back_and_a_pause_hold_nothing_up_s568(harness: Harness, line: Line) -> None:
    """S568: what waits for a time that was before the clock moved is due; who is paused is not failing."""
    exporter_id = made(harness).answer["exporter_id"]
    home = Clocked(harness)
    daemon = one(harness, home=home)
    line.judge = lambda _: ExportResult("later", "away", after_s=3_600)
    look(harness, daemon)
    line.judge = lambda _: TAKEN
    look(harness, daemon)
    assert line.had == [], "it waits for an hour"
    home.clock = lambda: time.time_ns() - 3_600 * 10**9
    look(harness, daemon)
    assert line.had != [] and daemon._ways.keys() == {(HOME_TENANT, exporter_id)}

    submit = home.submit

    async def paused(tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        await submit(tenant_id, [exporting.set_paused(harness.admin(), exporter_id, True, harness.now())])
        return await submit(tenant_id, items)

    harness.send(decision_log())
    line.judge = lambda _: ExportResult("later", "away")
    home.submit = paused  # type: ignore[method-assign]
    look(harness, daemon)
    assert row(harness, exporter_id)["state"] == "paused"
    figures = {one.name: one.value for one in daemon.measures()}
    assert figures["observatory_exporters_failing"] == figures["observatory_export_lag_events"] == 0
    look(harness, daemon)
    assert not daemon._ways, "no connection is kept"


def test_while_nothing_can_be_kept_the_same_is_not_sent_at_every_look_s568(
    harness: Harness, line: Line
) -> None:
    """S568: a full disk must not become a flood of repeats; it waits as for a backend that is away."""
    exporter_id = made(harness).answer["exporter_id"]
    home = Clocked(harness)
    daemon, submit = one(harness, home=home), home.submit

    async def full(tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        raise NotDurable("the disk is full")

    home.submit = full  # type: ignore[method-assign]
    for _ in range(3):
        look(harness, daemon)
    assert line.had.count(1) == 1 and row(harness, exporter_id)["cursor"] == 0
    home.submit = submit  # type: ignore[method-assign]
    daemon._unkept[HOME_TENANT, exporter_id] = (1, 0.0)  # its time is over
    look(harness, daemon)
    assert row(harness, exporter_id)["cursor"] > 0 and not daemon._unkept


def test_a_record_that_cannot_be_read_is_a_problem_and_no_crash_s568(
    harness: Harness, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S568: somebody went round the triggers; nothing is passed over."""
    exporter_id = made(harness).answer["exporter_id"]

    def broken(_: bytes) -> None:
        raise KeyError("event_type")

    monkeypatch.setattr(otlp, "read", broken)
    look(harness, one(harness))
    found = row(harness, exporter_id)
    assert found["cursor"] == 0 and "cannot be read" in found["problem"]


def test_a_house_without_exporters_is_asked_seldom_s565(
    harness: Harness, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S565: and at once when one is made here."""
    daemon, asked = one(harness), list[str]()
    rows = harness.store.rows

    async def counted(tenant_id: str, table: str, **where: Any) -> list[dict[str, Any]]:
        asked.append(table)
        return await rows(tenant_id, table, **where)

    monkeypatch.setattr(harness.store, "rows", counted)
    for _ in range(3):
        harness.send(decision_log())
        look(harness, daemon)
    assert asked == ["exporters"]
    made(harness)
    daemon.wake(HOME_TENANT)
    look(harness, daemon)
    assert len(line.had) > 3

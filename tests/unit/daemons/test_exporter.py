"""What an exporter decides without a network: batches, culprits, back-off, and how far a cursor may go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.exporters import worker as exporter
from observatory.features.exporters.otlp import EncodedRecord
from observatory.features.exporters.rejected_records import MAX_REJECTED, Delivered, deliver
from observatory.features.exporters.transports import (
    METHOD,
    ExportResult,
    GrpcExportTransport,
    _after,
    address_of,
    problem_of,
)
from observatory.features.exporters.types_settings import EventFilterMatcher, Filters
from observatory.features.exporters.worker import ReadStretch, backoff_s, cut, settled
from observatory.pipeline.ports import StoredEvent
from observatory.runtime.outbound_http import OutboundHttp
from tests.unit.protocol.test_otlp import an_event

TAKEN, REFUSED = ExportResult("taken"), ExportResult("refused", "the backend answered 400")
ALL = EventFilterMatcher(Filters(), "tnt_x")


def records(count: int, first: int = 1) -> list[EncodedRecord]:
    return [EncodedRecord(seq, "message_delivered", b"{}", b"") for seq in range(first, first + count)]


class Backend:
    """Refuses batches with a poisoned record in them, all, or nothing; may go away after so many requests."""

    def __init__(self, poison: frozenset[int] = frozenset(), answers: int = 10**6) -> None:
        self.poison, self.left, self.takes_nothing, self.is_wrong = poison, answers, True, False
        self.had: list[int] = []
        self.asked = 0

    async def __call__(self, batch: Sequence[EncodedRecord]) -> ExportResult:
        self.asked += 1
        self.left -= 1
        if self.left < 0:
            return ExportResult("later", "away")
        if self.is_wrong or (not batch and not self.takes_nothing):
            return REFUSED
        if any(one.seq in self.poison for one in batch):
            return REFUSED
        self.had += [one.seq for one in batch]
        return TAKEN


def run(count: int, backend: Backend) -> Delivered:
    return asyncio.run(deliver(records(count), backend))


@settings(max_examples=120, deadline=None)
@given(st.integers(1, 70), st.sets(st.integers(1, 70), max_size=6), st.booleans(), st.integers(0, 60))
def test_every_record_is_taken_proven_guilty_or_left_for_later_s567(
    count: int, poison: set[int], takes_nothing: bool, answers: int
) -> None:
    """S567: whatever is poisoned and whenever it goes away; what is settled is a beginning without a gap."""
    backend = Backend(frozenset(poison), answers)
    backend.takes_nothing = takes_nothing
    found = run(count, backend)
    guilty = {one.record.seq for one in found.culprits}
    assert guilty <= poison
    expected = set(range(1, found.settled + 1))
    assert expected == guilty | {seq for seq in backend.had if seq <= found.settled}
    assert found.sent == found.settled - len(guilty)
    is_whole = found.settled == count
    assert (found.stopped is None) is is_whole
    if not is_whole:
        # It went away, or nothing of what is left is anything it takes: then nothing is passed over.
        assert backend.left < 0 or not takes_nothing
    assert backend.asked <= 2 + 2 * (len(poison) + 1) * (count.bit_length() + 1)


def test_a_backend_that_refuses_everything_costs_no_event_s567() -> None:
    """S567: down to four that stand alone and an empty request, a few questions; then it waits."""
    backend = Backend()
    backend.is_wrong = True
    found = run(512, backend)
    assert found.settled == found.sent == 0 and found.culprits == ()
    assert found.stopped is not None and found.stopped.kind == "later"
    assert backend.asked <= 16


def test_one_alone_is_guilty_only_if_the_backend_takes_something_s567() -> None:
    """S567: an empty request is taken by every OTLP backend that is well."""
    well, ill = Backend(frozenset({1})), Backend(frozenset({1}))
    ill.takes_nothing = False
    assert [one.record.seq for one in run(1, well).culprits] == [1]
    assert run(1, ill).settled == 0


def test_so_many_are_passed_over_at_a_time_s567() -> None:
    """S567: the rest at the next look, from where it stopped."""
    found = run(512, Backend(frozenset(range(1, 400))))
    assert len(found.culprits) == MAX_REJECTED and found.stopped is None
    assert found.settled == MAX_REJECTED


def test_a_backend_in_trouble_costs_no_event_though_it_takes_empty_requests_s567() -> None:
    """S567: after an answer that says little a record must be taken; those taken before prove nothing."""
    vague = ExportResult("refused", "the backend answered 500", is_vague=True)
    had: list[int] = []

    async def stands(batch: Sequence[EncodedRecord]) -> ExportResult:  # it falls down after its first half
        if batch and (len(batch) == 8 or batch[0].seq > 4):
            return vague
        had.extend(one.seq for one in batch)
        return TAKEN

    async def down() -> ExportResult:
        return vague

    async def well() -> ExportResult:
        return TAKEN

    found = asyncio.run(deliver(records(8), stands, down))
    assert (found.settled, found.sent, found.culprits) == (4, 4, ()) and had == [1, 2, 3, 4]
    assert found.stopped is not None and found.stopped.kind == "later"
    found = asyncio.run(deliver(records(8), stands, well))
    assert [one.record.seq for one in found.culprits] == [5, 6, 7, 8] and found.stopped is None


def test_a_retry_after_that_is_no_number_says_nothing_s566() -> None:
    """S566: not every digit is one that can be counted by."""
    assert [_after(text) for text in (None, "soon", "\u00b2", "-1", "1e3", " 7 ", "9" * 30)] == [
        *(None, None, None, None, None, 7.0),
        3_600.0,
    ]


def test_a_channel_closed_for_one_request_tells_the_others_to_come_later_s568() -> None:
    """S568: gRPC tells it as a cancellation; unseen, no failure would be kept and nobody would wait."""

    async def answers() -> list[ExportResult]:
        asked = 0

        async def export(_: bytes, context: Any) -> bytes:
            nonlocal asked
            asked += 1
            if asked < 3:
                await asyncio.sleep(10)
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")
            return b""

        server = grpc.aio.server()
        handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
        service = METHOD.split("/")[1]
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        line = GrpcExportTransport(OutboundHttp([f"127.0.0.1:{port}"]), f"http://127.0.0.1:{port}", {})
        found = await asyncio.gather(*(line.send(b"") for _ in range(3)))
        await server.stop(None)
        return found

    found = asyncio.run(answers())
    assert [one.kind for one in found] == ["later"] * 3
    assert sum("UNAUTHENTICATED" in one.detail for one in found) == 1


def test_what_was_taken_without_some_is_told_s566() -> None:
    """S566: it is not sent again; how many and why is kept."""

    async def partly(batch: Sequence[EncodedRecord]) -> ExportResult:
        return ExportResult("taken", "too old", 3)

    found = asyncio.run(deliver(records(10), partly))
    assert (found.settled, found.sent) == (10, 7)
    assert [(part.rejected, part.reason) for part in found.parts] == [(3, "too old")]


def row(cursor: int = 0) -> dict[str, Any]:
    return {"exporter_id": "exp_1", "rounds": 2, "cursor": cursor}


def test_the_cursor_goes_as_far_as_batches_were_settled_without_a_gap_s565() -> None:
    """S565: batches go out together; what came after one that failed is sent again."""
    batches = [records(3, 11), records(3, 20), records(3, 30)]
    stretch, later = ReadStretch(batches, 40, 1), ExportResult("later", "away")
    whole = Delivered(3, 3)
    done, why = settled(row(10), stretch, [whole, whole, whole])
    assert (done.after, done.until, done.sent, done.filtered, why) == (10, 40, 9, 21, None)
    cut_off = Delivered(1, 1, stopped=later)
    done, why = settled(row(10), stretch, [whole, cut_off, whole])
    assert (done.until, done.sent, why) == (20, 4, later), "the next one that is sent is 21"
    done, why = settled(row(10), stretch, [Delivered(0, 0, stopped=later), whole, whole])
    assert (done.until, done.sent, why) == (10, 0, later)
    assert settled(row(10), ReadStretch([], 40, 1), [])[0].until == 40, "all of it was filtered out"


def stored(count: int, **more: Any) -> list[StoredEvent]:
    chain = an_event()["hash_chain"]
    return [
        StoredEvent(
            seq, json.dumps(an_event(**more, hash_chain=chain | {"sequence_number": seq})).encode(), b""
        )
        for seq in range(1, count + 1)
    ]


def test_batches_are_bounded_in_records_and_bytes_s565(monkeypatch: pytest.MonkeyPatch) -> None:
    """S565: 512 records, 4 MiB; one that is larger travels alone."""
    assert (exporter.MAX_RECORDS, exporter.MAX_BYTES) == (512, 4 << 20)
    monkeypatch.setattr(exporter, "MAX_RECORDS", 4)
    found = cut(stored(10), ALL)
    assert [[one.seq for one in batch] for batch in found.batches] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert (found.until, found.oldest_ns) == (10, 1_771_252_320_125_000_000)
    monkeypatch.setattr(exporter, "MAX_BYTES", 45_000)
    assert [len(batch) for batch in cut(stored(5), ALL).batches] == [2, 2, 1]
    monkeypatch.setattr(exporter, "MAX_BYTES", 100)
    assert [len(batch) for batch in cut(stored(3), ALL).batches] == [1, 1, 1]
    nothing = cut(stored(5), EventFilterMatcher(Filters(severity_min=17), "tnt_x"))
    assert (nothing.batches, nothing.until) == ([], 5)


def test_the_pause_grows_to_a_minute_and_is_spread_s568() -> None:
    """S568: half of it is certain, half is chance."""
    assert [backoff_s(n, 1.0) for n in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff_s(3, 0.0) == 4 and backoff_s(10_000, 0.5) == 45


def test_where_logs_are_taken_s562() -> None:
    """S562: over HTTP a bare host means /v1/logs, over gRPC no path is given; plain where vouched for."""
    assert address_of("http", "https://otlp.example") == "https://otlp.example/v1/logs"
    assert address_of("http", "https://otlp.example/") == "https://otlp.example/v1/logs"
    assert address_of("http", "https://otlp.example/otlp/v1/logs") == "https://otlp.example/otlp/v1/logs"
    assert address_of("grpc", "https://otlp.example") == "https://otlp.example"
    strict, open_ = OutboundHttp(), OutboundHttp(["collector:4317"])
    assert problem_of(strict, "grpc", "https://otlp.example:443") is None
    for url in (
        *("http://otlp.example", "https://otlp.example:4317", "https://user:pw@otlp.example", "grpc://x"),
        *("https://otlp.example?key=1", "otlp.example:4317", "https://otlp.example/path"),
    ):
        assert problem_of(strict, "grpc", url) is not None, url
    assert problem_of(open_, "grpc", "http://collector:4317") is None
    assert problem_of(open_, "grpc", "http://collector:4318") is not None

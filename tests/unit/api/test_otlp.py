"""The door for OTLP, alone: what may be sent again, and what is too much."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from observatory.features.otlp.counters import OtlpCounters
from observatory.features.otlp.routes import NotStored, OtlpIngest
from observatory.http.app_state import AppState
from observatory.http.ingest import BodyError, Ingest
from observatory.http.violators import Violators
from observatory.pipeline.state import Principal, SubmissionResult
from observatory.protocol.responses import Refused

WHO = cast(Principal, SimpleNamespace(tenant_id="tnt_default", agent_id=None, key_id="key_1"))
ANSWERED = Refused(reason="x", detail="x")


def taken(codes: list[int], most: int = 10) -> Any:
    """A request of as many spans, of which each is answered so."""

    async def enqueue(*_: Any) -> list[SubmissionResult]:
        return [SubmissionResult(code, ANSWERED) for code in codes]

    counters = OtlpCounters()
    harness = SimpleNamespace(
        settings=SimpleNamespace(batch_lines=most),
        clock=lambda: 1,
        committer=SimpleNamespace(enqueue_bodies=enqueue),
        request_metrics=SimpleNamespace(count=lambda *_: None),
        service=lambda kind: counters,
        violators=Violators(),
    )
    door = OtlpIngest(cast(AppState, harness), cast(Ingest, SimpleNamespace(judge=None)))
    operation = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    spans = [
        {"traceId": "a" * 32, "spanId": f"{n + 1:016x}", "attributes": operation} for n in range(len(codes))
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    return asyncio.run(door.take(WHO, "traces", body, "json")), counters["tnt_default"]


@pytest.mark.parametrize("codes", [[503, 503], [202, 503], [503, 200, 409]])
def test_what_is_not_durable_in_part_is_to_be_sent_again_s814(codes: list[int]) -> None:
    """S814: sent again it is recorded once; counted as rejected it would be lost for good."""
    with pytest.raises(NotStored):
        taken(codes)


def test_what_never_will_be_is_counted_s811() -> None:
    """S811: beside what was taken, which is not asked for again."""
    outcome, seen = taken([202, 409, 200])
    assert (outcome.rejected, outcome.detail) == (1, "1 refused: x")
    assert (seen.totals["recorded"], seen.totals["refused"]) == (2, 1)


def test_more_than_a_request_may_hold_is_413_s816() -> None:
    """S816: as a whole, with a sentence."""
    with pytest.raises(BodyError) as refused:
        taken([202] * 11)
    assert (refused.value.code, refused.value.answer.detail) == (413, "a request may have at most 10 records")

"""Counts of what was received by OTLP since this gateway started, for each tenant; unmapped attributes."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Literal

import msgspec

from observatory.features.otlp.span_values import IngestTally

Signal = Literal["traces", "logs"]
NAMES: Final = 500  # unmapped attributes remembered for a tenant


class ReceivedCounts:
    """Counts of what one tenant sent by OTLP since this gateway started."""

    def __init__(self) -> None:
        self.received: Counter[Signal] = Counter()
        self.totals: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()

    def note(self, signal: Signal, received: int, recorded: int, refused: int, tally: IngestTally) -> None:
        self.received[signal] += received
        self.totals.update(
            recorded=recorded,
            refused=refused,
            not_agents=tally.not_agents,
            without_tokens=tally.without_tokens,
            without_cost=tally.without_cost,
            early=tally.early,
            sums_left=tally.sums_left,
            cut=tally.cut,
        )
        for name, count in tally.unmapped.items():
            if name in self.unmapped or len(self.unmapped) < NAMES:
                self.unmapped[name] += count


class OtlpCounters(dict[str, ReceivedCounts]):
    """By tenant, since this gateway started."""

    def of(self, tenant_id: str) -> ReceivedCounts:
        return self.setdefault(tenant_id, ReceivedCounts())


TOTALS: Final = (
    "recorded",
    "refused",
    "not_agents",
    "without_tokens",
    "without_cost",
    "early",
    "sums_left",
    "cut",
)


class UnmappedName(msgspec.Struct):
    name: str
    count: int


class OtlpAnswer(msgspec.Struct):
    """What was received by OTLP since this gateway started, and its unmapped attributes."""

    spans: int
    log_records: int
    recorded: int
    refused: int
    not_agents: int
    without_tokens: int
    without_cost: int
    early: int
    sums_left: int
    cut: int
    unmapped: list[UnmappedName]
    grpc: str | None


def otlp_answer(seen: ReceivedCounts, grpc: str | None) -> OtlpAnswer:
    totals = seen.totals
    return OtlpAnswer(
        spans=seen.received["traces"],
        log_records=seen.received["logs"],
        unmapped=[UnmappedName(name, count) for name, count in seen.unmapped.most_common(NAMES)],
        grpc=grpc,
        **{name: totals[name] for name in TOTALS},
    )


OTLP_ANSWERS: dict[str, Any] = {"otlp_status": OtlpAnswer}


def operation_of(signal: str) -> dict[str, Any]:
    """The endpoint for the OpenAPI document; its request and response are defined by OTLP."""
    wires = ("application/x-protobuf", "application/json")
    binary, free = {"schema": {"type": "string", "format": "binary"}}, {"schema": {"type": "object"}}
    content = dict(zip(wires, (binary, free), strict=True))
    codes = {
        "200": "Durable, except for what `partial_success` counts",
        "400": "Not OTLP, or not the gzip it declares",
        "401": "No valid key",
        "403": "Not allowed",
        "413": "Too large",
        "415": "Content type or encoding not supported",
        "429": "The queue is full; see Retry-After",
        "503": "Nothing can be made durable now; see Retry-After",
    }
    what = "spans" if signal == "traces" else "log records"
    return {
        "operationId": f"otlp_{signal}",
        "summary": f"Send {what} of agents as OTLP/HTTP",
        "tags": ["OTLP"],
        "requestBody": {"required": True, "content": content},
        "responses": {code: {"description": text, "content": content} for code, text in codes.items()},
    }

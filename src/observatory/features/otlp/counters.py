"""What came by OTLP since this gateway started, counted for each tenant; what no step holds, by name."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Literal

import msgspec

from observatory.features.otlp.span_values import Tally

Signal = Literal["traces", "logs"]
NAMES: Final = 500  # of unmapped attributes that are remembered, for a tenant


class Seen:
    """What came to a tenant by OTLP since this gateway started."""

    def __init__(self) -> None:
        self.received: Counter[Signal] = Counter()
        self.totals: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()

    def note(self, signal: Signal, received: int, recorded: int, refused: int, tally: Tally) -> None:
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
    """What came by OTLP since this gateway started, and what of it no step holds."""

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


def told_of(seen: Seen, grpc: str | None) -> OtlpAnswer:
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
    """The door in the words of OpenAPI; what it takes and answers is OTLP's."""
    wires = ("application/x-protobuf", "application/json")
    binary, free = {"schema": {"type": "string", "format": "binary"}}, {"schema": {"type": "object"}}
    content = dict(zip(wires, (binary, free), strict=True))
    codes = {
        "200": "Durable, but for what `partial_success` counts",
        "400": "Not OTLP, or not the gzip it says",
        "401": "No valid key",
        "403": "Not allowed",
        "413": "Too large",
        "415": "Not a content type or encoding that is taken",
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

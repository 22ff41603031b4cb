"""Where a span belongs: told by itself, by its ancestors, by the record; decided once."""

from __future__ import annotations

import json
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from observatory.features.otlp.records import CLIENT, OtlpSpan
from observatory.features.otlp.spans import RecordedStep, SpanFamily, step_id
from observatory.protocol.identity import NAMESPACE
from tests.unit.protocol.telling import TRACE, bodies, span, steps_of


def test_a_step_knows_agent_session_parent_and_place_s803() -> None:
    """S803: told by the span, else by its ancestors in the request, else by the service."""
    resource = {"service.name": "research", "cloud.provider": "aws", "cloud.region": "eu-central-1"}
    spans = [
        span("POST", 3, 2, CLIENT),
        span("chat", 4, 3, attributes={"gen_ai.operation.name": "chat"}),
        span(
            "invoke_agent",
            2,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "planner\n",
                "gen_ai.conversation.id": "case/7",
            },
        ),
        span("lone", 5, 9, attributes={"openinference.span.kind": "CHAIN"}, resource=resource),
    ]
    steps, tally = steps_of(spans)
    assert steps[0] is None
    assert tally.not_agents == 1
    chat, agent, lone = [json.loads(one.body) for one in steps if one]
    assert chat["identity"]["agent_id"] == agent["identity"]["agent_id"] == "planner"
    assert chat["meta"]["session_id"] == agent["meta"]["session_id"] == "case_7"
    # Hung on the agent: what lies between is no step.
    assert chat["meta"]["parent_step_id"] == agent["meta"]["step_id"] == step_id(TRACE, f"{2:016x}")
    assert lone["identity"]["agent_id"] == lone["identity"]["agent_type"] == "research"
    assert lone["identity"]["capability_version"] == "0.0.0"
    assert lone["meta"]["parent_step_id"] == step_id(TRACE, f"{9:016x}")
    assert lone["meta"]["cluster_id"] == "aws-eu-central-1"
    assert lone["meta"]["session_id"].replace("-", "") == TRACE
    assert bodies(spans[1], bound="bob")[0]["identity"]["agent_id"] == "bob"
    assert steps[1] is not None and steps[1].context is not None
    assert steps[1].context.span_id == f"{4:016x}"


def on_record(*spans: OtlpSpan, record: dict[str, RecordedStep] | None = None) -> dict[str, RecordedStep]:
    """What is on record once these have come in one request."""
    found, _ = steps_of(spans, record)
    received = [(one.body, json.loads(one.body)["meta"]) for one in found if one is not None]
    return (record or {}) | {meta["step_id"]: RecordedStep(meta["session_id"], raw) for raw, meta in received}


FAMILY = [
    span(
        "invoke_agent planner", 1, attributes={"gen_ai.operation.name": "invoke_agent", "session.id": "c-7"}
    ),
    span("GET", 2, 1),  # no step
    span("chat", 3, 2, attributes={"gen_ai.operation.name": "chat"}),
    span("execute_tool", 4, 3, attributes={"gen_ai.operation.name": "execute_tool"}),
]


@given(
    st.permutations(range(4)),
    st.sets(st.integers(0, 3)),
    st.permutations(range(4)),
    st.sets(st.integers(0, 3)),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_grouping_a_span_is_recorded_once_s931(
    first: list[int], cuts: set[int], again: list[int], others: set[int]
) -> None:
    """S931: all four spans in some grouping, then all again in another: not one byte is new."""
    record: dict[str, RecordedStep] = {}
    for order, borders in ((first, cuts), (again, others)):
        before = dict(record) if order is again and record else {}
        group: list[OtlpSpan] = []
        for place, number in enumerate(order):
            group.append(FAMILY[number])
            if place in borders or place == 3:
                named = {name: one for name, one in record.items() if name in SpanFamily(group).asks()}
                record |= on_record(*group, record=named)
                group = []
        assert not before or record == before


def test_a_span_that_comes_late_goes_where_its_parent_is_s932() -> None:
    """S932: agent and session of the step on record; one named by its service alone names nobody else."""
    root, _, chat, tool = FAMILY
    late = span("chat", 5, 1, attributes={"gen_ai.operation.name": "chat"})
    assert SpanFamily([late]).asks() == {step_id(TRACE, f"{5:016x}"), step_id(TRACE, f"{1:016x}")}
    (found,), tally = steps_of([late], on_record(root))
    assert tally.early == 0 and steps_of([late])[1].early == 1, "counted when nobody knows"
    assert found is not None
    body = json.loads(found.body)
    assert body["meta"]["session_id"] == "c-7" and body["identity"]["agent_id"] == "planner"
    (found,), _ = steps_of([tool], on_record(chat))
    assert found is not None
    body = json.loads(found.body)
    assert body["meta"]["session_id"].replace("-", "") == TRACE and body["identity"]["agent_id"] == "research"
    elsewhere = span(
        "chat", 6, 5, attributes={"gen_ai.operation.name": "chat"}, resource={"service.name": "other"}
    )
    (found,), _ = steps_of([elsewhere], on_record(span("chat", 5, attributes=chat.attributes)))
    assert found is not None and json.loads(found.body)["identity"]["agent_id"] == "other"
    # Shredded, or not to be read: its session is known all the same.
    for raw in (None, b"{", b"[]", b'{"identity":3}'):
        gone = {
            step_id(TRACE, f"{1:016x}"): RecordedStep("c-7", raw),
            step_id(TRACE, f"{5:016x}"): RecordedStep("x", raw),
        }
        (found,), _ = steps_of([late], gone)
        assert found is not None and json.loads(found.body)["meta"]["session_id"] == "c-7"


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
def test_a_steps_id_is_the_uuid_of_its_trace_and_span_s803(trace: bytes, one: bytes) -> None:
    """S803: written by hand for speed, and the library's version 5 all the same."""
    assert step_id(trace.hex(), one.hex()) == str(uuid.uuid5(NAMESPACE, f"{trace.hex()}/{one.hex()}"))

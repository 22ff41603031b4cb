"""W3C Trace Context across tenants: whose work a message goes on with is in its event and its delivery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log, envelope

Json = dict[str, Any]
TRACE, SPAN, STATE = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "rojo=00f067aa0ba902b7,congo=t61"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def own(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "own")
    yield made
    made.stop()


def sent(own: Tenant, body: Json, **headers: str) -> Json:
    """The audit event of a message that was sent with these headers."""
    answer = own.http("agent").post("/v1/messages", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    items = own.http("viewer").get(f"/v1/audit/trace/{answer.json()['session_id']}").json()["items"]
    number = answer.json()["sequence_number"]
    (event,) = [one for one in items if one["hash_chain"]["sequence_number"] == number]
    return dict(event)


@pytest.mark.req(505, 511)
def test_work_in_a_trace_of_its_own_links_to_the_callers_s435(own: Tenant) -> None:
    """S435: delegated by another tenant: the original trace, span and state are in the chained event."""
    event = sent(own, decision_log(), traceparent=PARENT, tracestate=STATE)
    link = {"trace_id": TRACE, "span_id": SPAN, "trace_flags": 1, "trace_state": STATE}
    assert event["body"]["links"] == [link] and event["trace_id"] != TRACE
    assert event["attributes"]["av.trace.parent"] == PARENT
    assert event["attributes"]["av.trace.state"] == STATE
    assert own.http("admin").post("/v1/audit/verify", json={}).json()["valid"]


@pytest.mark.req(511)
def test_work_within_the_callers_trace_keeps_its_id_and_state_s435(own: Tenant) -> None:
    """S435: it is no link but the same trace; the first step goes on from the caller's span."""
    trace = uuid4()
    parent = f"00-{trace.hex}-{SPAN}-01"
    meta = {"trace_id": str(trace), "session_id": str(trace), "step_id": str(uuid4()), "parent_step_id": None}
    event = sent(own, decision_log(meta=meta), traceparent=parent, tracestate=STATE)
    assert (event["trace_id"], event["parent_span_id"]) == (trace.hex, SPAN)
    assert "links" not in event["body"] and event["attributes"]["av.trace.state"] == STATE


@pytest.mark.req(505, 511)
def test_an_envelope_carries_it_in_its_metadata_and_to_its_reader_s435(own: Tenant) -> None:
    """S435: as bytes in the archive, as a link in the event, as `tracestate` in the inbox."""
    own.http("admin").post("/v1/agents", json={"agent_id": "reader"})
    reader = own.http("admin").get("/v1/agents/reader").json()["entity_id"]
    carried = {"traceparent": PARENT, "tracestate": STATE}
    to = {"entity_id": reader, "entity_type": "agent"}
    event = sent(own, envelope("text", recipient=to, metadata=carried))
    assert event["body"]["links"][0]["trace_id"] == TRACE
    (item,) = own.http("admin").get("/v1/agents/reader/inbox").json()["items"]
    assert item["tracestate"] == STATE and item["message"]["metadata"] == carried
    assert item["traceparent"].split("-")[1] == event["trace_id"]


@pytest.mark.parametrize(
    ("parent", "state", "kept"),
    [
        ("nonsense", STATE, None),
        (f"00-{'0' * 32}-{SPAN}-01", STATE, None),
        (f"ff-{TRACE}-{SPAN}-01", STATE, None),
        (PARENT, "", False),
        (PARENT, "Upper=1", False),
        (PARENT, "a=1,a=2", False),
        (PARENT, "a=" + "x" * 600, False),
        (PARENT, ",".join(f"k{i}=1" for i in range(33)), False),
        (PARENT, "a=1, ,t@sys=v", "a=1,t@sys=v"),
    ],
)
def test_a_context_that_is_not_valid_is_passed_over_s435(
    own: Tenant, parent: str, state: str, kept: str | bool | None
) -> None:
    """S435: never refused; without a parent all of it, with one the state alone."""
    event = sent(own, decision_log(), traceparent=parent, tracestate=state)
    attributes = event["attributes"]
    assert ("av.trace.parent" in attributes) == (kept is not None) == ("links" in event["body"])
    assert attributes.get("av.trace.state") == (kept or None)

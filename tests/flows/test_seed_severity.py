"""The severity the seed gives an event, and the trace its ids make, of events that really happened."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from observatory.protocol.identity import NAMESPACE
from tests.flows.deciding import People, ask, id_of, respond, trail
from tests.flows.server import Server
from tests.samples import decision_log, envelope

Json = dict[str, Any]
# As the seed prints it.
CONVERSATIONS = uuid.UUID("a1b2c3d4-e5f6-7890-abcd-ef1234567890")


@pytest.fixture
def people(server: Server) -> Iterator[People]:
    made = People(server)
    made.client("owner")
    yield made
    made.close()


def severity(events: list[Json], kind: str) -> tuple[str, int]:
    found = [event for event in events if event["body"]["event_type"] == kind]
    assert found, f"no {kind} among {[event['body']['event_type'] for event in events]}"
    return found[-1]["severity_text"], found[-1]["severity_number"]


@pytest.mark.req(445, 447)
def test_a_decision_and_the_act_that_followed_have_the_seeds_severity(server: Server, people: People) -> None:
    sent = ask(people)
    assert respond(people.client("owner"), sent).status_code == 200
    done = {"status": "success", "triggered_by": {"decision_id": id_of(sent)}}
    confirmed = envelope(
        "action_confirmation", payload=done, trace_id=sent["trace_id"], sender=sent["sender"]
    )
    assert server.send(confirmed).status_code == 202
    events = trail(server, sent)
    assert severity(events, "decision_made") == ("INFO", 10)
    assert severity(events, "action_executed") == ("INFO", 10)


@pytest.mark.req(442)
def test_a_message_that_was_read_is_on_record_with_the_seeds_severity(server: Server) -> None:
    reader, session = f"reader-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
    agent = server.http("agent")
    assert agent.get(f"/v1/agents/{reader}/inbox").json()["items"] == []
    sent = decision_log(
        meta={"session_id": session, "step_id": "1", "parent_step_id": None},
        identity={"agent_id": f"writer-{reader}", "recipient": reader},
    )
    assert server.send(sent).status_code == 202
    items = agent.get(f"/v1/agents/{reader}/inbox").json()["items"]
    ids = [item["delivery_id"] for item in items]
    assert agent.post(f"/v1/agents/{reader}/inbox/ack", json={"ids": ids}).status_code == 200
    events = server.http("admin").get(f"/v1/audit/entity/{reader}").json()["items"]
    assert severity(events, "message_read") == ("INFO", 9)


@pytest.mark.req(360, 361, 362)
def test_a_named_conversation_has_the_trace_id_that_the_seeds_function_gives(server: Server) -> None:
    """uuid5 of the seed's namespace, which is SHA-1: what its code says and its prose does not."""
    assert NAMESPACE == CONVERSATIONS
    session = f"conversation-{uuid.uuid4()}"
    sent = decision_log(meta={"session_id": session, "step_id": "1", "parent_step_id": None})
    answer = server.send(sent)
    assert answer.status_code == 202, answer.text
    trace = uuid.uuid5(CONVERSATIONS, session).hex
    found = server.http("admin").get(f"/v1/audit/trace/{trace}").json()["items"]
    assert answer.json()["sequence_number"] in [one["hash_chain"]["sequence_number"] for one in found]
    assert {one["trace_id"] for one in found} == {trace}


@pytest.mark.req(363)
def test_a_span_the_gateway_makes_is_sixteen_random_hex_digits(server: Server, people: People) -> None:
    spans = []
    for _ in range(2):
        sent = ask(people)
        assert respond(people.client("owner"), sent).status_code == 200
        made = [one for one in trail(server, sent) if one["parent_span_id"] == sent["span_id"]]
        spans += [one["span_id"] for one in made if one["body"]["message_type"] == "decision_response"]
    assert len(spans) == len(set(spans)) == 2
    assert all(len(bytes.fromhex(span)) == 8 and int(span, 16) for span in spans)

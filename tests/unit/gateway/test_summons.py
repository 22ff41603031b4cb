"""A summons: what the house says to an agent, always in the same bytes; and envelopes to a place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observatory.pipeline.interceptor import intercept
from observatory.pipeline.state import HOME_TENANT, IncomingMessage, Principal, RejectedBody
from observatory.pipeline.system_message import MessageTarget, message_id_of, system_message
from observatory.protocol.message import Message
from tests.samples import envelope

GATEWAY_PRINCIPAL = Principal(tenant_id=HOME_TENANT, role="admin", key_id="sys_gateway")
AT = 1_900_000_000 * 10**9


def call(now_ns: int = AT, **given: Any) -> Any:
    plain: dict[str, Any] = {
        "message_id": message_id_of("job_1", AT, 0),
        "sender": "sys_scheduler",
        "target": MessageTarget("agent", "sweeper"),
        "intent": "sweep",
        "payload": {"room": 7},
        "session_id": None,
        "at_ns": AT,
    }
    return system_message(GATEWAY_PRINCIPAL, now_ns=now_ns, **(plain | given))


def test_a_summons_made_again_is_the_same_byte_for_byte_s463() -> None:
    """S463: whenever and by whomever it is made."""
    first, again = call(), call(now_ns=AT + 10**12)
    assert isinstance(first, IncomingMessage) and first.message.digest == again.message.digest
    assert first.message.message_id == again.message.message_id
    assert call(message_id=message_id_of("job_1", AT, 1)).message.digest != first.message.digest


PLACES = [
    (MessageTarget("agent", "sweeper"), None, "agent"),
    (MessageTarget("capability", "sweeping"), "type:sweeping", None),
    (MessageTarget("cluster", "eu-1"), "cluster:eu-1", None),
]


@pytest.mark.parametrize(("target", "recipient", "kind"), PLACES)
def test_whom_a_summons_is_for_s464(target: MessageTarget, recipient: str | None, kind: str | None) -> None:
    """S464: an agent by its id, or a place the router knows; in a session of its own, or in the one named."""
    message = call(target=target).message
    assert message.recipient_type == kind and (recipient is None or message.recipient == recipient)
    assert message.message_type == "text" and message.sender_type == "system"
    assert call(target=target, session_id="night-shift").message.session_id == "night-shift"


@pytest.mark.parametrize(
    "given",
    [{"payload": {"n": 2**60}}, {"payload": {"x": "\x00"}}, {"target": MessageTarget("agent", "agt_ x")}],
)
def test_what_no_message_may_carry_is_a_breach_and_nothing_of_it_is_told_s464(given: dict[str, Any]) -> None:
    """S464: the rule and the hash."""
    found = call(**given)
    assert (
        isinstance(found, RejectedBody) and found.code == 422 and found.raw_payload_hash.startswith("sha256:")
    )
    large = call(payload={"x": "y" * 2_000_000})
    assert isinstance(large, RejectedBody) and large.code == 413


ADDRESSES = [
    ("type:writer", "system", "type:writer", None),
    ("cluster:eu-1", "system", "cluster:eu-1", None),
    ("session:night", "system", "session:night", None),
    ("writer", "system", "sys_router", "system"),
    ("type:" + "x" * 300, "system", "sys_router", "system"),
    (7, "system", "sys_router", "system"),
    ("type:writer", "agent", "agt_x", "agent"),
]


@pytest.mark.parametrize(("address", "kind", "recipient", "recipient_type"), ADDRESSES)
def test_an_envelope_to_the_house_may_name_a_place_s465(
    address: Any, kind: str, recipient: str, recipient_type: str | None
) -> None:
    """S465: only to the house, and only a place; anything else in that member means nothing."""
    to = {"entity_id": "sys_router" if kind == "system" else "agt_x", "entity_type": kind}
    sent = envelope("text", recipient=to, metadata={"address": address})
    found = intercept(json.dumps(sent).encode())
    assert isinstance(found, Message)
    assert (found.recipient, found.recipient_type) == (recipient, recipient_type)

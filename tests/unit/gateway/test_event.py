"""The event of a message: as a mapping and as text it is the same bytes, whatever a sender writes."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.ledger.chain import GENESIS_HASH, ChainHead, link
from observatory.pipeline import message_event as event
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.message_event import MessageEvents, ServiceInfo
from observatory.pipeline.rows import AgentRow, SessionRow
from observatory.pipeline.state import Principal, RedactionResult
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext
from tests.samples import MESSAGE_TYPES, decision_log, envelope

TENANT = "tnt_default"
SERVICE = ServiceInfo("observatory", "0.1.0", "test")
OBSERVED = "2026-02-16T14:32:01.125000000Z"
HEAD = ChainHead(41, GENESIS_HASH)
EVENT_ID, MESSAGE_ID = "evt_01a1e1bb-fe5f-7794-9ba3-5d000000002a", "msg_01a1e1bb-fe5f-74c2-948f-a60c90e89e1d"
# Quotes, backslashes, accents and astral characters; what no name may hold is left out.
names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
sessions = names.map(lambda text: text.replace("/", "-"))
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def _passage(
    message: Message, bound: bool = False, parents: tuple[str, ...] = (), **of_agent: Any
) -> tuple[MessageContext, SessionRow]:
    session = SessionRow(session_no=3, session_id=message.session_id or "s", trace_id="ab" * 16)
    is_agent = message.sender_type == "agent"
    entity_id = agent_entity_id(TENANT, message.sender_id) if is_agent else message.sender_id
    agent = AgentRow(agent_no=1, entity_id=entity_id, agent_id=message.sender_id, **of_agent)
    principal = Principal(
        tenant_id=TENANT, role="agent", key_id="key_1", agent_id=message.sender_id if bound else None
    )
    step_id = message.step_id or "a-step"
    ctx = MessageContext(
        message,
        principal,
        1_771_252_321_000_000_000,
        agent=agent if is_agent else None,
        session=session,
        entity_id=entity_id,
        step_id=step_id,
        name=f"{session.session_id}/{step_id}",
        parents=parents,
        message_id=MESSAGE_ID,
    )
    return ctx, session


def _is_the_same(ctx: MessageContext, session: SessionRow, event_type: str = "message_delivered") -> bool:
    """Whether text was possible; that it equals the mapping is asserted."""
    events = MessageEvents(SERVICE, TENANT, OBSERVED)
    received, recipient_id = events.mapping(ctx, session, event_type, EVENT_ID, 9)
    meant = link(HEAD, received, TENANT)
    for _ in range(2):  # worked out, then recalled
        written = events.linked(HEAD, ctx, session, event_type, EVENT_ID, 9)
        assert written is None or written == (meant, recipient_id)
    return written is not None


def _intercepted(value: dict[str, Any]) -> Message:
    message = intercept(json.dumps(value).encode())
    assert isinstance(message, Message), message
    return message


@given(names, words, sessions, names, st.none() | names, st.booleans(), st.none() | names)
def test_a_decision_log_is_the_same_bytes_as_mapping_and_as_text(
    agent_id: str, tool: str, session_id: str, step_id: str, to: str | None, bound: bool, team: str | None
) -> None:
    message = _intercepted(
        decision_log(
            meta={"session_id": session_id, "step_id": step_id},
            identity={"agent_id": agent_id, "recipient": to},
            action={"tool_call": tool},
        )
    )
    parents = () if team is None else (f"{session_id}/{team}",)
    ctx, session = _passage(message, bound, parents, team_id=team, hub_address=team)
    plain = all(" " <= one <= "~" for one in f"{agent_id}{tool}{to or ''}")
    assert _is_the_same(ctx, session) or not plain


@pytest.mark.parametrize("to", ["type:writer", "cluster:c", "session:s", "writer-1", None])
def test_every_kind_of_address_is_written(to: str | None) -> None:
    assert _is_the_same(*_passage(_intercepted(decision_log(identity={"recipient": to}))))


@pytest.mark.parametrize("message_type", MESSAGE_TYPES)
def test_every_envelope_is_the_same_bytes_as_mapping_and_as_text(message_type: str) -> None:
    message = _intercepted(envelope(message_type))
    assert _is_the_same(*_passage(message, workspace_id="w"), "heartbeat")


@pytest.mark.parametrize("to", ["writer-1", None])
def test_what_redaction_did_is_the_same_bytes_as_mapping_and_as_text_s441(to: str | None) -> None:
    """S441: version and count stand in the event; without rules nothing does."""
    for version, replaced in ((7, 0), (7, 3), (None, 0)):
        ctx, session = _passage(_intercepted(decision_log(identity={"recipient": to})))
        ctx.redacted = RedactionResult(version, replaced, b"{}")
        assert _is_the_same(ctx, session)
        found, _ = MessageEvents(SERVICE, TENANT, OBSERVED).mapping(ctx, session, "x", EVENT_ID, 9)
        received = [found["attributes"].get(f"av.redaction.{name}") for name in ("version", "replaced")]
        assert received == ([None, None] if version is None else [version, replaced])


@pytest.mark.parametrize("trace_id", ["ab" * 16, "cd" * 16])
@pytest.mark.parametrize("state", [None, 'vendor=a"b\\c,other=x'])
@pytest.mark.parametrize("parents", [(), ("s/before",)])
def test_the_callers_trace_is_the_same_bytes_as_mapping_and_as_text_r505(
    trace_id: str, state: str | None, parents: tuple[str, ...]
) -> None:
    """R505: the caller's own words, and a link where this work has a trace of its own."""
    ctx, session = _passage(_intercepted(decision_log()), parents=parents)
    ctx.context = TraceContext(trace_id, "12" * 8, 1, state)
    assert _is_the_same(ctx, session)
    event, _ = MessageEvents(SERVICE, TENANT, OBSERVED).mapping(ctx, session, "x", EVENT_ID, 9)
    assert ("links" in event["body"]) == (trace_id != session.trace_id)


def test_text_whose_canonical_forms_differ_is_left_to_the_mapping() -> None:
    for tool in ("käse", "\x7f"):
        assert not _is_the_same(*_passage(_intercepted(decision_log(action={"tool_call": tool}))))


def test_no_event_enters_another_tenants_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx, session = _passage(_intercepted(decision_log(identity={"agent_id": "heard-of-nowhere-else"})))
    theirs = event.resource(SERVICE, "tnt_other", ctx.entity_id, "agent", None, "unverified")
    monkeypatch.setattr(event, "resource", lambda *named: theirs)
    with pytest.raises(ValueError, match="tenant"):
        MessageEvents(SERVICE, TENANT, OBSERVED).linked(HEAD, ctx, session, "message_delivered", EVENT_ID, 9)


def test_a_sender_and_its_recipient_are_written_anew_for_every_tenant_and_standing() -> None:
    """What is kept between batches is kept by all it is made of: none is written with another's words."""
    received = _intercepted(decision_log(identity={"agent_id": "the-same", "recipient": "another"}))
    records = set()
    for tenant_id, bound, hub, team, severity in product(
        (TENANT, "tnt_other"), (True, False), (None, "hub"), (None, "team"), (9, 17)
    ):
        ctx, session = _passage(received, bound, hub_address=hub, team_id=team)
        events = MessageEvents(SERVICE, tenant_id, OBSERVED)
        meant, to = events.mapping(ctx, session, "message_delivered", EVENT_ID, severity)
        written = events.linked(HEAD, ctx, session, "message_delivered", EVENT_ID, severity)
        assert written == (link(HEAD, meant, tenant_id), to)
        records.add(written[0].record)
    assert len(records) == 32

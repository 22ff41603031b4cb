"""One batch about decisions, without a database: the stage and the effect over a memory made by hand."""

from __future__ import annotations

import json
from typing import Any

from observatory.features.decisions import commands as decisions
from observatory.features.decisions import stage
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.rows import AgentRow, DeliveryRow, SessionRow, TenantRow
from observatory.pipeline.state import (
    BatchState,
    Principal,
    Role,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
)
from observatory.protocol.message import Message
from observatory.protocol.responses import Refused, Rejected
from tests.samples import envelope

TENANT = "tnt_default"
SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
NOW = 1_800_000_000 * SECOND
AGENT, USER, OTHER = "agt_asker", "usr_owner", "usr_other"
KEY = Principal(tenant_id=TENANT, role="agent", key_id="key_agent")
GATEWAY_PRINCIPAL = Principal(tenant_id=TENANT, role="admin", key_id="sys_gateway")
Json = dict[str, Any]


def person(user_id: str | None = USER, role: Role = "approver", *scopes: str) -> Principal:
    return Principal(tenant_id=TENANT, role=role, key_id="key_p", user_id=user_id, scopes=scopes)


class Room:
    """One batch at one time: stage and effect as the corridor calls them."""

    def __init__(self, owner_id: str | None = None) -> None:
        self.memory = BatchState(
            TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead(0, GENESIS_HASH), TenantConfig()
        )
        self.changes = TransactionChanges()
        self.session = self.memory.sessions["s"] = SessionRow(session_no=7, session_id="s", trace_id="1" * 32)
        self.agent = AgentRow(agent_no=3, entity_id=AGENT, agent_id=AGENT, owner_id=owner_id)
        self.at(NOW)

    def at(self, now_ns: int) -> Room:
        self.event_writer = EventWriter(
            ServiceInfo("observatory", "1", "test"), self.memory, self.changes, now_ns
        )
        return self

    def ctx(self, sent: Json, who: Principal) -> MessageContext:
        message = intercept(json.dumps(sent).encode())
        assert isinstance(message, Message), message
        ctx = MessageContext(message, who, self.event_writer.now_ns, session=self.session)
        if message.sender_type == "agent":
            ctx.agent = (
                self.agent
                if message.sender_id == AGENT
                else AgentRow(agent_no=4, entity_id=message.sender_id, agent_id=message.sender_id)
            )
        ctx.entity_id, ctx.message_id = message.sender_id, message.message_id or ""
        return ctx

    def judge(self, sent: Json, who: Principal) -> SubmissionResult | None:
        return stage.check(self.ctx(sent, who), self.memory, self.event_writer.now_ns)

    def send(self, sent: Json, who: Principal) -> MessageContext:
        """Through the stage, which must let it pass, and then forwarded."""
        ctx = self.ctx(sent, who)
        verdict = stage.check(ctx, self.memory, self.event_writer.now_ns)
        assert verdict is None, verdict.answer
        self.forward(ctx)
        return ctx

    def forward(self, ctx: MessageContext) -> None:
        number = self.event_writer.append_message_event(ctx, self.session, "message_delivered")
        decisions.apply_message(ctx, self.event_writer, number)

    @property
    def row(self) -> Json:
        (row,) = self.memory.rows["decisions"].values()
        return row

    @property
    def received(self) -> list[DeliveryRow]:
        return self.changes.deliveries

    def events(self) -> list[Json]:
        return [json.loads(row.record) for row in self.changes.audit]

    def names(self) -> list[str]:
        return [event["body"]["event_type"] for event in self.events()]


def ask(decision_id: str = "dec_1", **payload: Any) -> Json:
    plain = {"decision_id": decision_id, "deadline": None, "auto_action": None}
    return envelope(
        "decision_request",
        sender={"entity_id": AGENT},
        recipient={"entity_id": USER},
        payload=plain | payload,
    )


def answer(option_id: str = "approve", user_id: str = USER, decision_id: str = "dec_1") -> Json:
    return envelope(
        "decision_response",
        sender={"entity_id": user_id, "entity_type": "user"},
        recipient={"entity_id": AGENT, "entity_type": "agent"},
        payload={"decision_id": decision_id, "selected_option_id": option_id},
    )


def confirm(status: str = "success", decision_id: str | None = "dec_1", agent: str = AGENT) -> Json:
    payload = {"status": status, "triggered_by": {"decision_id": decision_id}}
    return envelope("action_confirmation", sender={"entity_id": agent}, payload=payload)


def asked(owner_id: str | None = None, **payload: Any) -> Room:
    room = Room(owner_id)
    room.send(ask(**payload), KEY)
    return room


def refusal(verdict: SubmissionResult | None) -> tuple[int, str]:
    """Its code and reason; every refusal is told of and archives nothing."""
    assert verdict is not None and isinstance(verdict.answer, Refused | Rejected)
    assert verdict.events and not verdict.archived
    return verdict.code, verdict.answer.reason

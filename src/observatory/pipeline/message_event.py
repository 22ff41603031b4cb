"""The audit event of a message: delivered, held, refused. Built as a mapping or directly as text.

Law: both ways give the same bytes; a test compares them. `mapping` is the general form. `linked` is the fast
path nearly every message takes: names and order of the members are known, so the canonical record is one
formatted text in which only values chosen by the sender must be quoted. What messages share (a sender's
members, its resource block) is computed once and cached. Text whose two canonical forms differ (see
`ledger/canonical.py`) is left to the mapping.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from observatory.ledger.canonical import jcs
from observatory.ledger.chain import ChainHead, Linked, check_resource, link_text
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, SessionRow
from observatory.protocol.events import severity_text
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.otel import TraceContext, format_traceparent, read_context, span_id_of
from observatory.protocol.steps import step_of_name

_encode: Final = msgspec.json.Encoder().encode


class ServiceInfo(msgspec.Struct, frozen=True):
    """The writing service, for the resource block."""

    name: str
    version: str
    environment: str


@lru_cache(maxsize=16_384)
def resource(
    service: ServiceInfo,
    tenant_id: str,
    entity_id: str | None,
    kind: str,
    hub: str | None,
    trust: str | None,
    team: str | None = None,
    workspace: str | None = None,
) -> msgspec.Raw:
    """The seed's resource table, encoded once per entity: it is the same for all its events."""
    block: dict[str, Any] = {
        "service.name": service.name,
        "service.version": service.version,
        "av.tenant.id": tenant_id,
        "av.environment": service.environment,
        "av.entity.type": kind,
    }
    if entity_id is not None:
        block["service.instance.id"] = entity_id
    if hub is not None:
        block["av.entity.hub_address"] = hub
    if trust is not None:
        block["av.trust_level"] = trust
    if team is not None:
        block["av.team.id"] = team
    if workspace is not None:
        block["av.workspace.id"] = workspace
    return msgspec.Raw(jcs(block))


class _Sender(NamedTuple):
    """The parts every event of one sender contains, as JSON text."""

    quoted: str  # its entity id as JSON
    members: str  # av.sender.*, in order
    resource_and_severity: str


class _Recipient(NamedTuple):
    entity_id: str | None
    quoted: str  # its entity id as JSON
    members: str  # av.recipient.*, in order, each followed by a comma


AWAY: Final = '"av.step.gateway_away":true,'
NO_RECIPIENT: Final = _Recipient(None, "null", "")


@lru_cache(maxsize=16_384)
def _sender_of(
    service: ServiceInfo,
    tenant_id: str,
    entity_id: str,
    kind: str,
    hub: str | None,
    trust: str | None,
    names: tuple[str, str | None, str | None] | None,
    key_id: str,
    severity: int,
) -> _Sender:
    """`names` are an agent's id, team and workspace. Cached across batches: a small batch has nearly as many
    senders as messages."""
    agent_id, team, workspace = names or (None, None, None)
    block = resource(service, tenant_id, entity_id, kind, hub, trust, team, workspace)
    check_resource(block, tenant_id)
    members = {"av.sender.entity_id": entity_id, "av.sender.entity_type": kind}
    if agent_id is not None:
        members["av.sender.agent_id"] = agent_id
    if hub is not None:
        members["av.sender.hub_address"] = hub
    if key_id:
        members["av.sender.key_id"] = key_id
    return _Sender(
        _quoted(entity_id),
        jcs(members).decode()[1:-1],
        f'"resource":{bytes(block).decode()},"severity_number":{severity},'
        f'"severity_text":"{severity_text(severity)}"',
    )


@lru_cache(maxsize=16_384)
def _recipient_of(tenant_id: str, recipient: str, kind: str | None) -> _Recipient:
    entity_id, members = _address(tenant_id, recipient, kind)
    quoted = "null" if entity_id is None else _quoted(entity_id)
    return _Recipient(entity_id, quoted, jcs(members).decode()[1:-1] + ",")


class MessageEvents:
    """Builds the events of the messages of one batch."""

    def __init__(self, service: ServiceInfo, tenant_id: str, observed: str) -> None:
        self._service = service
        self._tenant_id = tenant_id
        self._observed = observed
        self._observed_text = f'"observed_timestamp":"{observed}"'
        # A batch has few of each; the global cache needs more hashing than this.
        self._resources: dict[tuple[Any, ...], msgspec.Raw] = {}
        self._senders: dict[tuple[Any, ...], _Sender] = {}

    def resource(
        self,
        entity_id: str | None,
        kind: str,
        hub: str | None,
        trust: str | None,
        agent: AgentRow | None = None,
    ) -> msgspec.Raw:
        team, workspace = (None, None) if agent is None else (agent.team_id, agent.workspace_id)
        key = (entity_id, kind, hub, trust, team, workspace)
        known = self._resources.get(key)
        if known is None:
            known = self._resources[key] = resource(self._service, self._tenant_id, *key)
        return known

    def mapping(
        self,
        ctx: MessageContext,
        session: SessionRow,
        event_type: str,
        event_id: str,
        severity: int,
        detail: dict[str, Any] | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """The event without its position in the chain, and the recipient's entity id."""
        message, agent, sender_id = ctx.message, ctx.agent, ctx.entity_id
        kind = message.message_type
        attributes: dict[str, Any] = {
            "av.conversation.id": message.conversation_id or session.session_id,
            "av.message.type": kind,
            "av.message.priority": message.priority,
            "av.delivery.latency_ms": _latency_ms(ctx),
            "av.message.digest": "sha256:" + message.digest.hex(),
            "av.step.id": ctx.step_id,
            "av.sender.entity_id": sender_id,
            "av.sender.entity_type": message.sender_type,
        }
        hub, trust = _hub_and_trust(ctx)
        if ctx.redacted is not None and ctx.redacted.version is not None:
            attributes["av.redaction.version"] = ctx.redacted.version
            attributes["av.redaction.replaced"] = ctx.redacted.replaced
        if agent is not None:
            attributes["av.sender.agent_id"] = agent.agent_id
        if hub is not None:
            attributes["av.sender.hub_address"] = hub
        if _was_away(message):
            attributes["av.step.gateway_away"] = True
        if ctx.principal.key_id:
            attributes["av.sender.key_id"] = ctx.principal.key_id
        recipient_id = None
        if message.recipient is not None:
            recipient_id, members = _address(self._tenant_id, message.recipient, message.recipient_type)
            attributes |= members
        context = trace_context_of(ctx)
        if context is not None:
            detail = {**(detail or {}), **_add_context(context, session, attributes)}
        event: dict[str, Any] = {
            "audit_event_id": event_id,
            "timestamp": message.timestamp,
            "observed_timestamp": self._observed,
            "trace_id": session.trace_id,
            "span_id": message.span_id or span_id_of(ctx.step_id),
            "parent_span_id": _parent_span(ctx),
            "trace_flags": 1,
            "severity_number": severity,
            "severity_text": severity_text(severity),
            "body": {
                "event_type": event_type,
                "message_id": ctx.message_id,
                "message_type": kind,
                "summary": _summary(message),
                **(detail or {}),
            },
            "resource": self.resource(sender_id, message.sender_type, hub, trust, agent),
            "attributes": attributes,
        }
        return event, recipient_id

    def linked(
        self,
        head: ChainHead,
        ctx: MessageContext,
        session: SessionRow,
        event_type: str,
        event_id: str,
        severity: int,
    ) -> tuple[Linked, str | None] | None:
        """`mapping` and `link` in one, for an event without detail; None when its text is not plain."""
        message, trace, links = ctx.message, "", ""
        if (context := trace_context_of(ctx)) is not None:
            trace, links = _context_text(context, session)
        kind, step_id = message.message_type, ctx.step_id
        sender = self._sender(ctx, severity)
        to = NO_RECIPIENT
        if message.recipient is not None:
            to = _recipient_of(self._tenant_id, message.recipient, message.recipient_type)
        span = _parent_span(ctx)
        away = AWAY if _was_away(message) else ""
        parent = "null" if span is None else f'"{span}"'
        # Not quoted: constants and ids of the protocol, times and hex digits contain nothing to escape.
        linked = link_text(
            head,
            self._tenant_id,
            f'{{"av.conversation.id":{_quoted(message.conversation_id or session.session_id)},'
            f'"av.delivery.latency_ms":{_latency_ms(ctx)},'
            f'"av.message.digest":"sha256:{message.digest.hex()}","av.message.priority":"{message.priority}",'
            f'"av.message.type":"{kind}",{to.members}{_redaction(ctx)}{sender.members},'
            f'{away}"av.step.id":{_quoted(step_id)}{trace}}},"audit_event_id":"{event_id}"',
            f'{{"event_type":"{event_type}",{links}"message_id":"{ctx.message_id}","message_type":"{kind}",'
            f'"summary":{_quoted(_summary(message))}}}',
            f'{self._observed_text},"parent_span_id":{parent},{sender.resource_and_severity}',
            to.quoted,
            sender.quoted,
            message.span_id or span_id_of(step_id),
            message.timestamp,
            session.trace_id,
        )
        return None if linked is None else (linked, to.entity_id)

    def _sender(self, ctx: MessageContext, severity: int) -> _Sender:
        message, agent, entity_id = ctx.message, ctx.agent, ctx.entity_id
        hub, trust = _hub_and_trust(ctx)
        names = None if agent is None else (agent.agent_id, agent.team_id, agent.workspace_id)
        key = (entity_id, message.sender_type, hub, trust, names, ctx.principal.key_id, severity)
        known = self._senders.get(key)
        if known is None:
            known = self._senders[key] = _sender_of(self._service, self._tenant_id, *key)
        return known


def _was_away(message: Message) -> bool:
    """Whether its agent acted while the gateway was unreachable (S1128)."""
    control = None if message.log is None else message.log.control
    return control is not None and control.gateway_away is True


def _quoted(text: str) -> str:
    return _encode(text).decode()


def _latency_ms(ctx: MessageContext) -> int:
    """Never negative: a sender's clock may run ahead."""
    return max(0, ctx.received_ns - ctx.message.timestamp_ns) // 1_000_000


def _hub_and_trust(ctx: MessageContext) -> tuple[str | None, str | None]:
    """The sender's hub address and its trust level; an agent's only."""
    hub, agent = ctx.message.hub_address, ctx.agent
    if agent is None:
        return hub, None
    # Of this message's key: another key of the same agent may be unverified.
    return hub or agent.hub_address, "tenant_verified" if ctx.principal.is_bound else "unverified"


def _redaction(ctx: MessageContext) -> str:
    """av.redaction.*, in order, each followed by a comma."""
    result = ctx.redacted
    if result is None or result.version is None:
        return ""
    return f'"av.redaction.replaced":{result.replaced},"av.redaction.version":{result.version},'


def trace_context_of(ctx: MessageContext) -> TraceContext | None:
    """The trace context this message continues: from its request, or from an envelope's metadata.

    Only the latter is archived: a message that is held and released later has no other.
    """
    if ctx.context is not None:
        return ctx.context
    envelope = ctx.message.envelope
    if envelope is None or not envelope.metadata:
        return None
    return read_context(envelope.metadata.get("traceparent"), envelope.metadata.get("tracestate"))


def _add_context(context: TraceContext, session: SessionRow, attributes: dict[str, Any]) -> dict[str, Any]:
    """Add the caller's context as received; returns a span link when the session has its own trace (R505)."""
    attributes["av.trace.parent"] = format_traceparent(*context[:3])
    if context.state is not None:
        attributes["av.trace.state"] = context.state
    if context.trace_id == session.trace_id:
        return {}
    link = {"trace_id": context.trace_id, "span_id": context.span_id, "trace_flags": context.flags}
    return {"links": [link | ({} if context.state is None else {"trace_state": context.state})]}


def _context_text(context: TraceContext, session: SessionRow) -> tuple[str, str]:
    """As `_add_context`: the attributes, each preceded by a comma, and the link, followed by one."""
    state = context.state
    parent = format_traceparent(*context[:3])
    attributes = "" if state is None else f',"av.trace.state":{_quoted(state)}'
    attributes = f',"av.trace.parent":"{parent}"{attributes}'
    if context.trace_id == session.trace_id:
        return attributes, ""
    more = "" if state is None else f',"trace_state":{_quoted(state)}'
    link = (
        f'"span_id":"{context.span_id}","trace_flags":{context.flags},"trace_id":"{context.trace_id}"{more}'
    )
    return attributes, f'"links":[{{{link}}}],'


def _parent_span(ctx: MessageContext) -> str | None:
    span = ctx.message.parent_span_id
    if span is None and ctx.parents:
        return span_id_of(step_of_name(ctx.parents[0]))
    if span is None and (context := ctx.context) is not None:
        # The first step within the caller's own trace is a child of the caller's span.
        session = ctx.session
        return context.span_id if session and session.trace_id == context.trace_id else None
    return span


def _summary(message: Message) -> str:
    summary = f"{message.message_type} from {message.sender_id}"
    if message.tool:
        return f"{summary}: {message.tool} {message.status}"
    return f"{summary}: {message.status}" if message.status else summary


def _address(tenant_id: str, recipient: str, kind: str | None) -> tuple[str | None, dict[str, str]]:
    """The recipient's entity id and attributes; `type:`, `cluster:` and `session:` are addresses, not
    entities."""
    if kind is None and recipient.startswith(("type:", "cluster:", "session:")):
        return None, {"av.recipient.address": recipient}
    entity_id = recipient if kind in ("user", "system") else agent_entity_id(tenant_id, recipient)
    return entity_id, {"av.recipient.entity_type": kind or "agent", "av.recipient.entity_id": entity_id}

"""Turns spans of agents, in any of the conventions, into DecisionLogs: one span, one step.

Law: a step's id follows from trace and span alone, and its bytes from the span alone except for its place:
agent, session and parent, where its ancestors give them. Those are the ancestors in the request and, beyond
them, the recorded step. The place is decided once, when the step is recorded: sent again, in any grouping, it
is recorded once. What a span does not report is absent, never zero: tokens and cost count where they were
spent, with the model's own call, and an agent's sum over calls of its own process is left out so that they do
not count twice. A span without agent attributes is no step; its children are attached to the nearest ancestor
in the request that is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.otlp import conventions
from observatory.features.otlp import span_values as values
from observatory.features.otlp.records import CLIENT, Attributes, OtlpSpan
from observatory.features.otlp.span_names import AttributeNames, names_of
from observatory.protocol.identity import NAMESPACE, hyphenated
from observatory.protocol.otel import TraceContext, read_context
from observatory.protocol.rules import MAX_SAFE

INTENT: Final = 300
_NAMESPACE: Final = NAMESPACE.bytes
_VARIANT: Final = {f"{n:x}": f"{8 | n & 3:x}" for n in range(16)}


class SpanStep(msgspec.Struct, gc=False):
    """A step for the pipeline: the body as an agent would have sent it, and the trace it continues."""

    body: bytes
    context: TraceContext | None


class RecordedStep(NamedTuple):
    """A recorded step: its session, and its bytes unless they were shredded."""

    session_id: str
    raw: bytes | None


Record = Mapping[str, RecordedStep]  # by step id


class SpanMember(msgspec.Struct, eq=False, gc=False):
    """A span of a request, with values that are needed repeatedly."""

    span: OtlpSpan
    wording: AttributeNames
    kind: conventions.Kind | None
    step_id: str  # "" for a span without ids, which is no step


class SpanFamily:
    """The spans of one request: each may inherit values from its ancestors among them."""

    def __init__(self, spans: Sequence[OtlpSpan]) -> None:
        self._members = [_member(span) for span in spans]
        self._by_ids = {(one.span.trace_id, one.span.span_id): one for one in self._members}
        self._sources: dict[int, values.ResourceSource] = {}

    def asks(self) -> set[str]:
        """The steps whose record decides where these spans belong: for a span with a parent its own, and for
        a parent that is not among them the parent's."""
        step_ids = set()
        for one in self._members:
            parent, trace = one.span.parent_id, one.span.trace_id
            if parent and trace:
                if one.kind is not None and one.step_id:
                    step_ids.add(one.step_id)
                if (trace, parent) not in self._by_ids:
                    step_ids.add(step_id(trace, parent))
        return step_ids

    def steps(
        self, bound: str | None, record: Record | None = None
    ) -> tuple[list[SpanStep | None], values.IngestTally]:
        """One entry for each span, None where it is no step. `bound`: the agent the key is bound to;
        `record`: the recorded versions of the steps that `asks` names."""
        tally = values.IngestTally()
        return [self._step(one, bound, tally, record or {}) for one in self._members], tally

    def _step(
        self, one: SpanMember, bound: str | None, tally: values.IngestTally, record: Record
    ) -> SpanStep | None:
        span, kind, name, attribute_names = one.span, one.kind, one.step_id, one.wording
        if kind is None or not name:
            tally.not_agents += 1
            return None
        tally.steps += 1
        attributes = span.attributes
        tally.unread(attribute_names.unmapped)
        parent, lines, beyond = self._ancestry(one)
        above = record.get(beyond) if beyond else None
        source = self._source(span.resource)
        session, trace = _session_of(lines, above), hyphenated(span.trace_id)
        tally.early += session is None and beyond is not None and name not in record
        failed = span.failed or attributes.get("success") in (False, "false")
        cognition: dict[str, Any] = {"intent": _intent(kind, span.name, attributes, attribute_names)}
        action: dict[str, Any] = {
            "status": "failure" if failed else "success",
            "duration_ms": values.duration(span),
        }
        if kind == "tool":
            if tool := _tool(attributes, attribute_names, span.name):
                action["tool_call"] = tool
            if (given := values.first(attributes, attribute_names.tool_input)) is not None:
                action["tool_input"] = values.as_json(given, tally)
            outcome = values.plain(values.first(attributes, attribute_names.tool_output))
        else:
            thoughts, outcome = values.answer(attributes, attribute_names.answer)
            if thoughts:
                cognition["reasoning_chain"] = [values.cut(one, tally) for one in thoughts[:50]]
        trouble = span.trouble or (
            values.plain(values.first(attributes, attribute_names.failure)) if span.failed else ""
        )
        if trouble or outcome:
            action["tool_output_summary"] = values.cut(trouble if failed and trouble else outcome, tally)
        body: dict[str, Any] = {
            "meta": {
                "trace_id": trace,
                "timestamp": values.when(span.start_ns, span.end_ns),
                "parent_step_id": parent,
                "cluster_id": source.cluster_id,
                "step_id": name,
                "session_id": session or trace,
            },
            "identity": identity(
                bound, _agent_in(lines) or _agent_on(above), source, attributes, attribute_names
            ),
            "cognition": cognition,
            "action": action,
        }
        if (spent := _spent(kind, span, attribute_names, tally)) is not None:
            body["state_delta"] = spent
        if kind == "agent" and not span.parent_id and session is None:
            body["control"] = {"is_terminal": True}  # the run that this trace represents has ended
        raw = values.encode(body)
        before = record.get(name)
        if before is not None and before.raw is not None and _own(before.raw) == _own(raw):
            raw = before.raw
        return SpanStep(raw, _context(span))

    def _source(self, resource: Attributes) -> values.ResourceSource:
        found = self._sources.get(id(resource))  # the spans keep the resources, so an id is not reused
        if found is None:
            found = self._sources[id(resource)] = values.source_of(resource)
        return found

    def _ancestry(self, one: SpanMember) -> tuple[str | None, list[SpanMember], str | None]:
        """The parent step; the span with its ancestors in the request, nearest first; the step beyond
        them."""
        lines, parent, at, beyond, trace = [one], None, one, None, one.span.trace_id
        for _ in range(64):
            if not (upward := at.span.parent_id):
                break
            above = self._by_ids.get((trace, upward))
            if above is None:
                beyond = step_id(trace, upward)
                parent = parent or beyond
                break
            if parent is None and above.kind is not None:
                parent = above.step_id
            if above in lines:
                break
            lines.append(above)
            at = above
        return parent, lines, beyond


def _member(span: OtlpSpan) -> SpanMember:
    name = step_id(span.trace_id, span.span_id) if span.trace_id and span.span_id else ""
    return SpanMember(span, names_of(span.attributes), kind_of(span), name)


def _context(span: OtlpSpan) -> TraceContext | None:
    trace, name, flags = span.trace_id, span.span_id, span.flags & 1
    if span.state:
        return read_context(f"00-{trace}-{name}-{flags:02x}", span.state)
    # The ids are valid hex and not all zero, or empty.
    return TraceContext(trace, name, flags, None) if len(trace) == 32 and len(name) == 16 else None


def _session_of(lines: Sequence[SpanMember], above: RecordedStep | None) -> str | None:
    for one in lines:
        if one.wording.session and (session := values.first(one.span.attributes, one.wording.session)):
            return values.session(session)
    return above.session_id if above else None


def kind_of(span: OtlpSpan) -> conventions.Kind | None:
    """The kind of an agent's span; None for any other."""
    attributes, name = span.attributes, span.name
    if name.startswith(conventions.CLAUDE_CODE):
        return (
            None if name.startswith(conventions.CLAUDE_INNER) else conventions.CLAUDE_SPANS.get(name, "link")
        )
    for key, kinds in (
        ("gen_ai.operation.name", conventions.OPERATIONS),
        ("openinference.span.kind", conventions.OPENINFERENCE),
        ("traceloop.span.kind", conventions.TRACELOOP),
    ):
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return kinds.get(value) or kinds.get(value.upper()) or "link"
    if "gen_ai.tool.name" in attributes:
        return "tool"
    if (
        "gen_ai.request.model" in attributes
        or "llm.model_name" in attributes
        or "llm.request.type" in attributes
    ):
        return "model"
    return None


def _own(raw: bytes) -> Any:
    """A step without what its ancestors give it; None if it cannot be read."""
    try:
        body = msgspec.json.decode(raw)
        for section, member in (("meta", "session_id"), ("meta", "parent_step_id"), ("identity", "agent_id")):
            body[section].pop(member, None)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return None
    return body


def _agent_on(above: RecordedStep | None) -> Any:
    """The agent of a recorded step, if it was named: an unnamed one has its service's name."""
    try:
        identity = msgspec.json.decode(above.raw or b"")["identity"] if above is not None else {}
        return identity["agent_id"] if identity and identity["agent_id"] != identity["agent_type"] else None
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None


def step_id(trace_id: str, span_id: str) -> str:
    """A UUID (version 5), so that a parent is found in any session."""
    digits = sha1(
        b"%b%b/%b" % (_NAMESPACE, trace_id.encode(), span_id.encode()), usedforsecurity=False
    ).hexdigest()
    variant = _VARIANT[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def identity(
    bound: str | None,
    agent: Any,
    source: values.ResourceSource,
    attributes: Attributes,
    attribute_names: AttributeNames,
) -> dict[str, Any]:
    """`agent`: the agent as it is named; without one the service is the agent."""
    kind = attributes.get(conventions.AGENT_TYPE)
    version = values.first(attributes, attribute_names.agent_version) or source.version
    found: dict[str, Any] = {
        "agent_id": bound or values.name(agent) or source.service,
        "agent_type": (values.name(kind) if kind else source.agent_type) or source.service,
        "capability_version": values.version(version) if isinstance(version, str) else values.NO_VERSION,
    }
    if (
        attribute_names.model
        and (model := values.name(values.first(attributes, attribute_names.model))) is not None
    ):
        found["model"] = model
    if (
        attribute_names.provider
        and (provider := values.name(values.first(attributes, attribute_names.provider))) is not None
    ):
        found["provider"] = provider
    return found


def _agent_in(lines: Sequence[SpanMember]) -> Any:
    for one in lines:
        if agent := _agent_of(one):
            return agent
    return None


def _agent_of(one: SpanMember) -> Any:
    """The agent an attribute names; without one, an agent's own span is named after it."""
    span, attributes = one.span, one.span.attributes
    if (agent := values.first(attributes, one.wording.agent)) is not None:
        return agent
    if attributes.get("openinference.span.kind") == "AGENT":
        return span.name
    if attributes.get("traceloop.span.kind") in ("agent", "workflow"):
        return attributes.get("traceloop.entity.name")
    is_call = attributes.get("gen_ai.operation.name") == "invoke_agent" and span.name.startswith(
        "invoke_agent "
    )
    return span.name.removeprefix("invoke_agent ") if is_call else None


def _tool(attributes: Attributes, attribute_names: AttributeNames, title: str) -> str:
    tool = values.first(attributes, attribute_names.tool)
    return (values.name(tool) or values.name(title) or "tool").removeprefix("execute_tool ")


def _intent(
    kind: conventions.Kind, title: str, attributes: Attributes, attribute_names: AttributeNames
) -> str:
    """The span's name, and the question if there is one."""
    question = "" if kind == "tool" else values.question(values.first(attributes, attribute_names.question))
    if not question and kind == "agent":
        question = values.plain(attributes.get("gen_ai.agent.description"))
    more = values.shortened(question, INTENT)
    title = values.one_line(title) or kind
    text = f"{title}: {more}" if more else title
    return text if len(text) <= INTENT else f"{text[: INTENT - 1]}…"


def _spent(
    kind: conventions.Kind, span: OtlpSpan, attribute_names: AttributeNames, tally: values.IngestTally
) -> dict[str, Any] | None:
    attributes = span.attributes
    tokens = tokens_of(attributes, attribute_names)
    cost = values.cost(values.first(attributes, attribute_names.cost)) if attribute_names.cost else None
    if kind == "model":
        tally.without_tokens += tokens is None
        tally.without_cost += cost is None
    elif span.kind != CLIENT and (tokens is not None or cost is not None):
        # Calls within this process report their own; a remote agent's calls are reported nowhere else.
        tally.sums_left += 1
        return None
    found: dict[str, Any] = {} if tokens is None else {"tokens_consumed": tokens}
    if cost is not None:
        found["cost"] = cost
    return found or None


def tokens_of(attributes: Attributes, attribute_names: AttributeNames) -> int | None:
    counts = [values.count(values.first(attributes, names)) for names in attribute_names.token_parts]
    parts = [one for one in counts if one is not None]
    found = sum(parts) if parts else values.count(values.first(attributes, attribute_names.tokens_all))
    return found if found is None or found <= MAX_SAFE else None

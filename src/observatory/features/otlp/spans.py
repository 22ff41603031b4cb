"""An agent's spans and events, as others name them, become DecisionLogs: one span, one step.

Law: a step's id follows from trace and span alone, and its bytes from the span alone but for its place:
agent, session and parent, where its ancestors tell them. Those are the ancestors in the request and, past
them, the step on record. The place is decided once, when the step is recorded: sent again, in whatever
grouping, it is recorded once. What a span does not say is absent, never zero: tokens and cost count where
they were spent, with the model's own call, and an agent's sum over calls of its own process is left out lest
they count twice. A span without an agent's words is no step; its children are hung on the nearest ancestor in
the request that is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.otlp import conventions as words
from observatory.features.otlp import span_values as values
from observatory.features.otlp.records import CLIENT, Attributes, Span
from observatory.features.otlp.span_names import Wording, wording_of
from observatory.protocol.identity import NAMESPACE, hyphenated
from observatory.protocol.otel import TraceContext, read_context
from observatory.protocol.rules import MAX_SAFE

INTENT: Final = 300
_NAMESPACE: Final = NAMESPACE.bytes
_VARIANT: Final = {f"{n:x}": f"{8 | n & 3:x}" for n in range(16)}


class Step(msgspec.Struct, gc=False):
    """What goes to the corridor: the body as an agent would have sent it, and whose trace it continues."""

    body: bytes
    context: TraceContext | None


class Recorded(NamedTuple):
    """A step as it is on record: its session, and its bytes unless they were shredded."""

    session_id: str
    raw: bytes | None


Record = Mapping[str, Recorded]  # by step id


class Member(msgspec.Struct, eq=False, gc=False):
    """A span of a request, with what is asked of it again and again."""

    span: Span
    wording: Wording
    kind: words.Kind | None
    step_id: str  # "" of what has no ids and is no step


class Family:
    """The spans of one request: each may be told something by its ancestors among them."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._members = [_member(span) for span in spans]
        self._by_ids = {(one.span.trace_id, one.span.span_id): one for one in self._members}
        self._sources: dict[int, values.Source] = {}

    def asks(self) -> set[str]:
        """The steps whose record decides where these spans belong: of a span with a parent its own, and of a
        parent that is not among them that one's."""
        wanted = set()
        for one in self._members:
            parent, trace = one.span.parent_id, one.span.trace_id
            if parent and trace:
                if one.kind is not None and one.step_id:
                    wanted.add(one.step_id)
                if (trace, parent) not in self._by_ids:
                    wanted.add(step_id(trace, parent))
        return wanted

    def steps(
        self, bound: str | None, record: Record | None = None
    ) -> tuple[list[Step | None], values.Tally]:
        """One entry for each span, None where it is no step. `bound`: the agent whose key it is; `record`:
        what is on record of the steps that `asks` names."""
        tally = values.Tally()
        return [self._step(one, bound, tally, record or {}) for one in self._members], tally

    def _step(self, one: Member, bound: str | None, tally: values.Tally, record: Record) -> Step | None:
        span, kind, name, wording = one.span, one.kind, one.step_id, one.wording
        if kind is None or not name:
            tally.not_agents += 1
            return None
        tally.steps += 1
        said = span.attributes
        tally.unread(wording.unmapped)
        parent, lines, beyond = self._ancestry(one)
        above = record.get(beyond) if beyond else None
        source = self._source(span.resource)
        session, trace = _session_of(lines, above), hyphenated(span.trace_id)
        tally.early += session is None and beyond is not None and name not in record
        failed = span.failed or said.get("success") in (False, "false")
        cognition: dict[str, Any] = {"intent": _intent(kind, span.name, said, wording)}
        action: dict[str, Any] = {
            "status": "failure" if failed else "success",
            "duration_ms": values.duration(span),
        }
        if kind == "tool":
            if tool := _tool(said, wording, span.name):
                action["tool_call"] = tool
            if (given := values.first(said, wording.tool_input)) is not None:
                action["tool_input"] = values.as_json(given, tally)
            outcome = values.plain(values.first(said, wording.tool_output))
        else:
            thoughts, outcome = values.answer(said, wording.answer)
            if thoughts:
                cognition["reasoning_chain"] = [values.cut(one, tally) for one in thoughts[:50]]
        trouble = span.trouble or (values.plain(values.first(said, wording.failure)) if span.failed else "")
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
            "identity": identity(bound, _agent_in(lines) or _agent_on(above), source, said, wording),
            "cognition": cognition,
            "action": action,
        }
        if (spent := _spent(kind, span, wording, tally)) is not None:
            body["state_delta"] = spent
        if kind == "agent" and not span.parent_id and session is None:
            body["control"] = {"is_terminal": True}  # the run that is this trace has ended
        raw = values.encode(body)
        before = record.get(name)
        if before is not None and before.raw is not None and _own(before.raw) == _own(raw):
            raw = before.raw
        return Step(raw, _context(span))

    def _source(self, resource: Attributes) -> values.Source:
        found = self._sources.get(id(resource))  # the spans hold them all, so none is another's
        if found is None:
            found = self._sources[id(resource)] = values.source_of(resource)
        return found

    def _ancestry(self, one: Member) -> tuple[str | None, list[Member], str | None]:
        """The step it hangs on; itself with its ancestors in the request, nearest first; the step past
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


def _member(span: Span) -> Member:
    name = step_id(span.trace_id, span.span_id) if span.trace_id and span.span_id else ""
    return Member(span, wording_of(span.attributes), kind_of(span), name)


def _context(span: Span) -> TraceContext | None:
    trace, name, flags = span.trace_id, span.span_id, span.flags & 1
    if span.state:
        return read_context(f"00-{trace}-{name}-{flags:02x}", span.state)
    # The ids are hex and not all zero, or they were none.
    return TraceContext(trace, name, flags, None) if len(trace) == 32 and len(name) == 16 else None


def _session_of(lines: Sequence[Member], above: Recorded | None) -> str | None:
    for one in lines:
        if one.wording.session and (told := values.first(one.span.attributes, one.wording.session)):
            return values.session(told)
    return above.session_id if above else None


def kind_of(span: Span) -> words.Kind | None:
    """What an agent's span is; None of any other."""
    said, name = span.attributes, span.name
    if name.startswith(words.CLAUDE_CODE):
        return None if name.startswith(words.CLAUDE_INNER) else words.CLAUDE_SPANS.get(name, "link")
    for key, kinds in (
        ("gen_ai.operation.name", words.OPERATIONS),
        ("openinference.span.kind", words.OPENINFERENCE),
        ("traceloop.span.kind", words.TRACELOOP),
    ):
        told = said.get(key)
        if isinstance(told, str) and told:
            return kinds.get(told) or kinds.get(told.upper()) or "link"
    if "gen_ai.tool.name" in said:
        return "tool"
    if "gen_ai.request.model" in said or "llm.model_name" in said or "llm.request.type" in said:
        return "model"
    return None


def _own(raw: bytes) -> Any:
    """What of a step is told by its span alone; None of what cannot be read."""
    try:
        body = msgspec.json.decode(raw)
        for section, member in (("meta", "session_id"), ("meta", "parent_step_id"), ("identity", "agent_id")):
            body[section].pop(member, None)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return None
    return body


def _agent_on(above: Recorded | None) -> Any:
    """The agent of a step on record, if it was named: one that was not goes by its service's name."""
    try:
        who = msgspec.json.decode(above.raw or b"")["identity"] if above is not None else {}
        return who["agent_id"] if who and who["agent_id"] != who["agent_type"] else None
    except (msgspec.MsgspecError, KeyError, TypeError):
        return None


def step_id(trace_id: str, span_id: str) -> str:
    """A UUID (version 5), so that a parent is found whatever session it says it is of."""
    digits = sha1(
        b"%b%b/%b" % (_NAMESPACE, trace_id.encode(), span_id.encode()), usedforsecurity=False
    ).hexdigest()
    variant = _VARIANT[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def identity(
    bound: str | None, told: Any, source: values.Source, said: Attributes, wording: Wording
) -> dict[str, Any]:
    """`told`: the agent as it is named; without one the service is the agent."""
    kind = said.get(words.AGENT_TYPE)
    version = values.first(said, wording.agent_version) or source.version
    found: dict[str, Any] = {
        "agent_id": bound or values.name(told) or source.service,
        "agent_type": (values.name(kind) if kind else source.agent_type) or source.service,
        "capability_version": values.version(version) if isinstance(version, str) else values.NO_VERSION,
    }
    if wording.model and (model := values.name(values.first(said, wording.model))) is not None:
        found["model"] = model
    if wording.provider and (provider := values.name(values.first(said, wording.provider))) is not None:
        found["provider"] = provider
    return found


def _agent_in(lines: Sequence[Member]) -> Any:
    for one in lines:
        if told := _agent_of(one):
            return told
    return None


def _agent_of(one: Member) -> Any:
    """As an attribute names it; an agent's own span has its name, for want of another."""
    span, said = one.span, one.span.attributes
    if (told := values.first(said, one.wording.agent)) is not None:
        return told
    if said.get("openinference.span.kind") == "AGENT":
        return span.name
    if said.get("traceloop.span.kind") in ("agent", "workflow"):
        return said.get("traceloop.entity.name")
    is_call = said.get("gen_ai.operation.name") == "invoke_agent" and span.name.startswith("invoke_agent ")
    return span.name.removeprefix("invoke_agent ") if is_call else None


def _tool(said: Attributes, wording: Wording, title: str) -> str:
    told = values.first(said, wording.tool)
    return (values.name(told) or values.name(title) or "tool").removeprefix("execute_tool ")


def _intent(kind: words.Kind, title: str, said: Attributes, wording: Wording) -> str:
    """The span's name, and what was asked where that is told."""
    asked = "" if kind == "tool" else values.question(values.first(said, wording.question))
    if not asked and kind == "agent":
        asked = values.plain(said.get("gen_ai.agent.description"))
    more = values.in_short(asked, INTENT)
    title = values.one_line(title) or kind
    text = f"{title}: {more}" if more else title
    return text if len(text) <= INTENT else f"{text[: INTENT - 1]}…"


def _spent(kind: words.Kind, span: Span, wording: Wording, tally: values.Tally) -> dict[str, Any] | None:
    said = span.attributes
    tokens = tokens_of(said, wording)
    cost = values.cost(values.first(said, wording.cost)) if wording.cost else None
    if kind == "model":
        tally.without_tokens += tokens is None
        tally.without_cost += cost is None
    elif span.kind != CLIENT and (tokens is not None or cost is not None):
        # The calls within this process tell their own; a remote agent's calls nobody else tells.
        tally.sums_left += 1
        return None
    found: dict[str, Any] = {} if tokens is None else {"tokens_consumed": tokens}
    if cost is not None:
        found["cost"] = cost
    return found or None


def tokens_of(said: Attributes, wording: Wording) -> int | None:
    told = [values.count(values.first(said, names)) for names in wording.token_parts]
    parts = [one for one in told if one is not None]
    found = sum(parts) if parts else values.count(values.first(said, wording.tokens_all))
    return found if found is None or found <= MAX_SAFE else None

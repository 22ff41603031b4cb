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

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from observatory.protocol import conventions as words
from observatory.protocol import span_values as values
from observatory.protocol.identity import NAMESPACE, hyphenated
from observatory.protocol.otel import TraceContext, read_context
from observatory.protocol.otlp_records import CLIENT, Attributes, Span
from observatory.protocol.rules import MAX_SAFE

INTENT: Final = 300


class Step(msgspec.Struct, gc=False):
    """What goes to the corridor: the body as an agent would have sent it, and whose trace it continues."""

    body: bytes
    context: TraceContext | None


class Recorded(NamedTuple):
    """A step as it is on record: its session, and its bytes unless they were shredded."""

    session_id: str
    raw: bytes | None


Record = Mapping[str, Recorded]  # by step id


def steps_of_spans(
    spans: Sequence[Span], bound: str | None, record: Record | None = None
) -> tuple[list[Step | None], values.Tally]:
    """One entry for each span, None where it is no step. `bound`: the agent whose key it is; `record`: what
    is on record of the steps that `asks` names."""
    family = {(span.trace_id, span.span_id): span for span in spans}
    tally = values.Tally()
    return [_step(span, family, bound, tally, record or {}) for span in spans], tally


def asks(spans: Sequence[Span]) -> set[str]:
    """The steps whose record decides where these spans belong: of a span with a parent its own, and of a
    parent that is not among them that one's."""
    family = {(span.trace_id, span.span_id) for span in spans}
    wanted = set()
    for span in spans:
        if span.parent_id and span.trace_id and span.span_id and kind_of(span) is not None:
            wanted.add(step_id(span.trace_id, span.span_id))
        if span.parent_id and span.trace_id and (span.trace_id, span.parent_id) not in family:
            wanted.add(step_id(span.trace_id, span.parent_id))
    return wanted


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


Family = Mapping[tuple[str, str], Span]


def _step(span: Span, family: Family, bound: str | None, tally: values.Tally, record: Record) -> Step | None:
    kind = kind_of(span)
    if kind is None or not span.trace_id or not span.span_id:
        tally.not_agents += 1
        return None
    tally.steps += 1
    said = span.attributes
    tally.unread(said)
    parent, lines, beyond = _ancestry(span, family)
    above = record.get(beyond) if beyond else None
    told = (values.first(one.attributes, words.SESSION) for one in lines)
    session = next((values.session(one) for one in told if one), above.session_id if above else None)
    trace, name = hyphenated(span.trace_id), step_id(span.trace_id, span.span_id)
    tally.early += session is None and beyond is not None and name not in record
    tool = _tool(said, span.name) if kind == "tool" else None
    body: dict[str, Any] = {
        "meta": {
            "trace_id": trace,
            "timestamp": values.when(span.start_ns, span.end_ns),
            "parent_step_id": parent,
            "cluster_id": values.cluster(span.resource),
            "step_id": name,
            "session_id": session or trace,
        },
        "identity": identity(
            bound, next((one for one in map(_agent_of, lines) if one), _agent_on(above)), span.resource, said
        ),
        "cognition": {"intent": _intent(kind, span.name, said)},
        "action": {
            "status": "failure" if span.failed or said.get("success") in (False, "false") else "success",
            "duration_ms": values.duration(span),
            **({"tool_call": tool} if tool else {}),
        },
    }
    cognition, action = body["cognition"], body["action"]
    if kind == "tool":
        if (given := values.first(said, words.TOOL_INPUT)) is not None:
            action["tool_input"] = values.as_json(given, tally)
        outcome = values.plain(values.first(said, words.TOOL_OUTPUT))
    else:
        thoughts, outcome = values.answer(said)
        if thoughts:
            cognition["reasoning_chain"] = [values.cut(one, tally) for one in thoughts[:50]]
    trouble = span.trouble or (values.plain(values.first(said, words.FAILURE)) if span.failed else "")
    if trouble or outcome:
        action["tool_output_summary"] = values.cut(
            trouble if action["status"] == "failure" and trouble else outcome, tally
        )
    if (spent := _spent(kind, span, tally)) is not None:
        body["state_delta"] = spent
    if kind == "agent" and not span.parent_id and session is None:
        body["control"] = {"is_terminal": True}  # the run that is this trace has ended
    context = read_context(f"00-{span.trace_id}-{span.span_id}-{span.flags & 1:02x}", span.state)
    raw = values.encode(body)
    before = record.get(name)
    if before is not None and before.raw is not None and _own(before.raw) == _own(raw):
        raw = before.raw
    return Step(raw, context)


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


@lru_cache(maxsize=16_384)
def step_id(trace_id: str, span_id: str) -> str:
    """A UUID, so that a parent is found whatever session it says it is of."""
    return str(uuid.uuid5(NAMESPACE, f"{trace_id}/{span_id}"))


def _ancestry(span: Span, family: Family) -> tuple[str | None, list[Span], str | None]:
    """The step it hangs on; itself with its ancestors in the request, nearest first; the step past them."""
    lines, parent, at, beyond = [span], None, span, None
    for _ in range(64):
        if not at.parent_id:
            break
        above = family.get((span.trace_id, at.parent_id))
        if parent is None and (above is None or kind_of(above) is not None):
            parent = step_id(span.trace_id, at.parent_id)
        if above is None:
            beyond = step_id(span.trace_id, at.parent_id)
        if above is None or any(above is one for one in lines):
            break
        lines.append(above)
        at = above
    return parent, lines, beyond


def identity(bound: str | None, told: Any, resource: Attributes, said: Attributes) -> dict[str, Any]:
    """`told`: the agent as it is named; without one the service is the agent."""
    kind = "observatory.agent_type"
    service = values.name(resource.get("service.name")) or "unknown_service"
    version = values.first(said, words.AGENT_VERSION) or resource.get("service.version")
    found: dict[str, Any] = {
        "agent_id": bound or values.name(told) or service,
        "agent_type": values.name(said.get(kind) or resource.get(kind)) or service,
        "capability_version": values.version(version) if isinstance(version, str) else values.NO_VERSION,
    }
    for member, names in (("model", words.MODEL), ("provider", words.PROVIDER)):
        if (value := values.name(values.first(said, names))) is not None:
            found[member] = value
    return found


def _agent_of(span: Span) -> Any:
    """As an attribute names it; an agent's own span has its name, for want of another."""
    said = span.attributes
    if (told := values.first(said, words.AGENT)) is not None:
        return told
    if said.get("openinference.span.kind") == "AGENT":
        return span.name
    if said.get("traceloop.span.kind") in ("agent", "workflow"):
        return said.get("traceloop.entity.name")
    is_call = said.get("gen_ai.operation.name") == "invoke_agent" and span.name.startswith("invoke_agent ")
    return span.name.removeprefix("invoke_agent ") if is_call else None


def _tool(said: Attributes, title: str) -> str:
    told = values.first(said, (*words.TOOL, "gen_ai.data_source.id"))
    return (values.name(told) or values.name(title) or "tool").removeprefix("execute_tool ")


def _intent(kind: words.Kind, title: str, said: Attributes) -> str:
    """The span's name, and what was asked where that is told."""
    asked = "" if kind == "tool" else values.question(values.first(said, words.QUESTION))
    described = values.plain(said.get("gen_ai.agent.description")) if kind == "agent" else ""
    more = " ".join(values.one_line(asked or described).split())
    title = values.one_line(title) or kind
    text = f"{title}: {more}" if more else title
    return text if len(text) <= INTENT else f"{text[: INTENT - 1]}…"


def _spent(kind: words.Kind, span: Span, tally: values.Tally) -> dict[str, Any] | None:
    said = span.attributes
    tokens, cost = tokens_of(said), values.cost(values.first(said, words.COST))
    if kind == "model":
        tally.without_tokens += tokens is None
        tally.without_cost += cost is None
    elif span.kind != CLIENT and (tokens is not None or cost is not None):
        # The calls within this process tell their own; a remote agent's calls nobody else tells.
        tally.sums_left += 1
        return None
    found = {"tokens_consumed": tokens, "cost": cost}
    return {name: value for name, value in found.items() if value is not None} or None


def tokens_of(said: Attributes) -> int | None:
    told = [values.count(values.first(said, names)) for names in (words.TOKENS_IN, words.TOKENS_OUT)]
    told += [values.count(said.get(name)) for name in words.TOKENS_CACHED]
    parts = [one for one in told if one is not None]
    found = sum(parts) if parts else values.count(values.first(said, words.TOKENS_ALL))
    return found if found is None or found <= MAX_SAFE else None

"""Turns log records of agents' tools into steps: Claude Code's events, and GenAI's details of a model call.

Law: as of `spans.py`. With tracing on, a call has a span too: then the event is attached to it and reports
only what the span does not, so that tokens do not count twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

from observatory.features.otlp import conventions
from observatory.features.otlp import span_values as values
from observatory.features.otlp.records import OtlpLog
from observatory.features.otlp.span_names import names_of
from observatory.features.otlp.spans import INTENT, SpanStep, identity, step_id, tokens_of
from observatory.protocol.identity import NAMESPACE, hyphenated
from observatory.protocol.otel import read_context

DETAILS: Final = "gen_ai.client.inference.operation.details"
_CLAUDE_EVENTS: Final[dict[str, conventions.Kind]] = {
    "user_prompt": "link",
    "assistant_response": "link",
    "api_request": "model",
    "api_error": "model",
    "tool_result": "tool",
    "tool_decision": "link",
}


def steps_of_logs(
    logs: Iterable[OtlpLog], bound: str | None
) -> tuple[list[SpanStep | None], values.IngestTally]:
    tally = values.IngestTally()
    return [_event(one, bound, tally) for one in logs], tally


def _content(log: OtlpLog) -> str:
    attributes = (sorted(log.attributes.items()), log.body)
    return sha256(repr(attributes).encode("utf-8", "surrogatepass")).hexdigest()


def _event(log: OtlpLog, bound: str | None, tally: values.IngestTally) -> SpanStep | None:
    """The step of a Claude Code event, or of GenAI's event with the details of a call; None for others."""
    attributes = log.attributes
    title = log.name or (log.body if isinstance(log.body, str) else "")
    title = title.removeprefix(conventions.CLAUDE_CODE)
    is_claude = (
        str(log.resource.get("service.name", "")).startswith("claude-code") or "prompt.id" in attributes
    )
    if is_claude and title in _CLAUDE_EVENTS:
        kind: conventions.Kind = _CLAUDE_EVENTS[title]
    elif title == DETAILS:
        kind = "link"
    else:
        tally.not_agents += 1
        return None
    tally.steps += 1
    attribute_names, source = names_of(attributes), values.source_of(log.resource)
    tally.unread(attribute_names.unmapped)
    session = values.session(values.first(attributes, conventions.SESSION))
    # Without a sequence number a record is distinguished from others of that moment by its content.
    which = attributes.get("event.sequence") or _content(log)
    identity_text = f"{session or log.trace_id}/{log.span_id}/{title}/{log.at_ns}/{which}"
    trace = (
        hyphenated(log.trace_id)
        if log.trace_id.strip("0")
        else str(uuid.uuid5(NAMESPACE, session or identity_text))
    )
    has_span = bool(log.span_id.strip("0")) and bool(log.trace_id.strip("0"))
    failed = (
        title == "api_error"
        or attributes.get("success") in (False, "false")
        or attributes.get("decision") == "reject"
    )
    action: dict[str, Any] = {"status": "failure" if failed else "success"}
    if (took := values.count(attributes.get("duration_ms"))) is not None:
        action["duration_ms"] = took
    tool = values.name(values.first(attributes, conventions.TOOL))
    if tool and kind == "tool":
        action["tool_call"] = tool
    if (given := values.first(attributes, conventions.TOOL_INPUT)) is not None and kind == "tool":
        action["tool_input"] = values.as_json(given, tally)
    thoughts, outcome = values.answer(attributes, attribute_names.answer)
    if failed:
        outcome = values.plain(values.first(attributes, conventions.FAILURE)) or outcome
    if outcome:
        action["tool_output_summary"] = values.cut(outcome, tally)
    question = values.shortened(values.question(values.first(attributes, conventions.QUESTION)), INTENT)
    intent = f"{title}: {question}" if question else f"{title} {tool}" if tool else title
    body: dict[str, Any] = {
        "meta": {
            "trace_id": trace,
            "timestamp": values.when(log.at_ns),
            "parent_step_id": step_id(log.trace_id, log.span_id) if has_span else None,
            "cluster_id": source.cluster_id,
            "step_id": str(uuid.uuid5(NAMESPACE, identity_text)),
            "session_id": session or trace,
        },
        "identity": identity(
            bound, values.first(attributes, conventions.AGENT), source, attributes, attribute_names
        ),
        "cognition": {"intent": intent[:INTENT]},
        "action": action,
    }
    if thoughts:
        body["cognition"]["reasoning_chain"] = [values.cut(one, tally) for one in thoughts[:50]]
    # With tracing on, the call's own span reports its tokens; only the event reports the cost.
    spent = {
        "tokens_consumed": None if has_span else tokens_of(attributes, attribute_names),
        "cost": values.cost(values.first(attributes, conventions.COST)),
    }
    if kind == "model" and not has_span and spent["tokens_consumed"] is None and not failed:
        tally.without_tokens += 1
    if kind == "model" and spent["cost"] is None and not failed:
        tally.without_cost += 1
    if delta := {key: value for key, value in spent.items() if value is not None}:
        body["state_delta"] = delta
    return SpanStep(
        values.encode(body), read_context(f"00-{log.trace_id}-{log.span_id}-01") if has_span else None
    )

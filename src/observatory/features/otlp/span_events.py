"""Events that agents' tools write as log records: Claude Code's, and GenAI's details of a model's call.

Law: as of `spans.py`. With tracing on, a call has a span too: then the event hangs on it and tells only what
the span does not, lest tokens count twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

from observatory.features.otlp import conventions as words
from observatory.features.otlp import span_values as values
from observatory.features.otlp.records import Log
from observatory.features.otlp.span_names import wording_of
from observatory.features.otlp.spans import INTENT, Step, identity, step_id, tokens_of
from observatory.protocol.identity import NAMESPACE, hyphenated
from observatory.protocol.otel import read_context

DETAILS: Final = "gen_ai.client.inference.operation.details"
_CLAUDE_EVENTS: Final[dict[str, words.Kind]] = {
    "user_prompt": "link",
    "assistant_response": "link",
    "api_request": "model",
    "api_error": "model",
    "tool_result": "tool",
    "tool_decision": "link",
}


def steps_of_logs(logs: Iterable[Log], bound: str | None) -> tuple[list[Step | None], values.Tally]:
    tally = values.Tally()
    return [_event(one, bound, tally) for one in logs], tally


def _content(log: Log) -> str:
    said = (sorted(log.attributes.items()), log.body)
    return sha256(repr(said).encode("utf-8", "surrogatepass")).hexdigest()


def _event(log: Log, bound: str | None, tally: values.Tally) -> Step | None:
    """An event of Claude Code, or GenAI's event with the details of a call. Other records are no steps."""
    said = log.attributes
    title = log.name or (log.body if isinstance(log.body, str) else "")
    title = title.removeprefix(words.CLAUDE_CODE)
    is_claude = str(log.resource.get("service.name", "")).startswith("claude-code") or "prompt.id" in said
    if is_claude and title in _CLAUDE_EVENTS:
        kind: words.Kind = _CLAUDE_EVENTS[title]
    elif title == DETAILS:
        kind = "link"
    else:
        tally.not_agents += 1
        return None
    tally.steps += 1
    wording, source = wording_of(said), values.source_of(log.resource)
    tally.unread(wording.unmapped)
    session = values.session(values.first(said, words.SESSION))
    # Without a number of its own a record is told from its neighbours of that moment by what it says.
    which = said.get("event.sequence") or _content(log)
    named = f"{session or log.trace_id}/{log.span_id}/{title}/{log.at_ns}/{which}"
    trace = (
        hyphenated(log.trace_id) if log.trace_id.strip("0") else str(uuid.uuid5(NAMESPACE, session or named))
    )
    has_span = bool(log.span_id.strip("0")) and bool(log.trace_id.strip("0"))
    failed = (
        title == "api_error" or said.get("success") in (False, "false") or said.get("decision") == "reject"
    )
    action: dict[str, Any] = {"status": "failure" if failed else "success"}
    if (took := values.count(said.get("duration_ms"))) is not None:
        action["duration_ms"] = took
    tool = values.name(values.first(said, words.TOOL))
    if tool and kind == "tool":
        action["tool_call"] = tool
    if (given := values.first(said, words.TOOL_INPUT)) is not None and kind == "tool":
        action["tool_input"] = values.as_json(given, tally)
    thoughts, outcome = values.answer(said, wording.answer)
    if failed:
        outcome = values.plain(values.first(said, words.FAILURE)) or outcome
    if outcome:
        action["tool_output_summary"] = values.cut(outcome, tally)
    asked = values.in_short(values.question(values.first(said, words.QUESTION)), INTENT)
    intent = f"{title}: {asked}" if asked else f"{title} {tool}" if tool else title
    body: dict[str, Any] = {
        "meta": {
            "trace_id": trace,
            "timestamp": values.when(log.at_ns),
            "parent_step_id": step_id(log.trace_id, log.span_id) if has_span else None,
            "cluster_id": source.cluster_id,
            "step_id": str(uuid.uuid5(NAMESPACE, named)),
            "session_id": session or trace,
        },
        "identity": identity(bound, values.first(said, words.AGENT), source, said, wording),
        "cognition": {"intent": intent[:INTENT]},
        "action": action,
    }
    if thoughts:
        body["cognition"]["reasoning_chain"] = [values.cut(one, tally) for one in thoughts[:50]]
    # With tracing on, the call's own span tells its tokens; only the event tells what they cost.
    spent = {
        "tokens_consumed": None if has_span else tokens_of(said, wording),
        "cost": values.cost(values.first(said, words.COST)),
    }
    if kind == "model" and not has_span and spent["tokens_consumed"] is None and not failed:
        tally.without_tokens += 1
    if kind == "model" and spent["cost"] is None and not failed:
        tally.without_cost += 1
    if delta := {key: value for key, value in spent.items() if value is not None}:
        body["state_delta"] = delta
    return Step(
        values.encode(body), read_context(f"00-{log.trace_id}-{log.span_id}-01") if has_span else None
    )

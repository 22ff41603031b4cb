"""Sample messages for every test: the brief's DecisionLog and the seed's envelope with its payloads.

Each call returns a fresh dict with new ids and real times in place of the seed's placeholders.
Overrides are merged section by section: `decision_log(meta={"session_id": "s"})` keeps the other fields;
a section given as None becomes null.
"""

import copy
import uuid
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

_COGNITION: Json = {
    "intent": "Verify quarterly revenue for NVDA",
    "reasoning_chain": [
        "Initial search returned conflicting dates for fiscal year end.",
        "Cross-referencing SEC EDGAR filings to resolve conflict.",
        "Prioritizing primary source over news aggregator.",
    ],
    "confidence_score": 0.94,
    "strategy_used": "ReAct",
    "entropy_score": 0.05,
}


def just_now() -> str:
    """A time that is right; the samples' own lies far back and has a warning in the answer."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def decision_log(**overrides: Any) -> Json:
    """The brief's sample, section 4.2."""
    log: Json = {
        "meta": {
            "trace_id": str(uuid.uuid4()),
            "parent_step_id": str(uuid.uuid4()),
            "timestamp": "2026-02-16T14:32:00.123456Z",
            "cluster_id": "aws-eu-central-1-mesh-04",
        },
        "identity": {
            "agent_id": "researcher-alpha-9",
            "agent_type": "web_researcher",
            "capability_version": "v2.1.0-stable",
        },
        "cognition": copy.deepcopy(_COGNITION),
        "action": {
            "tool_call": "serp_search",
            "tool_input": '{"query": "NVDA 10-K revenue 2023"}',
            "tool_output_summary": "Retrieved 10-K; Revenue confirmed at $26.97B",
            "status": "success",
        },
        "state_delta": {
            "added_to_memory": ["NVDA Fiscal Year ends Jan 28"],
            "tokens_consumed": 1250,
            "cumulative_session_cost": 0.084,
        },
        "control": {"hitl_required": False, "interrupt_signal": None, "is_terminal": False},
    }
    return _merge(log, overrides)


def shown(sent: Json, score: float = 1.0) -> Json:
    """A message as readers see it: the computed score in its place, the agent's own beside it (S186)."""
    cognition = sent.get("cognition")
    if not cognition:
        return sent
    reported = cognition.get("entropy_score")
    return sent | {"cognition": cognition | {"entropy_score": score, "reported_entropy_score": reported}}


def full_decision_log(**overrides: Any) -> Json:
    """The sample with every optional field in use."""
    log = decision_log(
        meta={
            "step_id": str(uuid.uuid4()),
            "session_id": str(uuid.uuid4()),
            "parent_step_ids": [str(uuid.uuid4()), "ses/step-1"],
        },
        identity={"model": "a-model", "provider": "a-provider", "recipient": "type:writer"},
        cognition={
            "alternatives": [
                {"option": "Ask a news aggregator", "why_not": "secondary source"},
                {"option": "Guess", "why_not": None},
            ],
            "citations": [
                "https://www.sec.gov/edgar",
                {"ref_type": "filing", "uri": "https://www.sec.gov/10-K", "label": "10-K"},
                {"uri": "https://example.org"},
            ],
        },
        action={"duration_ms": 812},
        state_delta={"read_from_memory": ["NVDA reports in USD"], "cost": 0.002},
    )
    return _merge(log, overrides)


def payload(message_type: str) -> Json:
    """The seed's sample payload of a type, or one by ruling 8 where the seed shows none."""
    made = _PAYLOADS[message_type]
    return {name: _fresh(value) for name, value in copy.deepcopy(made).items()}


def envelope(kind: str = "", /, **overrides: Any) -> Json:
    """The seed's sample envelope around a payload; `payload={…}` is merged into the sample's.

    `envelope("heartbeat")` and `envelope(message_type="heartbeat")` are the same.
    """
    message_type = kind or overrides.get("message_type", "text")
    sent: Json = {
        "envelope_version": "1.0.0",
        "message_id": f"msg_{uuid.uuid4()}",
        "trace_id": uuid.uuid4().hex,
        "span_id": uuid.uuid4().hex[:16],
        "parent_span_id": None,
        "timestamp": "2026-02-16T14:32:00Z",
        "sender": {
            "entity_id": f"agt_{uuid.uuid4()}",
            "entity_type": "agent",
            "hub_address": "cortina.agentvault.hub",
        },
        "recipient": {"entity_id": f"usr_{uuid.uuid4()}", "entity_type": "user"},
        "message_type": message_type,
        "priority": "high",
        "payload": payload(message_type),
        "metadata": {},
    }
    return _merge(sent, overrides)


def _merge(base: Json, overrides: Json) -> Json:
    for name, value in overrides.items():
        if isinstance(value, dict) and isinstance(base.get(name), dict):
            base[name] = {**base[name], **value}
        else:
            base[name] = value
    return base


def _fresh(value: Any) -> Any:
    """Ids ending in `_uuid` become new ones, at the first two levels."""
    if isinstance(value, str) and value.endswith("_uuid"):
        return value.removesuffix("uuid") + str(uuid.uuid4())
    if isinstance(value, dict):
        return {name: _fresh(item) for name, item in value.items()}
    return value


_PAYLOADS: dict[str, Json] = {
    "decision_request": {
        "decision_id": "dec_uuid",
        "title": "Deploy v2.3.1 to production?",
        "description": "All tests passing. 3 files changed.",
        "options": [
            {"option_id": "approve", "label": "Approve Deploy", "risk_level": "medium"},
            {"option_id": "deny", "label": "Deny", "risk_level": "low"},
            {"option_id": "defer", "label": "Defer 24h", "is_default": True, "risk_level": "low"},
        ],
        "context_refs": [
            {"ref_type": "pull_request", "uri": "https://github.com/org/repo/pull/142", "label": "PR #142"}
        ],
        "deadline": "2026-02-16T18:00:00Z",
        "auto_action": {"option_id": "defer", "trigger": "deadline_expired"},
    },
    "decision_response": {
        "decision_id": "dec_uuid",
        "selected_option_id": "approve",
        "respondent_note": "Looks good, ship it.",
        "responded_at": "2026-02-16T14:32:00Z",
        "response_method": "interactive",
    },
    "status_alert": {
        "alert_id": "alt_uuid",
        "severity": "info",
        "category": "workflow",
        "title": "Build pipeline completed",
        "summary": "All 847 tests passed in 3m 42s. Coverage at 91.2%.",
        "detail": {
            "format": "markdown",
            "content": "## Test Results\n- Unit: 612 passed\n- Integration: 235 passed",
        },
        "actionable": False,
    },
    "heartbeat": {
        "agent_status": "working",
        "current_task": {
            "task_id": "tsk_uuid",
            "description": "Running integration test suite",
            "progress_pct": 67,
            "estimated_completion": "2026-02-16T14:45:00Z",
        },
        "resource_usage": {"tokens_consumed_24h": 14500, "api_calls_24h": 230},
    },
    "action_confirmation": {
        "action_id": "act_uuid",
        "action_type": "deployment",
        "title": "Production deployment completed",
        "status": "success",
        "summary": "v2.3.1 deployed to 3/3 nodes.",
        "detail": {
            "started_at": "2026-02-16T14:33:00Z",
            "completed_at": "2026-02-16T14:35:42Z",
            "duration_ms": 162000,
        },
        "triggered_by": {"decision_id": "dec_uuid"},
        "rollback_available": True,
        "before_state": {"version": "2.3.0"},
        "after_state": {"version": "2.3.1"},
    },
    "artifact_share": {
        "artifact_id": "art_uuid",
        "artifact_type": "code",
        "title": "fix.py",
        "media_type": "text/x-python",
        "size_bytes": 12,
        "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "content": "print('hi')\n",
        "language": "python",
        "related_refs": [{"ref_type": "commit", "uri": "https://github.com/org/repo/commit/1", "label": "1"}],
    },
    "text": {"format": "markdown", "content": "Hello **owner**", "reply_to": "msg_uuid"},
    "system_event": {
        "event_id": "evt_uuid",
        "event_type": "agent_connected",
        "entity_id": "agt_uuid",
        "reason": "first connection",
        "detail": {"transport": "websocket"},
    },
}

MESSAGE_TYPES = tuple(_PAYLOADS)
SEED_SAMPLES = ("decision_request", "decision_response", "status_alert", "heartbeat", "action_confirmation")

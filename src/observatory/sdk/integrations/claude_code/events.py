"""Converts Claude Code hook events to steps and verdicts to hook answers. Pure; the Agent SDK adapter uses it
too.

Rule: an unknown hook or member passes and is counted. Without a person's verdict the answer is empty, so that
Claude Code's own permissions apply: `allow` is returned only for what a person approved.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from observatory.sdk.approval import Approval
from observatory.sdk.integrations.wording import (
    bounded_input,
    changed_abridged,
    changed_shape,
    changed_tool,
    clip,
    is_abridged,
    tool_name,
)

Json = dict[str, Any]
AGENT_TYPE = "claude_code"
INTENT_CHARS = 300

# The members of each hook besides the common ones. Members of newer versions are counted, not recorded.
COMMON = frozenset(
    {"session_id", "transcript_path", "cwd", "permission_mode", "prompt_id", "effort", "hook_event_name"}
    | {"agent_id", "agent_type", "session_title"}
)
_TOOL = frozenset({"tool_name", "tool_input", "tool_use_id"})
_LISTS = frozenset({"background_tasks", "session_crons"})
KNOWN: Mapping[str, frozenset[str]] = {
    "SessionStart": frozenset({"source", "model"}),
    "SessionEnd": frozenset({"reason"}),
    "UserPromptSubmit": frozenset({"prompt"}),
    "PreToolUse": _TOOL,
    "PostToolUse": _TOOL | {"tool_response", "duration_ms"},
    "PostToolUseFailure": _TOOL | {"error", "is_interrupt", "duration_ms"},
    "PostToolBatch": frozenset({"tool_calls"}),
    "PermissionRequest": _TOOL | {"permission_suggestions"},
    "PermissionDenied": _TOOL | {"reason"},
    "Notification": frozenset({"message", "title", "notification_type"}),
    "SubagentStart": frozenset(),
    "SubagentStop": _LISTS | {"stop_hook_active", "agent_transcript_path", "last_assistant_message"},
    "Stop": _LISTS | {"stop_hook_active", "last_assistant_message"},
    "StopFailure": frozenset({"error", "error_details", "last_assistant_message"}),
    "PreCompact": frozenset({"trigger", "custom_instructions"}),
    "PostCompact": frozenset({"trigger", "compact_summary"}),
}
# Hooks whose answer can add text to the model's context.
ACCEPTS_CONTEXT = frozenset(
    {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"}
    | {"SubagentStart", "Stop"}
)


class HookStep(NamedTuple):
    """A step to be recorded."""

    intent: str
    fields: Json


def unknown_members(event: Json) -> list[str]:
    """The hook or its members that this version does not know."""
    name = str(event.get("hook_event_name"))
    if name not in KNOWN:
        return [f"hook {name[:64]}"]
    return [f"{name}.{member[:64]}" for member in sorted(event.keys() - COMMON - KNOWN[name])]


def intent_of(event: Json) -> str:
    """The purpose of the tool call: the model's description where the tool has one."""
    tool, given = tool_of(event), event.get("tool_input")
    description = given.get("description") if isinstance(given, dict) else None
    return (
        clip(description, INTENT_CHARS)
        if isinstance(description, str) and description.strip()
        else f"Call {tool}"
    )


def tool_of(event: Json) -> str:
    return tool_name(event.get("tool_name") or "unknown tool")


def request_of(event: Json) -> HookStep:
    """The step that asks before the tool runs; with the full input, so that a person can edit it."""
    tool_input = bounded_input(event.get("tool_input"))
    return HookStep(
        intent_of(event), {"tool_call": tool_of(event), "tool_input": tool_input, "status": "pending"}
    )


def refused_of(event: Json, why: str) -> HookStep:
    """The step of a request the hook refused itself."""
    return HookStep(
        f"Was not allowed to call {tool_of(event)}", {"status": "skipped", "tool_output_summary": why}
    )


def step_of_event(event: Json) -> HookStep | None:
    """The step of any other hook; None for a hook that records no step."""
    match event.get("hook_event_name"):
        case "SessionStart":
            return HookStep(f"Session begins ({_word(event, 'source')})", {})
        case "SessionEnd":
            return HookStep(f"Session ends ({_word(event, 'reason')})", {"terminal": True})
        case "UserPromptSubmit":
            return HookStep("Prompt: " + clip(_word(event, "prompt")), {})
        case "PostToolUse":
            return _outcome(event, "Called", "success", event.get("tool_response"))
        case "PostToolUseFailure":
            return _outcome(event, "Failed to call", "failure", event.get("error"))
        case "PermissionDenied":
            return _outcome(event, "Was not allowed to call", "failure", event.get("reason"))
        case "PermissionRequest":
            return HookStep(f"Asks its user to allow {tool_of(event)}", {})
        case "Notification":
            return HookStep("Notification: " + clip(_word(event, "message"), INTENT_CHARS), {})
        case "SubagentStart":
            return HookStep(f"Sub-agent begins: {clip(_word(event, 'agent_type'), 100)}", {})
        case "SubagentStop":
            answer = summary(event.get("last_assistant_message"))
            return HookStep(
                f"Sub-agent ends: {clip(_word(event, 'agent_type'), 100)}", {"tool_output_summary": answer}
            )
        case "Stop":
            return HookStep("Answer", {"tool_output_summary": summary(event.get("last_assistant_message"))})
        case "StopFailure":
            fault = summary(event.get("error_details") or event.get("error"))
            return HookStep("The turn ended in an error", {"status": "failure", "tool_output_summary": fault})
        case "PreCompact":
            return HookStep(f"Compacts its context ({_word(event, 'trigger')})", {})
        case "PostCompact":
            return HookStep("Compacted its context", {})
    return None


def _outcome(event: Json, word: str, status: str, output: Any) -> HookStep:
    """The result of a tool call. Names the tool only in the text, or a rule about it would hold it again."""
    duration = event.get("duration_ms")
    is_known = isinstance(duration, int) and not isinstance(duration, bool) and duration >= 0
    fields = {
        "status": status,
        "tool_output_summary": summary(output),
        "duration_ms": duration if is_known else None,
    }
    return HookStep(f"{word} {tool_of(event)}", fields)


def summary(value: Any) -> str | None:
    """A tool's output, within the protocol's limits."""
    if isinstance(value, dict) and isinstance(value.get("stdout"), str):  # Bash: what was printed
        value = "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
    return None if value is None or value == "" else clip(value)


def _word(event: Json, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else "" if value is None else str(value)


# Answers.


def context(name: str, text: str) -> Json:
    """Adds text to the model's next request."""
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def allowed(event: Json, reason: str, tool_input: Any) -> Json:
    """A person approved it; `tool_input` is the edited input, None if unchanged."""
    if event.get("hook_event_name") == "PermissionRequest":
        decision: Json = {"behavior": "allow"}
        if tool_input is not None:
            decision["updatedInput"] = tool_input
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    output: Json = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": reason,
    }
    if tool_input is not None:
        output["updatedInput"] = tool_input
    return {"hookSpecificOutput": output}


def needs_approval(event: Json, ask: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool_of(event), pattern) for pattern in ask)


def granted(event: Json, approval: Approval) -> Json:
    """What a person approved is what runs; if it cannot run as approved, it does not run."""
    tool, given = tool_of(event), approval.tool_input
    by = f"{approval.by or 'a person'}" + (f": {approval.note}" if approval.note else "")
    if not approval.gated and not approval.edited:
        return {}  # ending a pause does not approve a tool
    if not approval.edited:
        return allowed(event, f"Approved by {by}", None)
    if approval.tool_call != tool:
        return denied(event, changed_tool(tool, approval))
    if is_abridged(given):
        return denied(event, changed_abridged(tool))
    if not isinstance(given, dict):
        return denied(event, changed_shape(tool))
    return allowed(event, f"Approved with changes by {by}", given)


def denied(event: Json, reason: str) -> Json:
    if event.get("hook_event_name") == "PermissionRequest":
        decision = {"behavior": "deny", "message": reason}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return {"hookSpecificOutput": output}


def blocked(reason: str) -> Json:
    """Block a prompt: it does not reach the model."""
    return {"decision": "block", "reason": reason}


def ended(event: Json, reason: str) -> Json:
    """A person cancelled the work: nothing more happens in this turn."""
    answer: Json = {"continue": False, "stopReason": reason}
    if event.get("hook_event_name") in ("PreToolUse", "PermissionRequest"):
        answer |= denied(event, reason)
    elif event.get("hook_event_name") == "UserPromptSubmit":
        answer |= blocked(reason)
    return answer


def with_context(answer: Json, event: Json, text: str) -> Json:
    """The answer, plus text for the model's context."""
    specific = answer.get("hookSpecificOutput") or {"hookEventName": event["hook_event_name"]}
    return answer | {"hookSpecificOutput": specific | {"additionalContext": text}}

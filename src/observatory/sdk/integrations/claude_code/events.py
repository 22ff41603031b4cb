"""What a hook of Claude Code says, as a step, and what it is answered. Pure; the Agent SDK's hooks use it.

Law: a hook or a member we do not know passes and is counted. Without a person's word nothing is answered, so
that Claude Code's own permissions stay as they are: `allow` is said only for what a person approved.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from observatory.sdk.approval import Approval
from observatory.sdk.integrations.wording import (
    changed_abridged,
    changed_shape,
    changed_tool,
    clip,
    is_abridged,
    told_input,
    tool_name,
)

Json = dict[str, Any]
AGENT_TYPE = "claude_code"
INTENT_CHARS = 300

# What each hook tells besides the common members. A member of a newer version is counted, not lost: hooks are
# telemetry, and the transcript has it.
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
# Where the model can be told something.
HEARS = frozenset(
    {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"}
    | {"SubagentStart", "Stop"}
)


class Told(NamedTuple):
    """A step to be said."""

    intent: str
    fields: Json


def unknown_of(event: Json) -> list[str]:
    """What of this hook we have no place for."""
    name = str(event.get("hook_event_name"))
    if name not in KNOWN:
        return [f"hook {name[:64]}"]
    return [f"{name}.{member[:64]}" for member in sorted(event.keys() - COMMON - KNOWN[name])]


def intent_of(event: Json) -> str:
    """What the tool is called for: in the model's own words where the tool asks for them."""
    tool, given = tool_of(event), event.get("tool_input")
    said = given.get("description") if isinstance(given, dict) else None
    return clip(said, INTENT_CHARS) if isinstance(said, str) and said.strip() else f"Call {tool}"


def tool_of(event: Json) -> str:
    return tool_name(event.get("tool_name") or "unknown tool")


def request_of(event: Json) -> Told:
    """The step that asks before the tool runs; the input whole, so that a person can edit it."""
    asked = told_input(event.get("tool_input"))
    return Told(intent_of(event), {"tool_call": tool_of(event), "tool_input": asked, "status": "pending"})


def refused_of(event: Json, why: str) -> Told:
    """A request we said no to ourselves."""
    return Told(
        f"Was not allowed to call {tool_of(event)}", {"status": "skipped", "tool_output_summary": why}
    )


def told_of(event: Json) -> Told | None:
    """The step of any other hook; None for one that is no step."""
    match event.get("hook_event_name"):
        case "SessionStart":
            return Told(f"Session begins ({_word(event, 'source')})", {})
        case "SessionEnd":
            return Told(f"Session ends ({_word(event, 'reason')})", {"terminal": True})
        case "UserPromptSubmit":
            return Told("Prompt: " + clip(_word(event, "prompt")), {})
        case "PostToolUse":
            return _outcome(event, "Called", "success", event.get("tool_response"))
        case "PostToolUseFailure":
            return _outcome(event, "Failed to call", "failure", event.get("error"))
        case "PermissionDenied":
            return _outcome(event, "Was not allowed to call", "failure", event.get("reason"))
        case "PermissionRequest":
            return Told(f"Asks its user to allow {tool_of(event)}", {})
        case "Notification":
            return Told("Notification: " + clip(_word(event, "message"), INTENT_CHARS), {})
        case "SubagentStart":
            return Told(f"Sub-agent begins: {clip(_word(event, 'agent_type'), 100)}", {})
        case "SubagentStop":
            said = summary(event.get("last_assistant_message"))
            return Told(
                f"Sub-agent ends: {clip(_word(event, 'agent_type'), 100)}", {"tool_output_summary": said}
            )
        case "Stop":
            return Told("Answer", {"tool_output_summary": summary(event.get("last_assistant_message"))})
        case "StopFailure":
            fault = summary(event.get("error_details") or event.get("error"))
            return Told("The turn ended in an error", {"status": "failure", "tool_output_summary": fault})
        case "PreCompact":
            return Told(f"Compacts its context ({_word(event, 'trigger')})", {})
        case "PostCompact":
            return Told("Compacted its context", {})
    return None


def _outcome(event: Json, word: str, status: str, output: Any) -> Told:
    """What came of a tool call. It names the tool in words only, or a rule about it would hold it again."""
    took = event.get("duration_ms")
    is_told = isinstance(took, int) and not isinstance(took, bool) and took >= 0
    fields = {
        "status": status,
        "tool_output_summary": summary(output),
        "duration_ms": took if is_told else None,
    }
    return Told(f"{word} {tool_of(event)}", fields)


def summary(value: Any) -> str | None:
    """What a tool gave back, within the protocol's limits."""
    if isinstance(value, dict) and isinstance(value.get("stdout"), str):  # Bash: what was printed
        value = "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
    return None if value is None or value == "" else clip(value)


def _word(event: Json, name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else "" if value is None else str(value)


# Answers.


def context(name: str, text: str) -> Json:
    """Told to the model with its next request."""
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def allowed(event: Json, reason: str, tool_input: Any) -> Json:
    """A person approved it; `tool_input` is what may run, None if it is as asked."""
    if event.get("hook_event_name") == "PermissionRequest":
        decision: Json = {"behavior": "allow"}
        if tool_input is not None:
            decision["updatedInput"] = tool_input
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    told: Json = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "permissionDecisionReason": reason,
    }
    if tool_input is not None:
        told["updatedInput"] = tool_input
    return {"hookSpecificOutput": told}


def needs_approval(event: Json, ask: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool_of(event), pattern) for pattern in ask)


def granted(event: Json, approval: Approval) -> Json:
    """What a person approved is what runs; what cannot run as it was approved does not run at all."""
    tool, given = tool_of(event), approval.tool_input
    by = f"{approval.by or 'a person'}" + (f": {approval.note}" if approval.note else "")
    if not approval.gated and not approval.edited:
        return {}  # who ended a pause allowed no tool
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
    told = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    return {"hookSpecificOutput": told}


def blocked(reason: str) -> Json:
    """A prompt that is not put to the model."""
    return {"decision": "block", "reason": reason}


def ended(event: Json, reason: str) -> Json:
    """A person cancelled the work: nothing more happens in this turn."""
    told: Json = {"continue": False, "stopReason": reason}
    if event.get("hook_event_name") in ("PreToolUse", "PermissionRequest"):
        told |= denied(event, reason)
    elif event.get("hook_event_name") == "UserPromptSubmit":
        told |= blocked(reason)
    return told


def with_context(answer: Json, event: Json, text: str) -> Json:
    """The answer, and what people said besides."""
    specific = answer.get("hookSpecificOutput") or {"hookEventName": event["hook_event_name"]}
    return answer | {"hookSpecificOutput": specific | {"additionalContext": text}}

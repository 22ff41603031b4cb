"""What a hook of Claude Code says, as a step; and what it is answered. Pure, and shared with the Agent SDK's hooks.

Law: a hook or a member we do not know passes and is counted; what is long is cut and says so. Without a person's
word nothing is answered, so that Claude Code's own permissions stay as they are: `allow` is said only for what a
person approved at a gate.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]
AGENT_TYPE = "claude_code"
TEXT_CHARS = 2_000
INTENT_CHARS = 300
INPUT_BYTES = 512 << 10
CUT = "observatory_cut"

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
    return cut(said, INTENT_CHARS) if isinstance(said, str) and said.strip() else f"Call {tool}"


def tool_of(event: Json) -> str:
    return str(event.get("tool_name") or "unknown tool")[:256]


def input_of(event: Json) -> Any:
    """Whole, so that a person can edit it; beyond what a message holds, its beginning and its hash."""
    given = event.get("tool_input")
    text = msgspec.json.encode(given)
    if len(text) <= INPUT_BYTES:
        return given
    digest = hashlib.sha256(text).hexdigest()
    return {CUT: f"{len(text)} bytes, sha256 {digest}", "beginning": cut(text.decode(), TEXT_CHARS)}


def request_of(event: Json) -> Told:
    """The step that asks before the tool runs."""
    return Told(
        intent_of(event), {"tool_call": tool_of(event), "tool_input": input_of(event), "status": "pending"}
    )


def told_of(event: Json) -> Told | None:
    """The step of any other hook; None for one that is no step."""
    match event.get("hook_event_name"):
        case "SessionStart":
            return Told(f"Session begins ({_word(event, 'source')})", {})
        case "SessionEnd":
            return Told(f"Session ends ({_word(event, 'reason')})", {"terminal": True})
        case "UserPromptSubmit":
            return Told("Prompt: " + cut(_word(event, "prompt"), TEXT_CHARS), {})
        case "PostToolUse":
            return Told(intent_of(event), _outcome(event, "success", summary(event.get("tool_response"))))
        case "PostToolUseFailure":
            return Told(intent_of(event), _outcome(event, "failure", summary(event.get("error"))))
        case "PermissionDenied":
            return Told(intent_of(event), _outcome(event, "failure", summary(event.get("reason"))))
        case "PermissionRequest":
            return Told(f"Asks its user to allow {tool_of(event)}", {"status": "pending"})
        case "Notification":
            return Told("Notification: " + cut(_word(event, "message"), INTENT_CHARS), {})
        case "SubagentStart":
            return Told(f"Sub-agent begins: {_word(event, 'agent_type')}", {})
        case "SubagentStop":
            said = summary(event.get("last_assistant_message"))
            return Told(f"Sub-agent ends: {_word(event, 'agent_type')}", {"tool_output_summary": said})
        case "Stop":
            return Told("Answer", {"tool_output_summary": summary(event.get("last_assistant_message"))})
        case "StopFailure":
            fault = summary(event.get("error_details") or event.get("error"))
            return Told("The turn ended in an error", {"status": "failure", "tool_output_summary": fault})
        case "PreCompact":
            return Told(f"Compacts its context ({_word(event, 'trigger')})", {"status": "pending"})
        case "PostCompact":
            return Told("Compacted its context", {})
    return None


def _outcome(event: Json, status: str, said: str | None) -> Json:
    took = event.get("duration_ms")
    return {
        "tool_call": tool_of(event),
        "tool_input": input_of(event),
        "status": status,
        "tool_output_summary": said,
        "duration_ms": took if isinstance(took, int) and not isinstance(took, bool) and took >= 0 else None,
    }


def summary(value: Any) -> str | None:
    """What a tool gave back, in at most so many characters."""
    if isinstance(value, dict) and isinstance(value.get("stdout"), str):  # Bash: what was printed
        value = "\n".join(str(value[name]) for name in ("stdout", "stderr") if value.get(name))
    if value is None or value == "":
        return None
    return cut(value if isinstance(value, str) else msgspec.json.encode(value).decode(), TEXT_CHARS)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… [+{len(text) - most} characters]"


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


def ended(event: Json, reason: str) -> Json:
    """A person cancelled the work: nothing more happens in this turn."""
    told: Json = {"continue": False, "stopReason": reason}
    if event.get("hook_event_name") in ("PreToolUse", "PermissionRequest"):
        told |= denied(event, reason)
    elif event.get("hook_event_name") == "UserPromptSubmit":
        told |= {"decision": "block", "reason": reason}
    return told


def with_context(answer: Json, event: Json, text: str) -> Json:
    """The answer, and what people said besides."""
    specific = answer.get("hookSpecificOutput") or {"hookEventName": event["hook_event_name"]}
    return answer | {"hookSpecificOutput": specific | {"additionalContext": text}}

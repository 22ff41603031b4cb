"""Installs, finds and removes Observatory hooks in a Claude Code `settings.json`. Pure, on the decoded file.

Rule: only Observatory hooks are changed: those whose command is `observatory hook`, with any path. Installing
twice has the effect of once; removing leaves everything else unchanged. A file whose hooks have an unknown
form is refused, never repaired.
"""

import re
import shlex
from typing import Any

from observatory.errors import ObservatoryError
from observatory.sdk.integrations.claude_code.hook import HookOptions

Json = dict[str, Any]
MORE_S = 10  # Claude Code kills slower hooks; the hook must have answered before
ASK = ("PreToolUse", "PermissionRequest")
GATES = ("UserPromptSubmit", *ASK)
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "Stop",
    "SessionEnd",
)
_HOOK_COMMAND = re.compile(
    r"(^|[\s/\\'\"])observatory(\.exe|\.cli)?['\"]?\s+hook(\s|$)|-m\s+observatory\.sdk\.integrations\.claude_code(\s|$)"
)


class UnknownSettingsForm(ObservatoryError):
    """The file is not what Claude Code's settings look like; it was left untouched."""


def installed(settings: Json, command: str, options: HookOptions) -> Json:
    """With the Observatory hooks, replacing earlier ones; the same value if nothing changes."""
    bare = removed(settings)
    hooks = dict(bare.get("hooks") or {})
    for event in EVENTS:
        hooks[event] = [*hooks.get(event, []), _group(event, command, options)]
    return {**bare, "hooks": hooks}


def removed(settings: Json) -> Json:
    """Without Observatory hooks; groups and events that become empty are removed."""
    hooks, kept = _events(settings), dict[str, Any]()
    for event, groups in hooks.items():
        left = [one for group in _groups(event, groups) if (one := _without_hooks(event, group)) is not None]
        if left or not groups:
            kept[event] = left
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    if not kept and hooks:
        return rest
    return settings if kept == hooks else {**settings, "hooks": kept}


def ours(settings: Json) -> dict[str, str]:
    """The command of each event that has an Observatory hook."""
    found: dict[str, str] = {}
    for event, groups in _events(settings).items():
        for group in _groups(event, groups):
            for hook in filter(_is_observatory_hook, _hooks(event, group)):
                found[event] = hook["command"]
    return found


def _group(event: str, command: str, options: HookOptions) -> Json:
    is_gate = event in GATES
    args = [f"--agent={shlex.quote(options.agent)}"] if options.agent else []
    if options.ask and event in ASK:
        args.append(f"--ask={shlex.quote(','.join(options.ask))}")
    if options.permissions and event == "PermissionRequest":
        args.append("--permissions")
    if options.denies_away and event == "PreToolUse":
        args.append("--on-away=deny")
    if is_gate:
        args.append(f"--wait={options.wait_s:g}")
    args.append(f"--box={options.box_s:g}")
    limit = (options.wait_s if is_gate else options.box_s) + MORE_S
    hook = {"type": "command", "command": " ".join([command, *args]), "timeout": int(limit)}
    return {"hooks": [hook]}


def _events(settings: Json) -> Json:
    if not isinstance(hooks := settings.get("hooks", {}), dict):
        raise UnknownSettingsForm('"hooks" is not an object')
    return hooks


def _groups(event: str, groups: Any) -> list[Json]:
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise UnknownSettingsForm(f'"hooks.{event}" is not a list of objects')
    return groups


def _hooks(event: str, group: Json) -> list[Json]:
    hooks = group.get("hooks", [])
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
        raise UnknownSettingsForm(f'a group of "hooks.{event}" has no list of hooks')
    return hooks


def _without_hooks(event: str, group: Json) -> Json | None:
    hooks = _hooks(event, group)
    left = [hook for hook in hooks if not _is_observatory_hook(hook)]
    if len(left) == len(hooks):
        return group
    return {**group, "hooks": left} if left else None


def _is_observatory_hook(hook: Json) -> bool:
    command = hook.get("command")
    return isinstance(command, str) and _HOOK_COMMAND.search(command) is not None

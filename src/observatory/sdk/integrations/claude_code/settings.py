"""Our hooks in a `settings.json` of Claude Code: put in, found, taken out. Pure, over the decoded file.

Law: only what is ours is touched. Ours is a hook whose command is `observatory hook`, by whatever path; who
installs twice has it once, and what is taken out leaves nothing of ours and everything else as it was. A file
whose hooks are not of the form we know is refused, never repaired.
"""

import re
import shlex
from typing import Any

from observatory.errors import ObservatoryError
from observatory.sdk.integrations.claude_code.hook import Options

Json = dict[str, Any]
MORE_S = 10  # Claude Code kills a hook that takes longer; ours must have answered before
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
_OURS = re.compile(
    r"(^|[\s/\\'\"])observatory(\.exe|\.cli)?['\"]?\s+hook(\s|$)|-m\s+observatory\.sdk\.integrations\.claude_code(\s|$)"
)


class NotOurForm(ObservatoryError):
    """The file is not what Claude Code's settings look like; it was left untouched."""


def installed(settings: Json, command: str, options: Options) -> Json:
    """With our hooks in place of any of ours that were there before; the same value if nothing changes."""
    bare = removed(settings)
    hooks = dict(bare.get("hooks") or {})
    for event in EVENTS:
        hooks[event] = [*hooks.get(event, []), _group(event, command, options)]
    return {**bare, "hooks": hooks}


def removed(settings: Json) -> Json:
    """Without ours. A group or an event that held nothing else goes with it."""
    hooks, kept = _events(settings), dict[str, Any]()
    for event, groups in hooks.items():
        left = [one for group in _groups(event, groups) if (one := _without_ours(event, group)) is not None]
        if left or not groups:
            kept[event] = left
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    if not kept and hooks:
        return rest
    return settings if kept == hooks else {**settings, "hooks": kept}


def ours(settings: Json) -> dict[str, str]:
    """The command of each event that has a hook of ours."""
    found: dict[str, str] = {}
    for event, groups in _events(settings).items():
        for group in _groups(event, groups):
            for hook in filter(_is_ours, _hooks(event, group)):
                found[event] = hook["command"]
    return found


def _group(event: str, command: str, options: Options) -> Json:
    is_gate = event in GATES
    words = [f"--agent={shlex.quote(options.agent)}"] if options.agent else []
    if options.ask and event in ASK:
        words.append(f"--ask={shlex.quote(','.join(options.ask))}")
    if options.permissions and event == "PermissionRequest":
        words.append("--permissions")
    if options.denies_away and event == "PreToolUse":
        words.append("--on-away=deny")
    if is_gate:
        words.append(f"--wait={options.wait_s:g}")
    words.append(f"--box={options.box_s:g}")
    limit = (options.wait_s if is_gate else options.box_s) + MORE_S
    hook = {"type": "command", "command": " ".join([command, *words]), "timeout": int(limit)}
    return {"hooks": [hook]}


def _events(settings: Json) -> Json:
    if not isinstance(hooks := settings.get("hooks", {}), dict):
        raise NotOurForm('"hooks" is not an object')
    return hooks


def _groups(event: str, groups: Any) -> list[Json]:
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise NotOurForm(f'"hooks.{event}" is not a list of objects')
    return groups


def _hooks(event: str, group: Json) -> list[Json]:
    hooks = group.get("hooks", [])
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
        raise NotOurForm(f'a group of "hooks.{event}" has no list of hooks')
    return hooks


def _without_ours(event: str, group: Json) -> Json | None:
    hooks = _hooks(event, group)
    left = [hook for hook in hooks if not _is_ours(hook)]
    if len(left) == len(hooks):
        return group
    return {**group, "hooks": left} if left else None


def _is_ours(hook: Json) -> bool:
    command = hook.get("command")
    return isinstance(command, str) and _OURS.search(command) is not None

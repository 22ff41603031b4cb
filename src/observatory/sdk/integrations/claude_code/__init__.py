"""Claude Code hook command: `observatory hook` (or `python -m observatory.sdk.integrations.claude_code`).

One small process per hook event: the hook's JSON on stdin, the answer's on stdout. It imports neither the
gateway nor the SDK's sender. Every call ends within its time limit (`--box`), a gate within its own
(`--wait`).
"""

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.errors import ObservatoryError
from observatory.sdk.credentials import find_credentials
from observatory.sdk.errors import NotConfigured
from observatory.sdk.integrations.claude_code import events
from observatory.sdk.integrations.claude_code.hook import PAUSED, Hook, HookOptions
from observatory.sdk.integrations.claude_code.memory import MAX_KEPT
from observatory.sdk.integrations.claude_code.wire import Away, time_limit

__all__ = ["main"]

GATES = ("UserPromptSubmit", "PreToolUse", "PermissionRequest")
MAX_BYTES = 64 << 20
GRACE_S = 3.0
BLOCK = 2  # the exit code that stops the tool; any other failure lets it run
USAGE = (
    "observatory hook [--agent NAME] [--ask TOOLS] [--permissions] [--on-away allow|deny] [--wait SECONDS] "
    "[--box SECONDS]: "
    "a hook of Claude Code, its JSON on stdin; `observatory claude-code install` sets it up"
)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. 0 with or without an answer; 2 blocks; 1 shows an error to the user and does not
    block."""
    args = sys.argv[1:] if argv is None else argv
    try:
        options = options_of(args)
    except ValueError as exc:
        is_gate = any(one.partition("=")[0] in ("--ask", "--permissions", "--on-away") for one in args)
        return _complain(f"{exc}. {USAGE}", BLOCK if is_gate else 1)
    try:
        event = read()
    except ValueError as exc:
        # The tool is unknown: it could be one that needs approval.
        is_gate = bool(options.ask) or options.denies_away
        return _complain(f"{exc}; nothing was recorded", BLOCK if is_gate else 1)
    return _run(event, options)


def _run(event: events.Json, options: HookOptions) -> int:
    hook: Hook | None = None
    try:
        credentials = find_credentials()
        if credentials.is_nats:
            raise NotConfigured("hooks need a gateway URL with http or https: set OBSERVATORY_URL")
        gate = event.get("hook_event_name") in GATES
        with time_limit((options.wait_s if gate else options.box_s) + GRACE_S):
            hook = Hook(event, options, credentials)
            _finish(hook, hook.judge())
    except ObservatoryError as exc:
        return _failed(event, options, str(exc), hook)
    except Away as why:  # a lock that is not released, a disk that hangs
        return _failed(event, options, f"its own files could not be used in time ({why})", hook)
    except Exception as exc:  # noqa: BLE001 - top level: no failure here may break the agent's work
        return _failed(event, options, f"{type(exc).__name__}: {exc}", hook)
    return 0


def _finish(hook: Hook, answer: events.Json) -> None:
    """Write the answer with injected prompts. A prompt counts as delivered once it is written, and only
    once."""
    if hook.name not in events.ACCEPTS_CONTEXT or "continue" in answer:
        _answer(hook, answer)
        return
    with hook.memory.giving():
        with hook.memory.session() as session:
            prompts = [
                one
                for one in hook.orders.take_prompts(hook.session_id)
                if one.delivery_id not in session.given
            ]
            late = [one for one in hook.late_verdicts if one.delivery_id not in session.given]
            current = hook.orders.instructions
            new = current if current != session.instructed else None
        texts = [f"OrderState instructions for this agent:\n{new}"] if new else []
        texts += [f"{one.by or 'An operator'} says through the Observatory:\n{one.text}" for one in prompts]
        texts += [_late(one.body or {}) for one in late]
        _answer(hook, events.with_context(answer, hook.event, "\n\n".join(texts)) if texts else answer)
        if texts:
            with hook.memory.session() as session:
                ids = [*(one.delivery_id for one in prompts), *(one.delivery_id for one in late)]
                session.given = [*session.given, *ids][-MAX_KEPT:]
                session.instructed = current
    ids = [*hook.orders.take_acks(), *(one.delivery_id for one in hook.late_verdicts)]
    if ids:
        hook.wire.acknowledge(ids, hook.options.box_s)


def _late(body: dict[str, Any]) -> str:
    note = f" ({body['note']})" if body.get("note") else ""
    return (
        f"{body.get('by') or 'A person'} answered a request after it had timed out: "
        f"{body.get('verdict')}{note}. It was not run; ask again if it is still needed."
    )


def _answer(hook: Hook, answer: events.Json) -> None:
    hook.is_answered = True  # two answers would be invalid JSON, which is ignored
    _write(answer)


def _failed(event: events.Json, options: HookOptions, why: str, hook: Hook | None = None) -> int:
    """Telemetry fails open, a gate closed. The user is informed at session start, not at every step."""
    name = event.get("hook_event_name")
    is_shut = hook is not None and hook.is_shut
    is_permission = name == "PermissionRequest" and options.permissions
    if hook is not None and hook.is_answered:
        print(f"observatory hook: {why}; the answer was already written", file=sys.stderr)
    elif is_permission or (name == "PreToolUse" and events.needs_approval(event, options.ask)):
        _write(
            events.denied(
                event, f"It needs a person's approval, and the Observatory cannot be reached: {why}"
            )
        )
    elif options.denies_away and name == "PreToolUse":
        why = f"No tool may run while the Observatory cannot be reached: {why}"
        _write(events.denied(event, why))
    elif is_shut and name == "PreToolUse":
        _write(
            events.denied(
                event, f"It was held or refused in the Observatory, and then its hook failed: {why}"
            )
        )
    elif is_shut and name == "UserPromptSubmit":
        _write(events.blocked(PAUSED))
    elif name == "SessionStart":
        _write({"systemMessage": f"Observatory: this session is not observed: {why}"})
    else:
        print(f"observatory hook: {why}; the agent continues", file=sys.stderr)
    return 0


def read() -> events.Json:
    """The hook's input; raises `ValueError` with a message."""
    raw = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ValueError(f"the hook's input is longer than {MAX_BYTES >> 20} MiB")
    try:
        event = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("the hook's input is not a JSON object") from None
    for name in ("hook_event_name", "session_id"):
        if not isinstance(event.get(name), str) or not 0 < len(event[name]) <= 256:
            raise ValueError(f"the hook's input has no {name}")
    return event


def options_of(argv: Sequence[str]) -> HookOptions:
    given: dict[str, Any] = {}
    rest = iter(argv)
    for arg in rest:
        name, _, value = arg.partition("=")
        if name == "--permissions":
            given["permissions"] = True
            continue
        if name not in ("--agent", "--ask", "--on-away", "--wait", "--box"):
            raise ValueError(f"{arg!r} is not an option of a hook")
        value = value or next(rest, "")
        if not value:
            raise ValueError(f"{name} needs a value")
        match name:
            case "--agent":
                given["agent"] = value
            case "--on-away":
                if value not in ("allow", "deny"):
                    raise ValueError(f"{name} must be allow or deny")
                given["denies_away"] = value == "deny"
            case "--ask":
                given["ask"] = (
                    *given.get("ask", ()),
                    *(one.strip() for one in value.split(",") if one.strip()),
                )
            case _:
                given[f"{name[2:]}_s"] = _seconds(name, value)
    return HookOptions(**given)


def _seconds(name: str, value: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(value)) <= 86_400:
            return seconds
    raise ValueError(f"{name} needs a number of seconds, at most a day; got {value!r}")


def _write(answer: events.Json) -> None:
    if answer:
        sys.stdout.buffer.write(msgspec.json.encode(answer))
        sys.stdout.buffer.flush()


def _complain(text: str, code: int) -> int:
    print(f"observatory hook: {text}", file=sys.stderr)
    return code

"""Claude Code's hooks: `observatory hook` (or `python -m observatory.sdk.integrations.claude_code`).

One small process for each hook: the hook's JSON on stdin, the answer's on stdout. It imports neither the
house nor the SDK's sender, and every call ends within its box but for a gate, which ends within its own.
"""

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from observatory.errors import ObservatoryError
from observatory.sdk.credentials import find_door
from observatory.sdk.errors import NotConfigured
from observatory.sdk.integrations.claude_code import events
from observatory.sdk.integrations.claude_code.hook import PAUSED, Hook, Options
from observatory.sdk.integrations.claude_code.memory import MOST_KEPT
from observatory.sdk.integrations.claude_code.wire import Away, boxed

__all__ = ["main"]

GATES = ("UserPromptSubmit", "PreToolUse", "PermissionRequest")
MOST_BYTES = 64 << 20
GRACE_S = 3.0
BLOCK = 2  # the exit code that stops the tool; any other failure lets it run
USAGE = (
    "observatory hook [--agent NAME] [--ask TOOLS] [--permissions] [--on-away allow|deny] [--wait SECONDS] "
    "[--box SECONDS]: "
    "a hook of Claude Code, its JSON on stdin; `observatory claude-code install` sets it up"
)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. 0 with or without an answer; 2 blocks; 1 tells the user and lets the work go on."""
    words = sys.argv[1:] if argv is None else argv
    try:
        options = options_of(words)
    except ValueError as exc:
        is_gate = any(one.partition("=")[0] in ("--ask", "--permissions", "--on-away") for one in words)
        return _complain(f"{exc}. {USAGE}", BLOCK if is_gate else 1)
    try:
        event = read()
    except ValueError as exc:
        # Which tool it was cannot be known: with a list of tools that need approval it may be one of them.
        is_gate = bool(options.ask) or options.denies_away
        return _complain(f"{exc}; nothing was recorded", BLOCK if is_gate else 1)
    return _run(event, options)


def _run(event: events.Json, options: Options) -> int:
    hook: Hook | None = None
    try:
        door = find_door()
        if door.is_nats:
            raise NotConfigured("a hook reaches the gateway by http or https: set OBSERVATORY_URL to that")
        gate = event.get("hook_event_name") in GATES
        with boxed((options.wait_s if gate else options.box_s) + GRACE_S):
            hook = Hook(event, options, door)
            _finish(hook, hook.judge())
    except ObservatoryError as exc:
        return _failed(event, options, str(exc), hook)
    except Away as why:  # a lock nobody lets go, a disk that hangs
        return _failed(event, options, f"its own files could not be used in time ({why})", hook)
    except Exception as exc:  # noqa: BLE001 - the runner: whatever fails here, the agent's work is not what pays for it
        return _failed(event, options, f"{type(exc).__name__}: {exc}", hook)
    return 0


def _finish(hook: Hook, answer: events.Json) -> None:
    """Say the answer, with what people injected. It counts as given once it is said, and then only once."""
    if hook.name not in events.HEARS or "continue" in answer:
        _answer(hook, answer)
        return
    with hook.memory.giving():
        with hook.memory.session() as session:
            prompts = [
                one
                for one in hook.orders.take_prompts(hook.session_id)
                if one.delivery_id not in session.given
            ]
            late = [one for one in hook.heard_late if one.delivery_id not in session.given]
            standing = hook.orders.instructions
            new = standing if standing != session.instructed else None
        texts = [f"Standing instructions for this agent:\n{new}"] if new else []
        texts += [
            f"{one.by or 'An operator'} says, by way of the Observatory:\n{one.text}" for one in prompts
        ]
        texts += [_late(one.body or {}) for one in late]
        _answer(hook, events.with_context(answer, hook.event, "\n\n".join(texts)) if texts else answer)
        if texts:
            with hook.memory.session() as session:
                ids = [*(one.delivery_id for one in prompts), *(one.delivery_id for one in late)]
                session.given = [*session.given, *ids][-MOST_KEPT:]
                session.instructed = standing
    ids = [*hook.orders.take_acks(), *(one.delivery_id for one in hook.heard_late)]
    if ids:
        hook.wire.acknowledge(ids, hook.options.box_s)


def _late(body: dict[str, Any]) -> str:
    note = f" ({body['note']})" if body.get("note") else ""
    return (
        f"{body.get('by') or 'A person'} answered a request that had not been waited for any longer: "
        f"{body.get('verdict')}{note}. It was not run; ask again if it is still wanted."
    )


def _answer(hook: Hook, answer: events.Json) -> None:
    hook.is_answered = True  # two answers would be none: what is no JSON is not obeyed
    _write(answer)


def _failed(event: events.Json, options: Options, why: str, hook: Hook | None = None) -> int:
    """Telemetry fails open, a gate closed. Its user is told as a session begins, not at every step."""
    name = event.get("hook_event_name")
    is_shut = hook is not None and hook.is_shut
    is_permission = name == "PermissionRequest" and options.permissions
    if hook is not None and hook.is_answered:
        print(f"observatory hook: {why}; it had answered", file=sys.stderr)
    elif is_permission or (name == "PreToolUse" and events.needs_approval(event, options.ask)):
        _write(
            events.denied(event, f"It needs a person's approval, and the Observatory cannot be asked: {why}")
        )
    elif options.denies_away and name == "PreToolUse":
        why = f"No tool may be run while the Observatory cannot be asked: {why}"
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
        print(f"observatory hook: {why}; the work goes on", file=sys.stderr)
    return 0


def read() -> events.Json:
    """The hook's input, or `ValueError` with a sentence."""
    raw = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"the hook's input is longer than {MOST_BYTES >> 20} MiB")
    try:
        event = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("the hook's input is not a JSON object") from None
    for name in ("hook_event_name", "session_id"):
        if not isinstance(event.get(name), str) or not 0 < len(event[name]) <= 256:
            raise ValueError(f"the hook's input has no {name}")
    return event


def options_of(argv: Sequence[str]) -> Options:
    given: dict[str, Any] = {}
    words = iter(argv)
    for word in words:
        name, _, value = word.partition("=")
        if name == "--permissions":
            given["permissions"] = True
            continue
        if name not in ("--agent", "--ask", "--on-away", "--wait", "--box"):
            raise ValueError(f"{word!r} is not an option of a hook")
        value = value or next(words, "")
        if not value:
            raise ValueError(f"{name} needs a value")
        match name:
            case "--agent":
                given["agent"] = value
            case "--on-away":
                if value not in ("allow", "deny"):
                    raise ValueError(f"{name} is allow or deny")
                given["denies_away"] = value == "deny"
            case "--ask":
                given["ask"] = (
                    *given.get("ask", ()),
                    *(one.strip() for one in value.split(",") if one.strip()),
                )
            case _:
                given[f"{name[2:]}_s"] = _seconds(name, value)
    return Options(**given)


def _seconds(name: str, value: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(value)) <= 86_400:
            return seconds
    raise ValueError(f"{name} needs a number of seconds, at most a day; {value!r} is none")


def _write(answer: events.Json) -> None:
    if answer:
        sys.stdout.buffer.write(msgspec.json.encode(answer))
        sys.stdout.buffer.flush()


def _complain(text: str, code: int) -> int:
    print(f"observatory hook: {text}", file=sys.stderr)
    return code

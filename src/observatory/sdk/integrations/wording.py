"""Converts framework values to protocol text: bounded length, without characters a database refuses.

Rule: recording a call never prevents the call from running, whatever it contains. A text that is too long is
cut and says how much is missing; an input that is too large is replaced by its size and SHA-256, so that what
was approved can still be distinguished from anything else.
"""

import hashlib
import re
import uuid
from typing import Any

from observatory.protocol.identity import NAMESPACE
from observatory.sdk.approval import Approval
from observatory.sdk.step import written_input

SUMMARY_CHARS = 2_000
INTENT_CHARS = 500
INPUT_BYTES = 256 << 10  # a message may have 1 MiB
TOOL_CHARS = 256
MORE_CHARS = 24  # space for the note on how much is missing
_POISON = re.compile(r"[\x00\ud800-\udfff]")
_NO_SESSION = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_WHY = {
    "rejected": "a person rejected it",
    "expired": "it was not approved in time",
    "no_verdict": "no verdict was received",
    "not_admitted": "the gateway refuses this agent's key",
    "policy_denied": "a rule forbids it",
    "budget_exceeded": "the budget is exhausted",
}


def clip(value: Any, limit: int = SUMMARY_CHARS) -> str:
    """Anything as text of at most `limit` characters."""
    text = _POISON.sub("\ufffd", value if isinstance(value, str) else _written(value) or "")
    if len(text) <= limit:
        return text
    end = limit - MORE_CHARS
    return f"{text[:end]}… ({len(text) - end:,} more)"


def _written(value: Any) -> str | None:
    """Like `written_input`, also for objects whose conversion fails (a row without its database)."""
    try:
        return written_input(value)
    except Exception:  # noqa: BLE001 (third-party code: its errors must not reach the caller)
        return _unwritable(value)


def _unwritable(value: Any) -> str:
    return f"({type(value).__name__}, which cannot be written)"


def failure(error: BaseException | str) -> str:
    if isinstance(error, str):
        return clip(error)
    try:
        return clip(f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 (as above)
        return type(error).__name__


def bounded_input(tool_input: Any) -> Any:
    """A tool's input as it is sent; the same object if nothing had to change."""
    text = _written(tool_input)
    if text is None:
        return None
    if text == _unwritable(tool_input):
        return text
    plain = _POISON.sub("\ufffd", text.replace("\\u0000", "\ufffd"))
    if len(raw := plain.encode()) <= INPUT_BYTES:
        return tool_input if plain == text else plain
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return {"too_large": len(raw), "sha256": digest, "begins": clip(plain)}


def is_abridged(tool_input: Any) -> bool:
    """Whether it is the abridged form `bounded_input` sends for an input that is too large."""
    return isinstance(tool_input, dict) and {"too_large", "sha256", "begins"} <= tool_input.keys()


def tool_name(name: Any) -> str:
    return clip(str(name) or "?", TOOL_CHARS)


def session_name(thread: Any) -> str:
    """The session id for a framework's conversation name: the name if valid, else a UUIDv5 of it."""
    text = str(thread)
    if text and len(text) <= 256 and not _NO_SESSION.search(text):
        return text
    return str(uuid.uuid5(NAMESPACE, text.encode(errors="replace").decode()))


def refusal(tool: str, approval: Approval) -> str:
    """The message to the model when a tool was not run."""
    why = _WHY.get(approval.verdict, f"it was refused ({approval.verdict})")
    by = f" ({approval.by})" if approval.by else ""
    note = f": {approval.note}" if approval.note else ""
    return f"{tool} was not run: {why}{by}{note}. Do not try to do the same in another way."


def changed_tool(tool: str, approval: Approval) -> str:
    """The message to the model when a person replaced the tool it asked for."""
    given = written_input(approval.tool_input) or "no input"
    note = f" ({approval.note})" if approval.note else ""
    return f"{tool} was not run: a person requests {approval.tool_call} with {given} instead{note}."


def changed_shape(tool: str) -> str:
    return f"{tool} was not run: a person edited its input to something that is not an object."


def changed_abridged(tool: str) -> str:
    return f"{tool} was not run: a person edited the abridged form of an input too large to show in full."


def tokens(*counts: Any) -> int | None:
    """Their sum; None when none is known, so that unknown is never zero."""
    known = [one for one in counts if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
    return sum(known) if known else None

"""What a framework says, as the protocol can carry it: bounded, without what no database takes.

Law: what is said about a call never keeps the call from running, whatever is in it. A text too long keeps its
beginning and says how much is missing; an input too long to show is named by its size and SHA-256, so what
was approved can still be told from anything else.
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
MORE_CHARS = 24  # room to say how much is missing
_POISON = re.compile(r"[\x00\ud800-\udfff]")
_NO_SESSION = re.compile(r"[/\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_WHY = {
    "rejected": "a person rejected it",
    "expired": "nobody approved it in time",
    "no_verdict": "no approval could be had",
    "not_admitted": "the gateway has shut this agent out",
    "policy_denied": "a rule forbids it",
    "budget_exceeded": "the budget is spent",
}


def clip(value: Any, most: int = SUMMARY_CHARS) -> str:
    """Anything as a text of at most `most` characters."""
    text = _POISON.sub("\ufffd", value if isinstance(value, str) else _written(value) or "")
    if len(text) <= most:
        return text
    kept = most - MORE_CHARS
    return f"{text[:kept]}… ({len(text) - kept:,} more)"


def _written(value: Any) -> str | None:
    """As `written_input`, also of what fails when it is asked for its words (a row without its database)."""
    try:
        return written_input(value)
    except Exception:  # noqa: BLE001 (its own code: whatever that raises is not the caller's to bear)
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


def told_input(tool_input: Any) -> Any:
    """A tool's input as it is sent; the same object when nothing had to be changed."""
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
    """Whether it is what `told_input` shows of one too large, and no input itself."""
    return isinstance(tool_input, dict) and {"too_large", "sha256", "begins"} <= tool_input.keys()


def tool_name(name: Any) -> str:
    return clip(str(name) or "?", TOOL_CHARS)


def session_name(thread: Any) -> str:
    """A framework's name of a conversation as a session's: itself where that can be, else one made of it."""
    text = str(thread)
    if text and len(text) <= 256 and not _NO_SESSION.search(text):
        return text
    return str(uuid.uuid5(NAMESPACE, text.encode(errors="replace").decode()))


def refusal(tool: str, approval: Approval) -> str:
    """Why a tool was not run, as the model is told."""
    why = _WHY.get(approval.verdict, f"it was refused ({approval.verdict})")
    by = f" ({approval.by})" if approval.by else ""
    note = f": {approval.note}" if approval.note else ""
    return f"{tool} was not run: {why}{by}{note}. Do not try to do the same in another way."


def changed_tool(tool: str, approval: Approval) -> str:
    """What the model is told when a person put another tool in the place of the one it asked for."""
    given = written_input(approval.tool_input) or "no input"
    note = f" ({approval.note})" if approval.note else ""
    return f"{tool} was not run: a person asks for {approval.tool_call} with {given} instead{note}."


def changed_shape(tool: str) -> str:
    return f"{tool} was not run: a person edited its input to something that is not an object."


def changed_abridged(tool: str) -> str:
    return (
        f"{tool} was not run: a person edited what was shown of its input, which was too large to show whole."
    )


def tokens(*counts: Any) -> int | None:
    """Their sum; None when none was told, so that what is not known is never zero."""
    known = [one for one in counts if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
    return sum(known) if known else None

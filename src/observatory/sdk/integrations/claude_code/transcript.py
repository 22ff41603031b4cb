"""Reads a Claude Code transcript for what hooks omit: tokens, the model, thoughts before a tool call.

Rule: only lines added since the last read, up to a limit. A model answer has several lines, one for each
block, and counts once. Unreadable lines are skipped. Unknown token counts are None, not zero.
"""

from typing import Any, NamedTuple

import msgspec

from observatory.sdk.integrations.claude_code.memory import MAX_KEPT, HookSession
from observatory.sdk.integrations.wording import clip, tokens

MAX_BYTES = 4 << 20
MAX_THOUGHTS = 5
COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class TranscriptUpdate(NamedTuple):
    tokens: int | None
    model: str | None
    thoughts: list[str]


class _Message(msgspec.Struct):
    id: str = ""
    model: str | None = None
    content: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}


class _Line(msgspec.Struct):
    type: str = ""
    message: msgspec.Raw = msgspec.Raw(b"{}")


def read(session: HookSession, path: object) -> TranscriptUpdate:
    """The new entries of the transcript at `path`; stores in `session` how far it was read."""
    spent: list[int | None] = []
    thoughts: list[str] = []
    for line in _new_lines(session, path):
        try:
            if _decode(line).type != "assistant":
                continue
            message = msgspec.json.decode(_decode(line).message, type=_Message)
        except msgspec.MsgspecError:
            continue
        session.model = (
            message.model if message.model and not message.model.startswith("<") else session.model
        )
        thoughts += [
            clip(text)
            for block in message.content
            if isinstance(text := block.get("text") or block.get("thinking"), str) and text.strip()
        ]
        if message.usage and message.id not in session.counted:
            session.counted = [*session.counted, message.id][-MAX_KEPT:]
            spent.append(tokens(*(message.usage.get(name) for name in COUNTS)))
    return TranscriptUpdate(tokens(*spent), session.model, thoughts[-MAX_THOUGHTS:])


def _new_lines(session: HookSession, path: object) -> list[bytes]:
    if not isinstance(path, str) or not path:
        return []
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            begin = session.read.get(path, 0)
            begin = 0 if begin > size else begin
            file.seek(max(begin, size - MAX_BYTES))
            data = file.read(MAX_BYTES)
            end = data.rfind(b"\n") + 1  # an incomplete line is read next time
            session.read[path] = file.tell() - len(data) + end
            while len(session.read) > MAX_KEPT:  # each sub-agent has its own transcript
                del session.read[next(iter(session.read))]
    except OSError:
        return []
    return data[:end].splitlines()


_decode = msgspec.json.Decoder(_Line).decode

"""What the transcript tells that hooks do not: tokens, the model, what was thought before a tool was used.

Law: only what was added since is read, and at most so much; an answer of the model stands in several lines,
one for each block, and counts once. What cannot be read is skipped. No tokens told is not zero tokens.
"""

from typing import Any, NamedTuple

import msgspec

from observatory.sdk.integrations.claude_code.memory import MOST_KEPT, Session
from observatory.sdk.integrations.wording import clip, tokens

MOST_BYTES = 4 << 20
MOST_THOUGHTS = 5
COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Read(NamedTuple):
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


def read(session: Session, path: object) -> Read:
    """What is new in the transcript at `path`; remembers in `session` how far it was read."""
    spent: list[int | None] = []
    thoughts: list[str] = []
    for line in _new_lines(session, path):
        try:
            if _decode(line).type != "assistant":
                continue
            said = msgspec.json.decode(_decode(line).message, type=_Message)
        except msgspec.MsgspecError:
            continue
        session.model = said.model if said.model and not said.model.startswith("<") else session.model
        thoughts += [
            clip(text)
            for block in said.content
            if isinstance(text := block.get("text") or block.get("thinking"), str) and text.strip()
        ]
        if said.usage and said.id not in session.counted:
            session.counted = [*session.counted, said.id][-MOST_KEPT:]
            spent.append(tokens(*(said.usage.get(name) for name in COUNTS)))
    return Read(tokens(*spent), session.model, thoughts[-MOST_THOUGHTS:])


def _new_lines(session: Session, path: object) -> list[bytes]:
    if not isinstance(path, str) or not path:
        return []
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            begin = session.read.get(path, 0)
            begin = 0 if begin > size else begin
            file.seek(max(begin, size - MOST_BYTES))
            data = file.read(MOST_BYTES)
            end = data.rfind(b"\n") + 1  # a line being written is read next time
            session.read[path] = file.tell() - len(data) + end
            while len(session.read) > MOST_KEPT:  # each sub-agent has one of its own
                del session.read[next(iter(session.read))]
    except OSError:
        return []
    return data[:end].splitlines()


_decode = msgspec.json.Decoder(_Line).decode

"""The values of attributes, as a DecisionLog takes them: names without control characters, counts that are
counts, texts of a bearable length, the words of a model's messages.

Law: what cannot be read is absent; nothing here raises, whatever others have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from observatory.features.otlp import conventions as words
from observatory.features.otlp.records import Attributes, Span
from observatory.protocol import clock
from observatory.protocol.rules import MAX_SAFE, SEMVER

LONGEST: Final = 16_384  # characters of one text; what is longer is cut, and counted
LONGEST_TALK: Final = 4 << 20  # characters of JSON that is taken apart for what was said
NAMES: Final = 1_000  # of unmapped attributes that are counted apart, of a request
NO_VERSION: Final = "0.0.0"
SPOKEN: Final = ("text",)  # types of a message's parts
THOUGHT: Final = ("reasoning", "thinking")
_control: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_is_semver: Final = re.compile(SEMVER).match
_short_version: Final = re.compile(r"v?(\d+)(?:\.(\d+))?$").match
encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder().decode


class Tally(msgspec.Struct):
    """What was noticed on the way: by how much the record is less than what was sent."""

    steps: int = 0
    not_agents: int = 0  # without an agent's words: no step
    without_tokens: int = 0  # a model's call that says no tokens
    without_cost: int = 0  # the same of what it cost
    early: int = 0  # a span that tells no session and whose parent nobody knows yet
    sums_left: int = 0  # an agent's sum over the calls of its own process
    cut: int = 0
    unmapped: dict[str, int] = {}

    def unread(self, names: Iterable[str]) -> None:
        counted = self.unmapped
        for name in names:
            if name in counted or len(counted) < NAMES:
                counted[name] = counted.get(name, 0) + 1


def one_line(text: str) -> str:
    return text if text.isprintable() else _control.sub(" ", text)


def in_short(text: str, most: int) -> str:
    """In one line and with single blanks; of what is longer, more than `most` of its beginning."""
    for some in (text[: 8 * most], text) if len(text) > 8 * most else (text,):
        found = " ".join(one_line(some).split())
        if len(found) > most:
            break
    return found


def first(said: Attributes, names: Iterable[str]) -> Any:
    """The first that is told; an empty text tells nothing."""
    for name in names:
        if (value := said.get(name)) is not None and value != "":
            return value
    return None


def _cleaned(text: str) -> str | None:
    return _control.sub(" ", text).strip()[:256].strip() or None


_known: Final = lru_cache(maxsize=16_384)(_cleaned)


def name(value: Any) -> str | None:
    if value is None or isinstance(value, list | dict):
        return None
    text = value if isinstance(value, str) else str(value)
    return _known(text) if len(text) <= 512 else _cleaned(text)


def session(value: Any) -> str | None:
    """A session's name has no slash: that divides session and step."""
    found = name(value)
    return found and found.replace("/", "_")


@lru_cache(maxsize=4_096)
def version(text: str) -> str:
    """Semantic, or made so where nothing must be guessed ("1.2" is 1.2.0)."""
    text = text.strip()
    if len(text) <= 128 and _is_semver(text):
        return text
    if (short := _short_version(text)) and len(text) <= 32:
        return f"{int(short[1])}.{int(short[2] or 0)}.0"
    return NO_VERSION


class Source(msgspec.Struct, gc=False):
    """What its resource tells of a span: the same for all of a block."""

    service: str
    agent_type: str | None
    version: Any
    cluster_id: str | None


def source_of(resource: Attributes) -> Source:
    service = name(resource.get("service.name")) or "unknown_service"
    kind = name(resource.get(words.AGENT_TYPE))
    return Source(service, kind, resource.get("service.version"), cluster(resource))


def cluster(resource: Attributes) -> str | None:
    """`aws-eu-central-1` where cloud and region are told: that is how the map finds a place."""
    region, cloud = resource.get(words.REGION), resource.get(words.CLOUD)
    if not resource.get(words.CLUSTER[0]) and region and cloud:
        return name(f"{cloud}-{region}")
    return name(first(resource, words.CLUSTER))


def when(start_ns: int, end_ns: int = 0) -> str:
    """The first that is told and that a clock can show."""
    if 0 < start_ns < clock.LAST_NS:
        return clock.from_ns(start_ns)
    return clock.from_ns(end_ns if 0 < end_ns < clock.LAST_NS else 0)


def duration(span: Span) -> int:
    return max(0, span.end_ns - span.start_ns) // 1_000_000 if span.end_ns else 0


def count(value: Any) -> int | None:
    if type(value) is int:  # nearly all are
        return value if 0 <= value <= MAX_SAFE else None
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 17 else None
    if isinstance(value, float):
        value = int(value) if 0 <= value <= MAX_SAFE else None
    return value if type(value) is int and 0 <= value <= MAX_SAFE else None


def cost(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None  # neither NaN nor an infinity is


def cut(text: str, tally: Tally) -> str:
    text = text.replace("\0", "")
    if len(text) <= LONGEST:
        return text
    tally.cut += 1
    return f"{text[: LONGEST - 1]}…"


def plain(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else dumped(value)


def dumped(value: Any) -> str:
    return encode(value).decode(errors="replace")


def as_json(value: Any, tally: Tally) -> str:
    """`tool_input` is JSON as text: what is none already becomes a JSON string."""
    text = plain(value)
    if len(text) > LONGEST:
        return dumped(cut(text, tally))
    try:
        decode(text)
    except (msgspec.DecodeError, RecursionError):
        return dumped(text.replace("\0", ""))
    return text if "\\u0000" not in text else dumped(text)


def messages(value: Any) -> list[dict[str, Any]]:
    """GenAI's messages: a list of `{role, parts | content}`, often as JSON text."""
    if isinstance(value, str) and value[:1] in "[{" and len(value) <= LONGEST_TALK:
        try:
            value = decode(value)
        except (msgspec.DecodeError, RecursionError):
            return []
    if isinstance(value, dict):
        value = value.get("messages") or [value]
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(message: Mapping[str, Any], kinds: Sequence[str]) -> list[str]:
    """The texts of a message's parts of these kinds."""
    parts = message.get("parts") or message.get("content")
    if isinstance(parts, str):
        return [parts] if "text" in kinds else []
    found = []
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict) and part.get("type") in kinds:
            text = part.get("content") or part.get("text") or part.get("thinking")
            if isinstance(text, str):
                found.append(text)
    return found


def question(value: Any) -> str:
    """The last thing a person or another agent said."""
    if value is None:
        return ""
    for message in reversed(messages(value)):
        if message.get("role") in ("user", "human", None) and (found := texts(message, SPOKEN)):
            return found[-1]
    return value if isinstance(value, str) and value[:1] not in "[{" else ""


def answer(said: Attributes, names: Iterable[str]) -> tuple[list[str], str]:
    """What the model thought, and what it said."""
    told = first(said, names)
    answers = () if told is None else messages(told)
    if not answers:
        flat = plain(said.get("llm.output_messages.0.message.content"))
        return [], flat or plain(told)
    thoughts = [text for one in answers for text in texts(one, THOUGHT)]
    return thoughts, "\n".join([text for one in answers for text in texts(one, SPOKEN)])

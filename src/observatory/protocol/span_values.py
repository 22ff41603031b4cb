"""The values of attributes, as a DecisionLog takes them: names without control characters, counts that are
counts, texts of a bearable length, the words of a model's messages.

Law: what cannot be read is absent; nothing here raises, whatever others have written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from observatory.protocol import clock
from observatory.protocol import conventions as words
from observatory.protocol.otlp_records import Attributes, Span
from observatory.protocol.rules import MAX_SAFE, SEMVER

LONGEST: Final = 16_384  # characters of one text; what is longer is cut, and counted
LONGEST_TALK: Final = 4 << 20  # characters of JSON that is taken apart for what was said
NAMES: Final = 1_000  # of unmapped attributes that are counted apart, of a request
NO_VERSION: Final = "0.0.0"
_control: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_is_semver: Final = re.compile(SEMVER).match
_short_version: Final = re.compile(r"v?(\d+)(?:\.(\d+))?$").match
_digits: Final = re.compile(r"(?<=\.)\d+(?=\.|$)").sub
encode: Final = msgspec.json.Encoder().encode


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

    def unread(self, attributes: Attributes) -> None:
        for key in attributes:
            if key not in words.READ:
                plain_key = _digits("N", key)[:128]
                if plain_key in self.unmapped or len(self.unmapped) < NAMES:
                    self.unmapped[plain_key] = self.unmapped.get(plain_key, 0) + 1


def one_line(text: str) -> str:
    return _control.sub(" ", text)


def first(said: Attributes, names: Iterable[str]) -> Any:
    """The first that is told; an empty text tells nothing."""
    for name in names:
        if (value := said.get(name)) is not None and value != "":
            return value
    return None


@lru_cache(maxsize=16_384)
def _cleaned(text: str) -> str | None:
    return _control.sub(" ", text).strip()[:256].strip() or None


def name(value: Any) -> str | None:
    if value is None or isinstance(value, list | dict):
        return None
    return _cleaned(str(value))


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


def cluster(resource: Attributes) -> str | None:
    """`aws-eu-central-1` where cloud and region are told: that is how the map finds a place."""
    region, cloud = resource.get(words.REGION), resource.get(words.CLOUD)
    if not resource.get(words.CLUSTER[0]) and region and cloud:
        return name(f"{cloud}-{region}")
    return name(first(resource, words.CLUSTER))


def when(*times_ns: int) -> str:
    """The first that is told and that a clock can show."""
    return clock.from_ns(next((ns for ns in times_ns if 0 < ns < clock.LAST_NS), 0))


def duration(span: Span) -> int:
    return max(0, span.end_ns - span.start_ns) // 1_000_000 if span.end_ns else 0


def count(value: Any) -> int | None:
    if isinstance(value, str):
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 17 else None
    if isinstance(value, float):
        value = int(value) if 0 <= value <= MAX_SAFE else None
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE else None
    )


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
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return dumped(text.replace("\0", ""))
    return text if "\\u0000" not in text else dumped(text)


def messages(value: Any) -> list[dict[str, Any]]:
    """GenAI's messages: a list of `{role, parts | content}`, often as JSON text."""
    if isinstance(value, str) and value[:1] in "[{" and len(value) <= LONGEST_TALK:
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return []
    if isinstance(value, dict):
        value = value.get("messages") or [value]
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(message: Mapping[str, Any], *kinds: str) -> list[str]:
    """The texts of a message's parts of these kinds."""
    parts = message.get("parts") or message.get("content")
    if isinstance(parts, str):
        return [parts] if "text" in kinds else []
    found = []
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, dict) and part.get("type") in kinds:
            text = part.get("content") or part.get("text") or part.get("thinking")
            found += [text] if isinstance(text, str) else []
    return found


def question(value: Any) -> str:
    """The last thing a person or another agent said."""
    for message in reversed(messages(value)):
        if message.get("role") in ("user", "human", None) and (found := texts(message, "text")):
            return found[-1]
    return plain(value) if isinstance(value, str) and value[:1] not in "[{" else ""


def answer(said: Attributes) -> tuple[list[str], str]:
    """What the model thought, and what it said."""
    told = first(said, words.ANSWER)
    answers = messages(told)
    thoughts = [text for one in answers for text in texts(one, "reasoning", "thinking")]
    said_text = [text for one in answers for text in texts(one, "text")]
    if not answers:
        flat = "llm.output_messages.0.message.content"
        said_text = [text for text in (plain(said.get(flat)), plain(told)) if text][:1]
    return thoughts, "\n".join(said_text)

"""Converts attribute values to DecisionLog values: names without control characters, non-negative counts,
texts of bounded length, the texts of a model's messages.

Law: values that cannot be read are absent; nothing here raises, whatever was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from observatory.features.otlp import conventions
from observatory.features.otlp.records import Attributes, OtlpSpan
from observatory.protocol import clock
from observatory.protocol.rules import MAX_SAFE, SEMVER

LONGEST: Final = 16_384  # characters of one text; longer texts are cut, and counted
LONGEST_TALK: Final = 4 << 20  # characters of JSON messages that are parsed
NAMES: Final = 1_000  # unmapped attributes of a request that are counted by name
NO_VERSION: Final = "0.0.0"
SPOKEN: Final = ("text",)  # types of a message's parts
THOUGHT: Final = ("reasoning", "thinking")
_control: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_is_semver: Final = re.compile(SEMVER).match
_short_version: Final = re.compile(r"v?(\d+)(?:\.(\d+))?$").match
encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder().decode


class IngestTally(msgspec.Struct):
    """What was lost or missing in a request."""

    steps: int = 0
    not_agents: int = 0  # without agent attributes: no step
    without_tokens: int = 0  # model calls that report no tokens
    without_cost: int = 0  # model calls that report no cost
    early: int = 0  # spans without a session whose parent is not recorded yet
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


def shortened(text: str, most: int) -> str:
    """In one line and with single blanks; of a longer text, more than `most` of its beginning."""
    for some in (text[: 8 * most], text) if len(text) > 8 * most else (text,):
        found = " ".join(one_line(some).split())
        if len(found) > most:
            break
    return found


def first(attributes: Attributes, names: Iterable[str]) -> Any:
    """The first value present; an empty text counts as absent."""
    for name in names:
        if (value := attributes.get(name)) is not None and value != "":
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
    """A session's name has no slash, which separates session and step."""
    found = name(value)
    return found and found.replace("/", "_")


@lru_cache(maxsize=4_096)
def version(text: str) -> str:
    """Semantic, or completed where that is unambiguous ("1.2" is 1.2.0)."""
    text = text.strip()
    if len(text) <= 128 and _is_semver(text):
        return text
    if (short := _short_version(text)) and len(text) <= 32:
        return f"{int(short[1])}.{int(short[2] or 0)}.0"
    return NO_VERSION


class ResourceSource(msgspec.Struct, gc=False):
    """What a resource says about its spans: the same for a whole block."""

    service: str
    agent_type: str | None
    version: Any
    cluster_id: str | None


def source_of(resource: Attributes) -> ResourceSource:
    service = name(resource.get("service.name")) or "unknown_service"
    kind = name(resource.get(conventions.AGENT_TYPE))
    return ResourceSource(service, kind, resource.get("service.version"), cluster(resource))


def cluster(resource: Attributes) -> str | None:
    """`aws-eu-central-1` if cloud and region are given: the map places a cluster by that name."""
    region, cloud = resource.get(conventions.REGION), resource.get(conventions.CLOUD)
    if not resource.get(conventions.CLUSTER[0]) and region and cloud:
        return name(f"{cloud}-{region}")
    return name(first(resource, conventions.CLUSTER))


def when(start_ns: int, end_ns: int = 0) -> str:
    """The first time that is given and representable."""
    if 0 < start_ns < clock.LAST_NS:
        return clock.from_ns(start_ns)
    return clock.from_ns(end_ns if 0 < end_ns < clock.LAST_NS else 0)


def duration(span: OtlpSpan) -> int:
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
    return float(value) if 0 <= value < 1e12 else None  # excludes NaN and the infinities


def cut(text: str, tally: IngestTally) -> str:
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


def as_json(value: Any, tally: IngestTally) -> str:
    """`tool_input` is JSON as text: anything else becomes a JSON string."""
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
    """The last text of a person or another agent."""
    if value is None:
        return ""
    for message in reversed(messages(value)):
        if message.get("role") in ("user", "human", None) and (found := texts(message, SPOKEN)):
            return found[-1]
    return value if isinstance(value, str) and value[:1] not in "[{" else ""


def answer(attributes: Attributes, names: Iterable[str]) -> tuple[list[str], str]:
    """The model's thoughts, and its answer."""
    value = first(attributes, names)
    answers = () if value is None else messages(value)
    if not answers:
        flat = plain(attributes.get("llm.output_messages.0.message.content"))
        return [], flat or plain(value)
    thoughts = [text for one in answers for text in texts(one, THOUGHT)]
    return thoughts, "\n".join([text for one in answers for text in texts(one, SPOKEN)])

"""Fingerprints of a step by its substance, independent of wording, ids and times, for the loop detector.

Law: pure and bounded: of a payload of any size about 4 KB are read. An input is parsed as JSON if possible,
its keys in any order; values under volatile keys (times, nonces, request ids, attempts) are ignored, values
that name one item are kept (rule S190). Fingerprints are numbers: no text of a payload is kept.
"""

from __future__ import annotations

import re
from typing import Any, Final
from zlib import crc32

import msgspec

from observatory.features.loops.tokenizer import NOTHING, bit, masked, normal_form, tokenize
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.messages import Text

# How many characters of each part are read.
INPUT_CHARS: Final = 3_000
OUTPUT_CHARS: Final = 400
INTENT_CHARS: Final = 300
REASON_CHARS: Final = 400
FACT_CHARS: Final = 160
FACTS: Final = 4
LEAVES: Final = 32
INPUT_WORDS: Final = 160

# Keys whose value does not identify what is requested.
_VOLATILE_KEY: Final = re.compile(
    r"^_+$|^(ts|t|now|at|time|cb|salt|rand|seed|clock|sig|signature|etag|uuid|guid|sid|x-.*)$"
    r"|timestamp|nonce|req(uest)?_?id|trace|span_?id|correlation|idempoten|invocation|call_?id|(message|msg)_?id"
    r"|(run|session|conversation)_?id|attempt|retr(y|ies)|tries$|^try|cache_?bust|counter|^seq(_?no)?$|random|run_?number"
    r"|(sent|requested|called|issued|generated|client|current|request)_?(at|ts|time)$|token$|jitter|backoff|timeout"
    r"|delay|deadline|ttl|histor|previous|tried|already",
    re.IGNORECASE,
)
# Keys that tune a call without selecting another item.
_OPTION_KEY: Final = re.compile(
    r"^(limit|top_?k|k|n|max\w*|size|page_?size|per_?page|num\w*|count|verbose|debug|force|temperature|depth"
    r"|recency\w*|strict|fuzzy|exact|lang|language|locale|headers?|flags?|options?|mode|format|follow\w*|sort"
    r"|order(_by)?|safe\w*)$",
    re.IGNORECASE,
)
_PAGE_KEY: Final = re.compile(
    r"^(page|offset|start|skip|cursor|page_?(no|num|number|token|index))$", re.IGNORECASE
)
# Times under these select what is looked at, and random values under these name an item: both are kept.
_WINDOW_KEY: Final = re.compile(
    r"^(since|until|from|to|start|end|before|after|day|date|month|week|window)(_|$)", re.IGNORECASE
)
_ITEM_KEY: Final = re.compile(
    r"ids?$|^(sha|commit|rev|revision|hash|digest|file|path|name|url|uri|key)s?$", re.IGNORECASE
)
# A quantity or a range, not a date: 512, 0.5, 1:50, 3-4, "1,20p".
_SIZE: Final = re.compile(r"(?!\d{4}-\d\d)-?\d[\d.,:;-]{0,20}[a-z%]{0,3}$", re.IGNORECASE)
_THING: Final = re.compile(r"[/\\@.\d]")
_NUMBER: Final = re.compile(r"\d{1,18}")
# Tools that only think: their input is treated as reasoning.
_THINKING: Final = frozenset(
    ("think", "thinking", "thought", "reflect", "reflection", "plan", "planning", "scratchpad", "reason")
)

_VOLATILE, _OPTION, _PAGE, _WINDOW, _ITEM, _OTHER = range(6)
_kinds: dict[str, int] = {}


class FactFingerprint(msgspec.Struct, frozen=True, gc=False):
    print: int
    words: int
    marks: int
    is_barren: bool


class StepFingerprint(msgspec.Struct, frozen=True, gc=False):
    """The fingerprint of one step. `call` and `outcome` are equal for equal substance."""

    tool: str | None
    status: str
    call: int  # tool and input, nothing volatile
    input_words: int  # the input's running text
    items: int  # what in the input names one item: short values, paths, numbers, names
    pages: int  # values under paging keys, which advance by themselves
    asked: int  # the input without its quantities: words, and single values in any spelling
    values: int  # the single values among them
    named: int  # what in the input looks like a name of its own: paths, addresses, ids
    sizes: int  # its quantities: plain numbers and ranges that name no item
    scale: float  # the first of them
    text: int  # intent and reasoning
    marks: int  # what in the intent names one item
    outcome: int  # status and output
    output_words: int
    output_names: int  # names in the output
    numbers: tuple[float, ...]  # of the output, in order
    is_barren: bool  # failed, or returned nothing
    is_past_end: bool  # the output says that there are no further pages
    facts: tuple[FactFingerprint, ...]


def fingerprint_of(log: DecisionLog | None, envelope: Envelope | None) -> StepFingerprint | None:
    """None for messages that are no work: a heartbeat, an alert, a shredded message."""
    if log is not None:
        action, thought = log.action, log.cognition
        return fingerprint(
            thought.intent if thought else None,
            thought.reasoning_chain if thought else None,
            action.tool_call,
            action.tool_input,
            action.tool_output_summary,
            action.status,
            log.state_delta.added_to_memory if log.state_delta else None,
        )
    if envelope is not None and isinstance(envelope.payload, Text):
        return fingerprint(envelope.payload.content, None, None, None, None, "success", None)
    return None


def fingerprint(
    intent: str | None,
    reasoning: list[str] | None,
    tool: str | None,
    tool_input: str | None,
    output: str | None,
    status: str,
    facts: list[str] | None,
) -> StepFingerprint:
    intent_text = tokenize(intent[:INTENT_CHARS]) if intent else NOTHING
    text = intent_text.words
    if reasoning:
        first = (
            reasoning[0] if len(reasoning) == 1 else " ".join(line[:REASON_CHARS] for line in reasoning[:8])
        )
        text |= tokenize(first[:REASON_CHARS]).words
    digest = _InputDigest()
    if tool and tool_input:
        digest.read(tool_input)
        if tool.lower() in _THINKING:
            tool, text = None, text | digest.words
    if output and len(output) > OUTPUT_CHARS:
        output = f"{output[: OUTPUT_CHARS - 120]} {output[-120:]}"
    output_text = tokenize(output) if output else NOTHING
    if not tool:
        text |= output_text.words
    failed = status in ("failure", "skipped")
    digest.kept.sort()
    return StepFingerprint(
        tool or None,
        status,
        _crc("\x1f".join((tool.lower() if tool else "", *digest.kept))),
        digest.words,
        digest.items,
        digest.pages,
        digest.values | digest.words,
        digest.values,
        digest.named,
        digest.sizes,
        digest.scale,
        text,
        intent_text.marks,
        _crc(f"{status}\x1f{output_text.plain}"),
        output_text.words,
        output_text.names,
        output_text.numbers,
        failed or (output is not None and output_text.is_barren),
        not failed and output is not None and output_text.is_end,
        tuple([_fact(fact) for fact in facts[:FACTS]]) if facts else (),
    )


def _crc(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


def _fact(fact: str) -> FactFingerprint:
    fact_text = tokenize(fact[:FACT_CHARS])
    return FactFingerprint(
        _crc(fact_text.plain), fact_text.words, fact_text.marks | fact_text.names, fact_text.is_barren
    )


class _InputDigest:
    """What an input requests: kept values, its words, its items."""

    __slots__ = ("items", "kept", "left", "named", "pages", "scale", "sizes", "values", "words")

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.words = self.items = self.pages = self.values = self.named = self.sizes = 0
        self.scale = 0.0
        self.left = INPUT_WORDS

    def read(self, tool_input: str) -> None:
        if len(tool_input) > INPUT_CHARS:
            # Too long to parse: its beginning, middle and end represent it.
            middle = len(tool_input) // 2
            for cut in (tool_input[middle : middle + 100], tool_input[-100:]):
                self.kept.append(masked(cut))
            self.take("", tool_input[:400])
            return
        value = _parsed(tool_input)
        self.walk("", tool_input if value is None else value, 0)

    def walk(self, key: str, value: Any, depth: int) -> None:
        if isinstance(value, str):
            inner = _parsed(value) if value[:1] in ("{", "[") and depth < 6 else None
            if inner is None:
                self.take(key, value)
            else:
                self.walk(key, inner, depth + 1)
        elif isinstance(value, dict):
            for name, inner in value.items():
                if depth < 6 and _kind(name) != _VOLATILE:
                    self.walk(name, inner, depth + 1)
        elif isinstance(value, list):
            for inner in value[:LEAVES]:
                if depth < 6:
                    self.walk(key, inner, depth + 1)
        else:
            self.take(key, str(value))

    def take(self, key: str, text: str) -> None:
        if self.left <= 0 or len(self.kept) >= LEAVES:
            # The rest is not analysed, but a different rest makes a different call.
            self.kept.append(str(_crc(text[:INPUT_CHARS])))
            return
        kind = _kind(key)
        self.left -= 1
        if " " in text or "\n" in text:
            tokens = tokenize(text)
            self.left -= len(text) >> 3
            # Beyond the words that are read, every character counts.
            self.kept.append(
                f"{key}={tokens.plain}" if len(text) < 300 else f"{key}={tokens.plain}{_crc(text)}"
            )
            if kind != _OPTION:
                self.words |= tokens.words
                self.items |= tokens.marks | tokens.names
                self.named |= tokens.things
            return
        plain = text if kind == _WINDOW else masked(text)
        if plain == "*" and kind == _ITEM:
            plain = text
        if kind == _PAGE:
            self.pages |= bit(f"{key}={text}")
            self.measure(text)
            plain = text
        elif plain != "*" and kind != _OPTION:
            self.items |= bit(f"{key}={plain}")
            if kind != _ITEM and _SIZE.match(text):
                self.measure(text)
            else:
                value = bit(normal_form(plain))
                self.values |= value
                if kind == _ITEM or _THING.search(plain):
                    self.named |= value
        self.kept.append(f"{key}={plain.lower()}")

    def measure(self, text: str) -> None:
        self.sizes |= bit(text)
        if not self.scale:
            number = _NUMBER.search(text)
            self.scale = float(number[0]) if number else 0.0


def _parsed(text: str) -> Any:
    """The value of a JSON text; None if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return None


def _kind(key: str) -> int:
    known = _kinds.get(key)
    if known is None:
        if len(_kinds) >= 5_000:
            _kinds.clear()
        name = key[:64]
        if _VOLATILE_KEY.search(name):
            known = _VOLATILE
        elif _OPTION_KEY.match(name):
            known = _OPTION
        elif _PAGE_KEY.match(name):
            known = _PAGE
        elif _WINDOW_KEY.match(name):
            known = _WINDOW
        else:
            known = _ITEM if _ITEM_KEY.search(name) else _OTHER
        _kinds[key] = known
    return known

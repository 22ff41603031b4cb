"""What one step amounts to, whatever words, ids and times it was said with: the prints loops are found by.

Law: pure and bounded: of a payload of any size some 4 KB are read. An input is taken apart as JSON when it
is, its keys in any order; values under volatile keys (times, nonces, request ids, attempts) do not count,
values that name one item do (rule S190). Prints are numbers: no text of a payload is kept.
"""

from __future__ import annotations

import re
from typing import Any, Final
from zlib import crc32

import msgspec

from observatory.features.loops.tokenizer import NOTHING, bit, masked, read, spelt
from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.envelope import Envelope
from observatory.protocol.messages import Text

# How much is read of each part.
INPUT_CHARS: Final = 3_000
OUTPUT_CHARS: Final = 400
INTENT_CHARS: Final = 300
REASON_CHARS: Final = 400
FACT_CHARS: Final = 160
FACTS: Final = 4
LEAVES: Final = 32
INPUT_WORDS: Final = 160

# Keys whose value says nothing of what is asked for.
_VOLATILE_KEY: Final = re.compile(
    r"^_+$|^(ts|t|now|at|time|cb|salt|rand|seed|clock|sig|signature|etag|uuid|guid|sid|x-.*)$"
    r"|timestamp|nonce|req(uest)?_?id|trace|span_?id|correlation|idempoten|invocation|call_?id|(message|msg)_?id"
    r"|(run|session|conversation)_?id|attempt|retr(y|ies)|tries$|^try|cache_?bust|counter|^seq(_?no)?$|random|run_?number"
    r"|(sent|requested|called|issued|generated|client|current|request)_?(at|ts|time)$|token$|jitter|backoff|timeout"
    r"|delay|deadline|ttl|histor|previous|tried|already",
    re.IGNORECASE,
)
# Keys that tune a call without choosing another item.
_OPTION_KEY: Final = re.compile(
    r"^(limit|top_?k|k|n|max\w*|size|page_?size|per_?page|num\w*|count|verbose|debug|force|temperature|depth"
    r"|recency\w*|strict|fuzzy|exact|lang|language|locale|headers?|flags?|options?|mode|format|follow\w*|sort"
    r"|order(_by)?|safe\w*)$",
    re.IGNORECASE,
)
_PAGE_KEY: Final = re.compile(
    r"^(page|offset|start|skip|cursor|page_?(no|num|number|token|index))$", re.IGNORECASE
)
# Times under these choose what is looked at, and random values under these name an item: both are kept.
_WINDOW_KEY: Final = re.compile(
    r"^(since|until|from|to|start|end|before|after|day|date|month|week|window)(_|$)", re.IGNORECASE
)
_ITEM_KEY: Final = re.compile(
    r"ids?$|^(sha|commit|rev|revision|hash|digest|file|path|name|url|uri|key)s?$", re.IGNORECASE
)
# A quantity or a range, not a day: 512, 0.5, 1:50, 3-4, "1,20p".
_SIZE: Final = re.compile(r"(?!\d{4}-\d\d)-?\d[\d.,:;-]{0,20}[a-z%]{0,3}$", re.IGNORECASE)
_THING: Final = re.compile(r"[/\\@.\d]")
_NUMBER: Final = re.compile(r"\d{1,18}")
# Tools that only think: their input is read as reasoning.
_THINKING: Final = frozenset(
    ("think", "thinking", "thought", "reflect", "reflection", "plan", "planning", "scratchpad", "reason")
)

_VOLATILE, _OPTION, _PAGE, _WINDOW, _ITEM, _OTHER = range(6)
_kinds: dict[str, int] = {}


class Fact(msgspec.Struct, frozen=True, gc=False):
    print: int
    words: int
    marks: int
    is_barren: bool


class Step(msgspec.Struct, frozen=True, gc=False):
    """The prints of one step. `call` and `outcome` are equal when two steps are the same in substance."""

    tool: str | None
    status: str
    call: int  # tool and input, nothing volatile
    input_words: int  # the input's running text
    items: int  # what in the input names one item: short values, paths, numbers, names
    pages: int  # values under paging keys, which move on by themselves
    asked: int  # the input without its quantities: words, and single values however they are spelt
    values: int  # the single values among them
    named: int  # what in the input is named like a thing of its own: paths, addresses, ids
    sizes: int  # its quantities: plain numbers and ranges that name no item
    scale: float  # the first of them
    text: int  # intent and reasoning
    marks: int  # what in the intent names one item
    outcome: int  # status and output
    output_words: int
    output_names: int  # what the output speaks of
    numbers: tuple[float, ...]  # of the output, in order
    is_barren: bool  # failed, or brought nothing
    is_past_end: bool  # the output says that there are no further pages
    facts: tuple[Fact, ...]


def step_of(log: DecisionLog | None, envelope: Envelope | None) -> Step | None:
    """None for what is no step of work: a heartbeat, an alert, a shredded message."""
    if log is not None:
        action, thought = log.action, log.cognition
        return prints(
            thought.intent if thought else None,
            thought.reasoning_chain if thought else None,
            action.tool_call,
            action.tool_input,
            action.tool_output_summary,
            action.status,
            log.state_delta.added_to_memory if log.state_delta else None,
        )
    if envelope is not None and isinstance(envelope.payload, Text):
        return prints(envelope.payload.content, None, None, None, None, "success", None)
    return None


def prints(
    intent: str | None,
    reasoning: list[str] | None,
    tool: str | None,
    tool_input: str | None,
    output: str | None,
    status: str,
    facts: list[str] | None,
) -> Step:
    said = read(intent[:INTENT_CHARS]) if intent else NOTHING
    text = said.words
    if reasoning:
        first = (
            reasoning[0] if len(reasoning) == 1 else " ".join(line[:REASON_CHARS] for line in reasoning[:8])
        )
        text |= read(first[:REASON_CHARS]).words
    gist = _Gist()
    if tool and tool_input:
        gist.read(tool_input)
        if tool.lower() in _THINKING:
            tool, text = None, text | gist.words
    if output and len(output) > OUTPUT_CHARS:
        output = f"{output[: OUTPUT_CHARS - 120]} {output[-120:]}"
    seen = read(output) if output else NOTHING
    if not tool:
        text |= seen.words
    failed = status in ("failure", "skipped")
    gist.kept.sort()
    return Step(
        tool or None,
        status,
        _crc("\x1f".join((tool.lower() if tool else "", *gist.kept))),
        gist.words,
        gist.items,
        gist.pages,
        gist.values | gist.words,
        gist.values,
        gist.named,
        gist.sizes,
        gist.scale,
        text,
        said.marks,
        _crc(f"{status}\x1f{seen.plain}"),
        seen.words,
        seen.names,
        seen.numbers,
        failed or (output is not None and seen.is_barren),
        not failed and output is not None and seen.is_end,
        tuple([_fact(fact) for fact in facts[:FACTS]]) if facts else (),
    )


def _crc(text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"))


def _fact(fact: str) -> Fact:
    said = read(fact[:FACT_CHARS])
    return Fact(_crc(said.plain), said.words, said.marks | said.names, said.is_barren)


class _Gist:
    """What an input asks for: kept values, its words, its items."""

    __slots__ = ("items", "kept", "left", "named", "pages", "scale", "sizes", "values", "words")

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.words = self.items = self.pages = self.values = self.named = self.sizes = 0
        self.scale = 0.0
        self.left = INPUT_WORDS

    def read(self, tool_input: str) -> None:
        if len(tool_input) > INPUT_CHARS:
            # Too long to be taken apart: its beginning, middle and end stand for it.
            middle = len(tool_input) // 2
            for cut in (tool_input[middle : middle + 100], tool_input[-100:]):
                self.kept.append(masked(cut))
            self.take("", tool_input[:400])
            return
        value = _within(tool_input)
        self.walk("", tool_input if value is None else value, 0)

    def walk(self, key: str, value: Any, depth: int) -> None:
        if isinstance(value, str):
            inner = _within(value) if value[:1] in ("{", "[") and depth < 6 else None
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
            # The rest is not understood, but another rest is another call.
            self.kept.append(str(_crc(text[:INPUT_CHARS])))
            return
        kind = _kind(key)
        self.left -= 1
        if " " in text or "\n" in text:
            said = read(text)
            self.left -= len(text) >> 3
            # Beyond the words that are read, the letters count.
            self.kept.append(f"{key}={said.plain}" if len(text) < 300 else f"{key}={said.plain}{_crc(text)}")
            if kind != _OPTION:
                self.words |= said.words
                self.items |= said.marks | said.names
                self.named |= said.things
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
                value = bit(spelt(plain))
                self.values |= value
                if kind == _ITEM or _THING.search(plain):
                    self.named |= value
        self.kept.append(f"{key}={plain.lower()}")

    def measure(self, text: str) -> None:
        self.sizes |= bit(text)
        if not self.scale:
            number = _NUMBER.search(text)
            self.scale = float(number[0]) if number else 0.0


def _within(text: str) -> Any:
    """What JSON as text holds; None if it is none."""
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

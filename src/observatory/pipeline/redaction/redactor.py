"""Redaction: a message is rewritten before it is archived and hashed (ruling 39, rules S440–S448).

Law: members the record depends on (ids, times, senders, enumerated values) are never touched; all other text
is, also in keys of free objects and in JSON that is embedded as text. Replaced text is marked with its kind
and eight digits of a keyed hash, so that equal text stays equal and cannot be guessed from outside. The same
message under the same rules gives the same bytes; redacted text is not redacted again. The work is bounded by
counts, never by a clock: text beyond the bound is replaced whole, unread.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from observatory.pipeline.redaction.kinds import FINDERS, Finder, Span, is_secret_name
from observatory.pipeline.redaction.patterns import cost_of, has_ends
from observatory.pipeline.redaction.places import KNOWN_KEYS, RedactionPlaces, places_of
from observatory.protocol.redaction import KINDS, RedactionRule, RedactionRules

# Steps that the tenant's own patterns may take over one message, in characters times ways.
EFFORT: Final = 40_000_000
MAX_IN_ONE: Final = 5_000  # matches in one text; beyond, it is replaced whole
ROUNDS: Final = 5  # at most, until nothing is found any more
NESTED: Final = 32  # levels of embedded JSON
DEEP: Final = 4  # JSON inside text inside JSON
_DONE: Final = re.compile(r"\[redacted:[a-z0-9_.-]{1,32}:[0-9a-f]{8}\]")
_ALL_DONE: Final = re.compile(rf'"{_DONE.pattern}"|{_DONE.pattern}')
_SMALL: Final = 10**11  # smaller numbers are not card numbers
Path = tuple[str, ...]


class Replaced(NamedTuple):
    """What was replaced at one place, and how often."""

    path: str
    kind: str
    times: int


class AppliedRedaction(NamedTuple):
    raw: bytes
    replaced: tuple[Replaced, ...]

    @property
    def total(self) -> int:
        return sum(one.times for one in self.replaced)


class Redactor:
    """One set of rules with the tenant's secret; keeps nothing of any message."""

    def __init__(self, rules: Iterable[RedactionRule], secret: str) -> None:
        self._secret = bytes.fromhex(secret)
        known = sorted(rules, key=lambda rule: list(KINDS).index(rule.name) if rule.name in KINDS else 99)
        self.kinds = [(rule.name, FINDERS[rule.name]) for rule in known if rule.type == "builtin"]
        self.patterns = [
            (rule.name, re.compile(rule.pattern), cost_of(rule.pattern))
            for rule in known
            if rule.type == "pattern" and rule.pattern is not None
        ]
        self.fields = [
            (steps_of(rule.path), rule.name) for rule in known if rule.type == "field" and rule.path
        ]
        self.by_name = any(name == "password" for name, _ in self.kinds)
        self.effort = sum(cost for _, _, cost in self.patterns)

    def apply(self, raw: bytes) -> AppliedRedaction | None:
        """The message as it may be stored; None when nothing in it is replaced."""
        found: Counter[tuple[str, str]] = Counter()
        # Text next to a replaced secret stands alone in the next round, and may be a secret too.
        for _ in range(ROUNDS):
            made = self._round(raw, found)
            if made is None:
                break
            raw = made
        if not found:
            return None
        return AppliedRedaction(
            raw, tuple(Replaced(path, kind, times) for (path, kind), times in found.items())
        )

    def _round(self, raw: bytes, found: Counter[tuple[str, str]]) -> bytes | None:
        message = msgspec.json.decode(raw)
        texts: list[str] = []
        named = self._collect(message, texts, 0)
        finders = self._matching_finders("\n".join(texts))
        if not finders and not named and not self.fields:
            return None
        walk = _Walk(self, finders, places_of(message))
        value = walk.value((), message, None, False, 0)
        found.update(walk.found)
        return msgspec.json.encode(value) if walk.found else None

    def _collect(self, value: Any, texts: list[str], depth: int) -> bool:
        """Collects all text, including embedded JSON; returns whether a member has a secret's name."""
        if isinstance(value, str):
            inner = _json(value) if depth < DEEP and value[:1] in ("{", "[") else None
            if inner is not None:
                return self._collect(inner, texts, depth + 1)
            texts.append(value)
            return False
        named = False
        if isinstance(value, dict):
            for key, one in value.items():
                if key not in KNOWN_KEYS:
                    texts.append(key)
                    named = named or (self.by_name and is_secret_name(key))
                if self._collect(one, texts, depth):
                    named = True
        elif isinstance(value, list):
            for one in value:
                named = self._collect(one, texts, depth) or named
        elif isinstance(value, int) and value >= _SMALL:
            texts.append(str(value))
        return named

    def _matching_finders(self, text: str) -> list[tuple[str, Finder]]:
        """The finders that match anything in all text at once: most messages match none."""
        low = text.lower()
        finders = [
            (name, kind.find)
            for name, kind in self.kinds
            if any(hint in low for hint in kind.hints) and next(kind.find(text), None) is not None
        ]
        # Beyond the effort, and for tests of a text's start or end, each text must be searched by itself.
        at_once = self.effort * len(text) <= EFFORT
        finders += [
            (name, _finder(pattern))
            for name, pattern, _ in self.patterns
            if not at_once or has_ends(pattern.pattern) or pattern.search(text) is not None
        ]
        return finders

    def mark(self, kind: str, text: str) -> str:
        digest = hmac.digest(self._secret, f"{kind}\0{text}".encode(errors="surrogatepass"), "sha256")
        return f"[redacted:{kind}:{digest[:4].hex()}]"


class _Walk:
    """Rewrites one message."""

    def __init__(self, rules: Redactor, finders: list[tuple[str, Finder]], places: RedactionPlaces) -> None:
        self._rules, self._finders, self._places = rules, finders, places
        self._left = EFFORT
        self.found: list[tuple[str, str]] = []

    def value(self, path: Path, value: Any, whole: str | None, free: bool, depth: int) -> Any:
        """`whole`: the kind that a rule gives everything below; `free`: no schema describes this value."""
        if whole is None:
            whole = self._field(path)
        if isinstance(value, str):
            return value if path in self._places.kept else self._text(path, value, whole, depth)
        if isinstance(value, dict):
            return self._members(path, value, whole, free or path in self._places.free, depth)
        if isinstance(value, list):
            return [self.value((*path, "*"), one, whole, free, depth) for one in value]
        if not free or value is None:
            return value
        if whole is not None:
            return self._note(path, whole, msgspec.json.encode(value).decode())
        if isinstance(value, int) and value >= _SMALL:
            redacted = self._text(path, str(value), None, DEEP)
            return value if redacted == str(value) else redacted
        return value

    def _members(self, path: Path, value: dict[str, Any], whole: str | None, free: bool, depth: int) -> Any:
        made: dict[str, Any] = {}
        for key, one in value.items():
            known = key in KNOWN_KEYS
            # Members that the schema does not name are free, whatever their content.
            loose = free or not known
            named = "password" if loose and self._rules.by_name and is_secret_name(key) else None
            name = key if known else self._text((*path, "*"), key, None, DEEP)
            while name in made:  # two keys that become equal: neither may be lost
                name += "~"
            made[name] = self.value((*path, key), one, whole or named, loose, depth)
        return made

    def _field(self, path: Path) -> str | None:
        for steps, name in self._rules.fields:
            if len(steps) == len(path) and all(a in (b, "*") for a, b in zip(steps, path, strict=True)):
                return name
        return None

    def _text(self, path: Path, text: str, whole: str | None, depth: int) -> str:
        if not text:
            return text
        if whole is not None and _ALL_DONE.fullmatch(text):
            return text
        inner = _json(text) if depth < DEEP and text[0] in "{[" else None
        if whole is not None:  # JSON stays JSON: one string
            mark = self._note(path, whole, text)
            return mark if inner is None else f'"{mark}"'
        if inner is None:
            return self._spans(path, text)
        # Parsed as JSON, because an escape could hide where a word begins.
        before = len(self.found)
        made = self.value(path, inner, None, True, depth + 1)
        return text if len(self.found) == before else msgspec.json.encode(made).decode()

    def _spans(self, path: Path, text: str) -> str:
        if self._rules.effort:
            self._left -= self._rules.effort * len(text)
            if self._left < 0:
                return self._note(path, "unread", text)
        spans: list[tuple[int, int, str]] = []
        for kind, finder in self._finders:
            _append_spans(spans, kind, finder(text))
        if not spans:
            return text
        if len(spans) > MAX_IN_ONE:
            return self._note(path, "many", text)
        done = [found.span() for found in _DONE.finditer(text)] if "[redacted:" in text else []
        parts, at = [], 0
        # Where two overlap the longer says more; of equals the rule that comes first.
        for start, end, kind in sorted(spans, key=lambda one: (one[0], -one[1])):
            if start < at or any(first < end and start < last for first, last in done):
                continue
            parts += [text[at:start], self._note(path, kind, text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def _note(self, path: Path, kind: str, text: str) -> str:
        self.found.append((".".join(path), kind))
        return self._rules.mark(kind, text)


def _json(text: str) -> Any:
    """The object or list in this text; None when it is not JSON."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and _is_shallow(value, 0) else None


def _is_shallow(value: Any, level: int) -> bool:
    """Deeper nesting is treated as plain text, so that the recursion here is bounded."""
    if isinstance(value, dict):
        return level < NESTED and all(_is_shallow(one, level + 1) for one in value.values())
    if isinstance(value, list):
        return level < NESTED and all(_is_shallow(one, level + 1) for one in value)
    return True


def _finder(pattern: re.Pattern[str]) -> Finder:
    def find(text: str) -> Iterator[Span]:
        for found in pattern.finditer(text):
            yield found.span()

    return find


def _append_spans(spans: list[tuple[int, int, str]], kind: str, found: Iterator[Span]) -> None:
    for start, end in found:
        spans.append((start, end, kind))
        if len(spans) > MAX_IN_ONE:
            return


def steps_of(path: str) -> Path:
    """A leading `$.` is the message itself, and optional."""
    return tuple(path.removeprefix("$.").split("."))


@lru_cache(maxsize=64)
def redactor(rules: tuple[RedactionRule, ...], secret: str) -> Redactor:
    return Redactor(rules, secret)


def digests_before(book: RedactionRules, sent: bytes, since_ns: int = 0) -> list[bytes]:
    """A message's digests under the rules of the last versions, so that a repeat is recognized."""
    found = []
    for rules in book.sets_before(since_ns):
        applied = redactor(rules, book.secret).apply(sent) if rules else None
        found.append(sha256(sent if applied is None else applied.raw).digest())
    return list(dict.fromkeys(found))

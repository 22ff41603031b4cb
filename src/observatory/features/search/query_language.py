"""The query language: parses words, phrases, meaning, filters and times from one line (S272, S273, S660).

Law: every input is parsed as well as possible and never refused; what could not be parsed is reported in
`warnings`, with its position in `problems`. Words leave here only as letters and digits
(features/search/words.py), values only as bound values: no part of a query is ever part of a statement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from observatory.features.search.types_query import Clause, Operator
from observatory.features.search.words import words_of
from observatory.protocol.envelope import BY_TYPE
from observatory.store.search_query import Term, WordQuery

LONGEST = 4_096  # characters of a query
MAX_TERMS = 32
MAX_WARNINGS = 20
NAMES: Final = ("agent", "session", "type", "state", "status", "tool", "cluster")
FIGURES: Final = ("entropy", "cost", "confidence", "tokens")
TIMES: Final = ("since", "until")
KNOWN: Final = {"type": ("decision_log", *BY_TYPE), "state": ("forwarded", "held", "rejected", "refused")}
ALIASES: Final = {"from": "since", "after": "since", "before": "until", "to": "until", "message_type": "type"}
UNITS: Final = {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
QUOTES: Final = {'"': '"', "“": "”", "„": "“", "«": "»"}
LARGEST: Final = (1 << 63) - 1
LATEST_NS: Final = 9_183_110_400_000_000_000  # 2261-01-01: the latest time the clock module can represent
_duration = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|min|m|h|d|w)", re.ASCII).fullmatch
_figure = re.compile(r"(<=|>=|<|>|=|)(.+)", re.DOTALL).fullmatch
_key = re.compile(r"([A-Za-z_]{1,32}):").match


class QueryProblem(NamedTuple):
    """A part of the query that was not read as typed: its first and last character, and what to do."""

    start: int
    end: int
    sentence: str


class SearchQuery(msgspec.Struct, frozen=True):
    """A parsed query."""

    wanted: WordQuery = WordQuery()
    meaning: tuple[str, ...] = ()  # text marked with ~
    said: tuple[str, ...] = ()  # plain words and phrases as typed: also compared by similarity
    phrases: tuple[Term, ...] = ()  # in quotes: every hit must contain them
    clauses: tuple[Clause, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    warnings: tuple[str, ...] = ()
    problems: tuple[QueryProblem, ...] = ()  # the warnings that have a position
    lost: bool = False  # the query is not empty, but none of it could be parsed

    @property
    def has_words(self) -> bool:
        return bool(self.wanted.every)

    @property
    def likeness(self) -> str:
        """The text that is compared by similarity."""
        return " ".join(self.meaning or self.said)


class QueryPiece(NamedTuple):
    sign: str  # "", "-" or "~"
    key: str
    text: str
    quoted: bool
    start: int = 0
    end: int = 0
    open: int | None = None  # position of a quote that is never closed


def parse(text: str, now_ns: int) -> SearchQuery:
    return _Parser(now_ns).read(text)


def pieces(text: str) -> Iterator[QueryPiece]:
    """Split at spaces; quoted text stays together, and an unclosed quote extends to the end."""
    at, size = 0, len(text)
    while at < size:
        if text[at].isspace():
            at += 1
            continue
        sign, start = "", at
        if text[at] in "-~!−" and at + 1 < size and not text[at + 1].isspace():
            sign = "~" if text[at] == "~" else "-"
            at += 1
        match = _key(text, at)
        key = match[1].lower() if match else ""
        if match:
            at = match.end()
        if at < size and text[at] in QUOTES:
            closing = QUOTES[text[at]]
            end, opened = text.find(closing, at + 1), at
            unclosed = end < 0
            end = size if unclosed else end
            stop = min(size, end + 1)
            yield QueryPiece(sign, key, text[at + 1 : end], True, start, stop, opened if unclosed else None)
            at = end + 1
        else:
            end = at
            while end < size and not text[end].isspace():
                end += 1
            yield QueryPiece(sign, key, text[at:end], False, start, end)
            at = end


class _Parser:
    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._groups: list[list[Term]] = []
        self._none: list[Term] = []
        self._meaning: list[str] = []
        self._said: list[str] = []
        self._phrases: list[Term] = []
        self._clauses: list[Clause] = []
        self._times: dict[str, int] = {}
        self._warnings: list[str] = []
        self._problems: list[QueryProblem] = []
        self._at: tuple[int, int] | None = None  # position of the current piece
        self._or = False
        self._not = False
        self._lost = False

    def read(self, text: str) -> SearchQuery:
        text = text.encode("utf-8", "replace").decode().replace("\0", " ")
        if len(text) > LONGEST:
            text = text[:LONGEST]
            self._at = (LONGEST - 1, LONGEST)
            self._warn(f"only the first {LONGEST:,} characters were read")
        for piece in pieces(text):
            self._at = (piece.start, piece.end)
            if piece.open is not None:  # read to the end, so nothing is lost
                self._note("this quote is not closed; it was read to the end", piece.open, piece.open + 1)
            self._take(piece)
        if self._or:
            self._warn("OR at the end joins nothing")
        if self._not:
            self._warn("NOT at the end excludes nothing")
        return SearchQuery(
            WordQuery(tuple(map(tuple, self._groups)), tuple(self._none)),
            tuple(self._meaning),
            tuple(self._said),
            tuple(self._phrases),
            tuple(self._clauses),
            self._times.get("since"),
            self._times.get("until"),
            tuple(self._warnings[:MAX_WARNINGS]),
            tuple(self._problems[:MAX_WARNINGS]),
            self._lost and not (self._groups or self._none or self._meaning or self._clauses or self._times),
        )

    def _warn(self, sentence: str) -> None:
        self._lost = True
        start, end = self._at or (0, 0)
        self._note(sentence, start, end)

    def _note(self, sentence: str, start: int, end: int) -> None:
        if sentence not in self._warnings:
            self._warnings.append(sentence)
        if end > start and len(self._problems) < MAX_WARNINGS:
            self._problems.append(QueryProblem(start, end, sentence))

    def _take(self, piece: QueryPiece) -> None:
        bare = not (piece.quoted or piece.key or piece.sign)
        if bare and piece.text in ("OR", "|", "||"):
            self._or = bool(self._groups)
            if not self._or:
                self._warn("OR at the beginning joins nothing")
        elif bare and piece.text == "NOT":
            self._not = True
        elif not (bare and piece.text in ("AND", "&", "&&")):
            if self._not:
                piece, self._not = piece._replace(sign="-"), False
            self._put(piece)

    def _put(self, piece: QueryPiece) -> None:
        key = ALIASES.get(piece.key, piece.key)
        if piece.sign == "~":
            self._mean(piece)
        elif key in NAMES:
            self._name(key, piece)
        elif key in FIGURES:
            self._number(key, piece)
        elif key in TIMES:
            self._time(key, piece)
        else:
            if key and not piece.text.startswith("//"):
                self._warn(f"{key}: is not a filter; it was searched as words")
            self._word(piece)

    def _mean(self, piece: QueryPiece) -> None:
        text = f"{piece.key} {piece.text}" if piece.key else piece.text
        if words_of(text):
            self._meaning.append(text)
        else:
            self._warn(f"~{_short(text)} contains no word")

    def _word(self, piece: QueryPiece) -> None:
        if not piece.quoted and any(letter in piece.text for letter in "()"):
            self._warn("brackets are not supported; join words with OR, exclude words with -")
        text = f"{piece.key} {piece.text}" if piece.key else piece.text
        words = tuple(words_of(text))
        if not words:
            if text.strip("()"):
                self._warn(f"{_short(text)} contains no word and was ignored")
            return
        if len(self._none) + sum(map(len, self._groups)) >= MAX_TERMS:
            self._warn(f"only the first {MAX_TERMS} words were searched")
            return
        term = Term(words, not piece.quoted and text.endswith("*") and len(text) > 1)
        if piece.sign == "-":
            self._none.append(term)
            return
        self._said.append(text)
        if self._or:
            self._groups[-1].append(term)
            self._or = False
            # Any one of an OR group is enough, so none of them is required.
            self._phrases = [one for one in self._phrases if one not in self._groups[-1]]
        else:
            self._groups.append([term])
            if piece.quoted:
                self._phrases.append(term)

    def _name(self, key: str, piece: QueryPiece) -> None:
        values = [piece.text] if piece.quoted else piece.text.split(",")
        names = tuple(value for value in values if value)
        if not names:
            self._warn(f"{key}: has no value and was ignored")
            return
        for value in names:
            if key in KNOWN and value not in KNOWN[key]:
                self._warn(f"{key}:{_short(value)} is not one of {', '.join(KNOWN[key])}")
        self._clauses.append(Clause(key, names, "in", piece.sign == "-"))

    def _number(self, key: str, piece: QueryPiece) -> None:
        low, dots, high = piece.text.partition("..")
        bounds = [(">=", low), ("<=", high)] if dots else [_split(piece.text)]
        clauses: list[Clause] = []
        for op, text in bounds:
            value = _value(text)
            if value is None:
                self._warn(
                    f"{key}:{_short(piece.text)} is not a number; write {key}:<0.5, {key}:>=2 or {key}:1..3"
                )
                return
            if op == "=":
                clauses += [self._figure(key, ">=", value), self._figure(key, "<=", value)]
            else:
                clauses.append(self._figure(key, op, value))
        if piece.sign == "-" and len(clauses) > 1:
            self._warn(f"-{key}: with two bounds is not supported; write the range you want")
            return
        self._clauses += [msgspec.structs.replace(one, negated=piece.sign == "-") for one in clauses]

    def _figure(self, key: str, op: Any, value: float) -> Clause:
        bound: Operator = op
        if key != "tokens":
            return Clause(key, (value,), bound)
        whole = math.floor(value) if op in ("<=", ">") else math.ceil(value)
        return Clause(key, (max(-LARGEST, min(LARGEST, whole)),), bound)

    def _time(self, key: str, piece: QueryPiece) -> None:
        at_ns = time_of(piece.text, self._now_ns)
        if piece.sign == "-":
            self._warn(f"-{key}: is not supported; use {'until' if key == 'since' else 'since'}:")
        elif at_ns is None:
            self._warn(
                f"{key}:{_short(piece.text)} is not a time; write 1h, 2d, 2026-11-16 or 2026-11-16T09:30Z"
            )
        elif key in self._times:
            self._warn(f"{key}: is given twice; the first one is used")
        else:
            self._times[key] = at_ns


def _split(text: str) -> tuple[str, str]:
    match = _figure(text)
    return (match[1] or "=", match[2]) if match else ("=", "")


def _value(text: str) -> float | None:
    try:
        value = float(text.strip().removeprefix("$"))
    except ValueError:
        return None
    return value if math.isfinite(value) and text.isascii() and "_" not in text else None


def time_of(text: str, now_ns: int) -> int | None:
    """A duration back from now, a day or a time; without a zone it is UTC."""
    match = _duration(text.lower())
    if match:
        return max(0, now_ns - int(float(match[1]) * UNITS[match[2]] * 1_000_000_000))
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    days = {"now": None, "today": 0, "yesterday": 1}
    if text.lower() in days:
        back = days[text.lower()]
        if back is None:
            return now_ns
        day = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=back)
        return int(day.timestamp()) * 1_000_000_000
    try:
        at = datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0, min(LATEST_NS, round(at.timestamp() * 1e6) * 1_000))
    except (ValueError, OverflowError):
        return None


def _short(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return printable if len(printable) <= 40 else printable[:40] + "…"

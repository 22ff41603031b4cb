"""Reads a fact as a belief: its subject and the value it states (rules S255–S256).

Conservative: only texts of a plain form are read (`X is Y`, `X = Y`, `X: Y`, `X ends Y`, one JSON pair), and
only values that can be compared: numbers with their unit, dates, yes or no, short names. Hedged or negated
statements are no beliefs. Everything else stays a fact without a subject and takes no part in drift. Pure.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

from observatory.features.facts.claims import canonical, key_of, words_of
from observatory.features.facts.lexicon import DENIAL, MONTHS, listed

LONGEST: Final = 300  # characters; longer texts are not plain statements
MAX_SUBJECT, MAX_VALUE = 10, 4  # words
_VERBS: Final = (
    "ends|ended|starts|started|begins|began|expires|expired|opens|opened|closes|closed|costs|cost|totals|"
    "totalled|equals|is|are|was|were|="
)
_FORM: Final = re.compile(
    rf"^(?P<subject>.{{1,160}}?)\s*(?:\s(?P<verb>{_VERBS})\s|(?P<sign>[=:])\s*)(?P<value>.+)$"
)
_COPULA: Final = frozenset({"is", "are", "was", "were", "equals", "=", None})
_VAGUE: Final = frozenset(
    listed(
        "it this that he she they we i you there here what which who everything something nothing someone "
        "note todo warning error info summary result output http https"
    )
)
_HEDGE: Final = frozenset(
    listed(
        "maybe perhaps possibly probably might could may should would allegedly if unless about roughly "
        "approximately around almost nearly likely estimated expected assume assumed either or"
    )
)
_TRUTH: Final = {
    word: truth
    for truth, group in (
        ("true", "true yes enabled on up active open available"),
        ("false", "false no disabled off down inactive closed unavailable"),
    )
    for word in group.split()
}
_UNSURE: Final = _HEDGE | (DENIAL - _TRUTH.keys())
_ISO: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_LEAD: Final = re.compile(r"^(?:on|at|in|to|by|the|a|an|equal to|exactly|now|currently)\s+", re.IGNORECASE)
_FUNCTION: Final = re.compile(r"(?:^(?:the|our)\s)|(?:\sof\s)|(?:['’]s\s)", re.IGNORECASE)


class Belief(NamedTuple):
    subject_key: int
    subject: str  # as stated, shortened
    value: str  # canonical: two beliefs agree when these are compatible


def belief_of(text: str) -> Belief | None:
    parts = _form(text)
    if parts is None:
        return None
    subject, verb, value, named = parts
    about = words_of(subject)
    if not 1 <= len(about) <= MAX_SUBJECT or about[0] in _VAGUE or _is_unsure(about):
        return None
    found = value_of(value, named)
    if found is None:
        return None
    subject_words = about if verb in _COPULA else [*about, *words_of(verb or "")]
    stems = sorted({part for word in subject_words for part in canonical(word)})
    if not stems or all(part[0] == "#" for part in stems):
        return None
    return Belief(key_of(" ".join(stems)), " ".join(subject_words)[:200], found)


def value_in(text: str) -> str | None:
    """The value part of a fact's text."""
    parts = _form(text)
    return None if parts is None else _without_lead(parts[2])


def _form(text: str) -> tuple[str, str | None, str, bool] | None:
    """Subject, verb, value, and whether the subject is a name, of a plain statement."""
    if len(text) > LONGEST:
        return None
    pair = _json(text) if text[:1] == "{" else None
    if pair is not None:
        return pair[0], None, pair[1], True
    match = _FORM.match(text.strip().rstrip(".!"))
    if match is None:
        return None
    subject, verb, sign, value = match.group("subject", "verb", "sign", "value")
    subject = subject.strip()
    named = sign is not None or verb == "=" or _FUNCTION.search(subject + " ") is not None
    return subject, verb, value.strip(), named and verb in _COPULA


def _without_lead(text: str) -> str:
    """Without the small words before it."""
    while (shorter := _LEAD.sub("", text.strip())) != text:
        text = shorter
    return text


def subject_key(subject: str) -> int:
    """The key of a subject as an operator writes it."""
    return key_of(" ".join(sorted({part for word in words_of(subject) for part in canonical(word)})))


def value_of(text: str, named: bool = True) -> str | None:
    """A value in canonical form, or None when it cannot be compared."""
    text = _without_lead(text)
    words = words_of(text)
    if not words or _is_unsure(words):
        return None
    iso = _ISO.fullmatch(text.strip().rstrip("."))
    if iso is not None:
        return _date(int(iso[1]), int(iso[2]), int(iso[3]))
    if len(words) == 1 and words[0] in _TRUTH:
        return f"is:{_TRUTH[words[0]]}"
    parts = [part for word in words for part in canonical(word)]
    numbers = [part[1:] for part in parts if part[0] == "#"]
    months = [part for part in parts if part in MONTHS]
    others = [part for part in parts if part[0] != "#" and part not in MONTHS]
    if months:
        return _calendar(numbers, months, others)
    if numbers:
        # One number and its unit; more is a sentence.
        plain = text.lower()
        unit = "".join(f" {part}" for part in others)
        currency = next((name for sign, name in (("€", " eur"), ("£", " gbp")) if sign in plain), "")
        return f"number:{numbers[0]}{unit}{currency}" if len(numbers) == 1 and len(others) <= 2 else None
    if named and 1 <= len(parts) <= MAX_VALUE:
        return "name:" + " ".join(parts)
    return None


def compatible(left: str, right: str) -> bool:
    """Whether two values can both be true: equal, or a day with and without its year."""
    if left == right:
        return True
    if left[:5] == right[:5] == "date:":
        return left[-6:] == right[-6:] and "date:-" in (left[:6], right[:6])
    return False


def _calendar(numbers: list[str], months: list[str], others: list[str]) -> str | None:
    if len(months) != 1 or others or len(numbers) > 2:
        return None
    days = [int(number) for number in numbers if number.isdigit() and len(number) <= 2]
    years = [int(number) for number in numbers if number.isdigit() and len(number) == 4]
    if len(days) + len(years) != len(numbers) or len(days) > 1 or len(years) > 1:
        return None
    month = MONTHS.index(months[0]) + 1
    if not days:
        return f"month:{years[0] if years else ''}-{month:02d}"
    return _date(years[0] if years else None, month, days[0])


def _date(year: int | None, month: int, day: int) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"date:{year or '-'}-{month:02d}-{day:02d}"


def _is_unsure(words: list[str]) -> bool:
    if words[0] in ("not", "never") or not _UNSURE.isdisjoint(words):
        return True
    return any(word[-1] == "t" and word.endswith(("n't", "n’t")) for word in words)


def _json(text: str) -> tuple[str, str] | None:
    """The one pair of an object; `{"key": …, "value": …}` is read as such."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if len(found) == 2 and "value" in found:
        other = next(name for name in found if name != "value")
        found = {str(found[other]): found["value"]} if other in ("key", "name", "subject") else found
    if len(found) != 1:
        return None
    ((name, value),) = found.items()
    if isinstance(value, bool):
        return name.replace("_", " "), "true" if value else "false"
    return (name.replace("_", " "), str(value)) if isinstance(value, str | int | float) else None

"""Finders of the built-in kinds of text that can be redacted.

Law: each takes time in proportion to the text, whatever is in it: it begins at a letter or word that must be
present, and what follows that is bounded. A finder yields the spans it would replace, and knows nothing of
rules or places. It may find too much; it must not find too little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

Span = tuple[int, int]
Finder = Callable[[str], Iterator[Span]]

# No letter or digit before it, unless that ends an escaped control character of text inside text.
_APART: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# Its own letters may not stand before it: in a long run, every position would be searched from.
_JWT: Final = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{4,65536}\.[A-Za-z0-9_-]{0,8192}"
)
_BEARER: Final = re.compile(
    r"(?i:bearer\s{1,3}|authorization[\"']{0,2}\s{0,3}[:=]\s{0,3}[\"']{0,2}(?:basic|token)\s{1,3})"
    r"([A-Za-z0-9._~+/=-]{12,4096})"
)
_AWS: Final = re.compile(
    _APART + r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|(?i:secret_?access_?key|aws_?secret)[\"']{0,2}\s{0,3}[:=]\s{0,3}[\"']{0,2}([A-Za-z0-9/+]{40})"
)
_API: Final = re.compile(
    _APART + r"(?:sk-[A-Za-z0-9_-]{16,512}|(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,512}"
    r"|gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{16,64}"
    r"|xox[a-z]-[A-Za-z0-9-]{10,255}|AIza[A-Za-z0-9_-]{30,64}|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}"
    r"|npm_[A-Za-z0-9]{30,64}|pypi-[A-Za-z0-9_-]{16,255}|hf_[A-Za-z0-9]{20,64}|obs_[A-Za-z0-9_-]{16,255})"
)
_SENSITIVE_WORD: Final = (
    r"(?i:pass(?:word|wd|phrase)|pwd|secret|(?:api|access|auth|client|private|secret)[_-]?(?:key|token|secret)"
    r"|token)"
)
_PASSWORD: Final = re.compile(
    _SENSITIVE_WORD + r"[\"'\\]{0,3}\s{0,3}[:=]\s{0,3}[\"'\\]{0,3}([^\s\"'\\,;&]{6,512})"
    r"|://[^\s/:@]{0,64}:([^\s/@]{1,256})@"
)
_SECRET_NAME: Final = re.compile(rf"(?:{_SENSITIVE_WORD}|(?i:authorization|credentials?|cookie))\Z")
# Card numbers begin with 2 to 6; a time in nanoseconds begins with 1.
_CARD: Final = re.compile(r"(?<![0-9])[2-6](?:[ -]?[0-9]){12,18}(?![0-9])")
_LOCAL: Final = frozenset(".!#$%&*+/?^_`|~-")
_DOMAIN: Final = re.compile(r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}\.){1,8}[A-Za-z]{2,24}")


def is_secret_name(name: str) -> bool:
    """Whether a member of an object, by its name, has a secret value."""
    return len(name) <= 64 and _SECRET_NAME.search(name) is not None


def private_key(text: str) -> Iterator[Span]:
    """Up to its last line; a truncated key, to the end of the text."""
    at = 0
    while "PRIVATE KEY" in text and (begin := _PEM.search(text, at)) is not None:
        end = _PEM_END.search(text, begin.end())
        at = len(text) if end is None else end.end()
        yield begin.start(), at


def email(text: str) -> Iterator[Span]:
    """From each @ to both sides: a pattern would try every letter of a long word as a start."""
    last, at = 0, text.find("@")
    while at >= 0:
        domain = _DOMAIN.match(text, at)
        start, lowest = at, max(last, at - 64)
        while start > lowest and (text[start - 1].isalnum() or text[start - 1] in _LOCAL):
            start -= 1
        if domain is not None and start < at:
            last = domain.end()
            yield start, last
        at = text.find("@", at + 1 if domain is None else max(at + 1, domain.end()))


def credit_card(text: str) -> Iterator[Span]:
    for found in _CARD.finditer(text):
        if _luhn([int(digit) for digit in found[0] if digit.isdigit()]):
            yield found.span()


def _luhn(digits: list[int]) -> bool:
    doubled = [2 * digit - 9 if digit > 4 else 2 * digit for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _by(pattern: re.Pattern[str]) -> Finder:
    """A finder of the pattern's one group, or of the whole match."""

    def find(text: str) -> Iterator[Span]:
        for found in pattern.finditer(text):
            yield found.span(found.lastindex or 0)

    return find


class BuiltinKind(NamedTuple):
    find: Finder
    # One of these, in lower case, is in every text in which there is something to find.
    hints: tuple[str, ...]


FINDERS: Final[dict[str, BuiltinKind]] = {
    "private_key": BuiltinKind(private_key, ("private key",)),
    "jwt": BuiltinKind(_by(_JWT), ("eyj",)),
    "bearer_token": BuiltinKind(_by(_BEARER), ("bearer", "authorization")),
    "aws_key": BuiltinKind(
        _by(_AWS), ("akia", "asia", "agpa", "aida", "aroa", "anpa", "secretaccess", "secret_access", "aws")
    ),
    "api_key": BuiltinKind(
        _by(_API),
        (
            "sk-", "sk_", "rk_", "pk_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_",
            "glpat-", "xox", "aiza", "sg.", "npm_", "pypi-", "hf_", "obs_",
        ),
    ),
    "password": BuiltinKind(_by(_PASSWORD), ("pass", "pwd", "secret", "key", "token", "://")),
    "credit_card": BuiltinKind(credit_card, ("2", "3", "4", "5", "6")),
    "email": BuiltinKind(email, ("@",)),
}  # fmt: skip

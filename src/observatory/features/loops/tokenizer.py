"""Text as the loop detector reads it: its words as bits, what names an item, and what is only noise.

Law: pure, the same in every process (no `hash()` of text), bounded in what is read. Whatever changes with
every call and means nothing (times, request ids, durations, counters of attempts) is masked; numbers and
names that distinguish one item from another are kept. Words are cut to five letters and kept as bits of one
integer, so that the likeness of two texts is two bit counts: no embeddings (rule S191).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from zlib import crc32

WORDS: Final = 48  # read from one text
_BITS: Final = 2_048
_CACHE_MAX: Final = 50_000
_MEMO_MAX: Final = 4_096
_MEMO_CHARS: Final = 300


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In words with a digit: times, ids, hashes, scratch files, cache-busting query parameters.
_NOISE: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?|\b\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\b"
    r"|(?<!/)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|\b(?:req|request|trace|span|corr|call|run|evt|nonce|inv|incident)[-_]?(?:id)?[-_#:=](?=[\w-]*\d)[\w-]{4,}"
    r"|(?<=[?&])(?:ts|t|_|nonce|cb|rand|request_?id|req|sig|token|v)=[^&\s\"']*"
    r"|/(?:tmp|temp)/[\w./-]+"
    r"|(?<![/\w])(?:0x)?(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b"
    r"|(?<![/\w])\d{9,}\b"
    r"|\b(?:attempts?|retry|retries|try|tries|round|pid)[:=#(]\d+(?:/\d+)?"
    r"|\b\d+(?:[.,]\d+)?(?:ms|µs|us|ns|s|secs?|min)\b",
    re.IGNORECASE,
)
_COUNTERS: Final = _words("""
    attempt attempts retry retries try tries time times versuch versuche tentative tentatives tentativa
    intento intentos trial iteration round backoff pid
""")
_UNITS: Final = _words("""
    ms s sec secs second seconds min mins minute minutes sekunden minuten segundos secondes
""")
_ID_WORDS: Final = _words("request req trace span correlation ref incident call id")
_OF: Final = _words("of von de sur /")
_PUNCTUATION: Final = ".,:;!?()[]{}\"'`<>*…"
_DIGIT: Final = re.compile(r"\d")
_NAMING: Final = re.compile(r"[/\\._=@#\d]")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_WORD: Final = re.compile(r"\w+")
_CJK: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]")
_BARREN_CJK: Final = re.compile("没有|失败|错误|未找到|无法|見つかり|失敗|エラー|없|실패")
# Nothing was found, done or changed: the call had no result, whatever its status. Five letters a word.
_BARREN: Final = _words("""
    no not none nothi empty canno error fail faile failu denie forbi unaut timeo timed refu refus unava
    inval missi unabl uncha still same rejec excep unkno isn doesn couldn didn won don null nil 0 400
    401 403 404 408 409 422 429 500 502 503 504 never kein keine nicht fehle fehlg aucun pas erreu échec
    sin ningú ningu nada nenhu falló fallo non nessu geen crash cras abort block stuck hang hung
""")
_END: Final = _words("empty more further past end range 0 no none")
_STOP: Final = _words("""
    a an and are as at be been but by can do for from had has have i if in into is it its let me my now
    of on or our s so t that the their them then there this to too up was we were what when which will
    with would you your again once more another try trying tried should need needs going go get still
    just also maybe perhaps must could shall der die das und ist ich zu ein eine le la les de et un une
    je que el los y en es
""")


class TokenizedText(NamedTuple):
    """One tokenized text."""

    plain: str  # its words, lower case, noise masked
    words: int  # as bits
    marks: int  # numbers, paths, addresses: what distinguishes one item from another
    names: int  # capitalized words within the text, paths, test cases: its subjects
    things: int  # the paths and addresses among the marks, in any spelling
    numbers: tuple[float, ...]
    is_barren: bool  # says that something failed, or that there is nothing
    is_end: bool  # says that nothing follows


NOTHING: Final = TokenizedText("", 0, 0, 0, 0, (), True, False)

_bits: dict[str, int] = {}
_cache: dict[str, TokenizedText] = {}


def bit(word: str) -> int:
    found = _bits.get(word)
    if found is None:
        if len(_bits) >= _CACHE_MAX:
            _bits.clear()
        found = _bits[word] = 1 << (crc32(word.encode("utf-8", "surrogatepass")) % _BITS)
    return found


def likeness(left: int, right: int) -> float:
    """Common words as a share of all words of both."""
    either = (left | right).bit_count()
    return (left & right).bit_count() / either if either else 1.0


def novelty(words: int, known: int) -> float:
    """The share of words that are not known."""
    return (words & ~known).bit_count() / words.bit_count() if words else 0.0


def masked(value: str) -> str:
    """A single value without parts that change from call to call."""
    return _NOISE.sub("*", value) if _DIGIT.search(value) else value


def normal_form(value: str) -> str:
    """A single value in a normal form: KX-9931, kx9931; src, src/; retry_policy, retryPolicy."""
    if not value.isalnum():
        value = value.replace("-", "").replace("_", "").replace("/", "").replace("(", "")
    return value.lower()


def tokenize(text: str) -> TokenizedText:
    """At most `WORDS` words; agents repeat themselves, so short texts are cached."""
    found = _cache.get(text)
    if found is None:
        found = _tokenize(text) if text else NOTHING
        if len(text) <= _MEMO_CHARS:
            if len(_cache) >= _MEMO_MAX:
                _cache.clear()
            _cache[text] = found
    return found


def clear_cache() -> None:
    """Clears the cache, for benchmarks."""
    _cache.clear()


def _tokenize(text: str) -> TokenizedText:
    raw = text.split(None, WORDS)[:WORDS]
    plain: list[str] = []
    short: list[str] = []  # five letters each
    words = marks = names = things = 0
    numbers: list[float] = []
    for place, whole in enumerate(raw):
        if whole.isalpha():
            if place and whole[0].isupper() and not whole.isupper():
                names |= _bits.get(whole) or bit(whole)
            low = whole.lower()
            plain.append(low)
            if low.isascii():
                stem = low[:5]
                if stem[-1] == "s" and len(stem) > 3:
                    stem = stem[:-1]
                short.append(stem)
                if low not in _STOP:
                    words |= _bits.get(stem) or bit(stem)
            else:
                words |= _foreign(low, short)
            continue
        word = whole.strip(_PUNCTUATION)
        if _DIGIT.search(word):
            word = _digits(word, plain, raw, place)
            numbers += [_figure(number) for number in _NUMBER.findall(word)]
        elif place and word[:1].isupper() and not word.isupper():
            names |= bit(word)
        if word != "*" and word[:1] != "-" and _NAMING.search(word):
            found = _bits.get(word) or bit(word)
            marks |= found
            if "/" in word or "@" in word or (word[0].isalpha() and word[-1].isdigit() and "=" not in word):
                things |= bit(normal_form(word))
            if not word[0].isdigit():
                names |= found
        low = word.lower()
        plain.append(low)
        for part in _WORD.findall(low):
            if not part.isascii():
                words |= _foreign(part, short)
                continue
            stem = part[:5]
            if stem[-1] == "s" and len(stem) > 3:
                stem = stem[:-1]
            short.append(stem)
            if part not in _STOP:
                words |= _bits.get(stem) or bit(stem)
    barren = not _BARREN.isdisjoint(short[:30]) or (
        not text.isascii() and _BARREN_CJK.search(text) is not None
    )
    end = len(raw) < 20 and not _END.isdisjoint(plain)
    return TokenizedText(
        " ".join(plain), words, marks, names, things, tuple(numbers[:12]), barren or not short, end
    )


def _foreign(word: str, short: list[str]) -> int:
    """Script without spaces is read in pairs of characters, any other like Latin script."""
    if not _CJK.search(word):
        short.append(word[:5])
        return 0 if word in _STOP else bit(word[:5])
    short.append(word[:5])
    found = 0
    for start in range(min(len(word) - 1, WORDS)):
        found |= bit(word[start : start + 2])
    return found


def _digits(word: str, plain: list[str], raw: list[str], place: int) -> str:
    """A word with digits, masked if its neighbours show that it only counts, times or identifies the call."""
    before = plain[-1] if plain else ""
    if before in _COUNTERS or (before in _OF and len(plain) > 2 and plain[-3] in _COUNTERS):
        return "*"
    if before in _ID_WORDS and len(word) >= 6 and not word.isdigit():
        return "*"
    if place + 1 < len(raw):
        after = raw[place + 1].strip(_PUNCTUATION).lower()
        if after in _UNITS or after in _COUNTERS:
            return "*"
    return _NOISE.sub("*", word)


def _figure(number: str) -> float:
    try:
        return float(number.replace(",", "")) if len(number) < 300 else 0.0
    except ValueError:  # a version or an address: 1.2.3
        return float(crc32(number.encode()))

"""Comparison of names that look alike: names of agents, types, clusters, tools.

Law: names that read the same compare as equal, whatever their case, blanks, Unicode form or invisible
characters and whichever alphabet a letter comes from. `spellings` returns the forms of a name; two names are
the same when they share one. Only comparisons use it: names are archived and displayed as they were sent.
Letters of one alphabet stay distinct (`I`, `l` and `1`): merging those would join real names.
Digits of other alphabets are read by their value in one form, by their shape in the other.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import Final

from observatory.protocol.look_alikes import LOOK_ALIKES
from observatory.protocol.visible import HIDDEN

# Letters of other alphabets by the ASCII letter they look like, in their own case: a Greek capital eta
# looks like H, the small one like n. Unicode's confusables (UTS 39) for a-z and the signs of identifiers.
_DRAWN_LIKE: Final = {
    "a": "ΑАᎪꓮαаɑ⍺ᴀ", "b": "ΒВᏴꓐЬвьƄ", "c": "СϹᏟꓚсϲⲤⲥᴄ", "d": "ᎠꓓԁԀᏧժ", "e": "ΕЕᎬꓰеεҽєᴇ", "f": "ꓝϜғƒſ",
    "g": "ᏀꓖԌԍɡցᶃ", "h": "ΗНᎻꓧнһҺհᏂ", "i": "ΙІᏆꓲιіıɩɪ", "j": "ЈᎫꓙјϳ", "k": "ΚКᏦꓗκкⲔⲕ", "l": "ᏞꓡⳐⳑʟǀӏӀ",
    "m": "ΜМᎷꓟмϺᴍ", "n": "ΝꓠηпոռⲚ", "o": "ΟОꓳοоσօՕⲞⲟᴏ𐐄𐐬", "p": "ΡРᏢꓑρрⲢⲣ", "q": "ԚԛգզՔ", "r": "ᎡᏒꓣгᴦᴙ",
    "s": "ЅᏚꓢѕՏꜱ𐐠𐑈", "t": "ΤТᎢꓔτтⲦᴛ", "u": "ꓴՍυսʋᴜ", "v": "ᏙꓦνѵѴᴠ", "w": "ᎳᏔꓪԜωԝѡшաᴡ", "x": "ΧХꓫχхⲬⲭ᙭",
    "y": "ΥҮУꓬуγүყʏ", "z": "ΖᏃꓜᴢ", "-": "‐‑‒–—―−⁃﹣➖", "_": "ˍ", ".": "܂", ":": "։׃∶꞉", "/": "⁄∕╱",
}  # fmt: skip
# A Latin letter by its name: `LATIN SMALL LETTER L WITH STROKE` looks like an l.
_LATIN: Final = re.compile(
    r"(?:NEGATIVE CIRCLED |NEGATIVE SQUARED )?LATIN (?:SMALL |CAPITAL )?LETTER "
    "(?:SMALL CAPITAL |DOTLESS |SCRIPT )?([A-Z])(?: WITH .*| WITHOUT .*)?|"
    "REGIONAL INDICATOR SYMBOL LETTER ([A-Z])"
).fullmatch
_LATIN_BLOCKS: Final = (
    *(range(0xC0, 0x250), range(0x250, 0x2B0), range(0x1D00, 0x1DC0), range(0x1E00, 0x1F00)),
    *(range(0x2C60, 0x2C80), range(0xA720, 0xA800), range(0xAB30, 0xAB70), range(0x1F150, 0x1F200)),
)
_CHEROKEE: Final = range(0x13A0, 0x13F0)  # its small letters look like its capitals
_MARKS: Final = (range(0x300, 0x370), range(0x1AB0, 0x1B00), range(0x1DC0, 0x1E00), range(0x20D0, 0x2100))
# Invisible, though not by category: fillers, variation selectors, the empty Braille pattern.
_EMPTY: Final = frozenset(
    {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0}
    | set(range(0x180B, 0x1810))
    | set(range(0xFE00, 0xFE10))
    | set(range(0xFFF0, 0xFFF9))
    | set(range(0xE0000, 0xE1000))
)
_INVISIBLE: Final = "\u200b"
_APART: Final = re.compile(r"[^\S\n]")  # any blank except a line break
_NOT_READ: Final = re.compile(
    rf"{HIDDEN}|['\u2019\u02bc\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
_UNREAD_ASCII: Final = dict.fromkeys((*(code for code in range(0x20) if chr(code) not in "\t\n"), 0x27, 0x7F))
_UNSEEN_ASCII: Final = dict.fromkeys((*range(0x21), 0x7F))


def _drawings() -> dict[int, str]:
    letters_by_code = {}
    for code in chain(*_LATIN_BLOCKS):
        latin = _LATIN(unicodedata.name(chr(code), ""))
        if latin is not None:
            letters_by_code[code] = (latin[1] or latin[2]).lower()
    for plain, signs in chain(LOOK_ALIKES.items(), _DRAWN_LIKE.items()):
        for sign in signs:
            letters_by_code[ord(sign)] = plain
            if ord(sign) in _CHEROKEE:
                letters_by_code[ord(sign.lower())] = plain
    return letters_by_code


_DRAWINGS: Final = _drawings()


def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Zs", "Zl", "Zp") or ord(sign) in _EMPTY


def _seen(text: str) -> str:
    return "".join(sign for sign in text if not _is_unseen(sign))


def _is_mark(sign: str) -> bool:
    return any(ord(sign) in marks for marks in _MARKS)


def _with_values(text: str) -> str:
    """Digits of every alphabet as those of ASCII: they are read by their value."""
    return "".join(str(unicodedata.decimal(sign, sign)) for sign in text)


def _without_marks(text: str) -> str:
    """Drop combining marks on ASCII characters; marks among letters of their own alphabet stay."""
    result = ""
    for sign in text:
        is_borne = result[-1:].isascii() and unicodedata.category(sign) in ("Mn", "Me")
        if not is_borne and not _is_mark(sign):
            result += sign
    return result


# Names recur in every message; the bound protects against texts that never do.
@lru_cache(maxsize=16_384)
def spellings(word: str) -> tuple[str, ...]:
    """The forms a name is compared by, at least one; all invisible names are the same name."""
    if word.isascii():
        return (word.lower().translate(_UNSEEN_ASCII) or _INVISIBLE,)
    lowered = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    folded = _with_values(_seen(lowered))
    # Before case folding: capital and small letter may look like two different letters.
    letters = _seen(unicodedata.normalize("NFKD", word.translate(_DRAWINGS))).translate(_DRAWINGS)
    drawn = _without_marks(letters).casefold()
    return (folded or _INVISIBLE,) if folded == drawn or not drawn else (folded or _INVISIBLE, drawn)


def normalized_text(text: str) -> str:
    """A whole text in one spelling, with its blanks: for a detector, not for names.

    Some characters expand to whole sentences: the result is truncated to twice the length of the text.
    """
    if text.isascii():
        return text.lower().translate(_UNREAD_ASCII)
    drawn = unicodedata.normalize("NFKD", text.translate(_DRAWINGS))[: 2 * len(text)].translate(_DRAWINGS)
    return _NOT_READ.sub("", _APART.sub(" ", drawn)).casefold()


def are_same_name(one: str | None, other: str | None) -> bool:
    """Whether two names read the same; None equals nothing."""
    if one is None or other is None:
        return False
    return one == other or not set(spellings(one)).isdisjoint(spellings(other))

"""Safe display of untrusted text (S1110): invisible and direction-changing characters are shown by code,
and a word whose letters come from several look-alike scripts is marked.

Pure, and the same as `ui/src/widgets/inert.ts`; `tests/vectors/golden/visible.json` covers both. For
terminals and channels that people read; nothing that is stored, hashed or sent to an agent is changed by it.
"""

from __future__ import annotations

import re
import unicodedata

# Default_Ignorable_Code_Point of Unicode, which Python does not provide, and characters that look like a
# blank.
IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
FORMATS = (
    r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    r"\U000e0001-\U000e007f"
)
HIDDEN = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u2800{IGNORABLE}{FORMATS}]"
_IS_PLAIN = re.compile(r"[\t\n\x20-\x7e]*").fullmatch
_PICTURE = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55\u3030"
    r"\u303d\u3297\u3299\U0001f000-\U0001faff]\ufe0f?[\U0001f3fb-\U0001f3ff]?"
)
# A complete emoji keeps its joiners and selectors.
_FOUND = re.compile(rf"{_PICTURE}(?:\u200d{_PICTURE})*|({HIDDEN})")
_BLANKS = dict.fromkeys(map(ord, "\t\n\r"), " ")
_WORD = re.compile(r"[^\W\d_]+")
_ALPHABETS = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"}
_CYRILLIC = re.compile(r"[\u0400-\u052f]+")
# Cyrillic letters that look like Latin ones in any font.
_IS_ALIKE = re.compile(r"[асеорхуіѕјһԁԛԝӏАВЕКМНОРСТХУІЅЈ]+").fullmatch
_DRESSED = re.compile(r"[\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]")


def visible(text: str) -> str:
    """Line breaks and tabs stay; `visible_line` removes them too."""
    if _IS_PLAIN(text):
        return text
    return _noted(_FOUND.sub(lambda m: _named(m[1]) if m[1] else m[0], text.replace("\r\n", "\n")))


def visible_line(text: str) -> str:
    return visible(text.translate(_BLANKS))


def escaped(json: str) -> str:
    """JSON with invisible characters escaped: another text, the same value."""
    return json if _IS_PLAIN(json) else _FOUND.sub(lambda m: _escapes(m[1]) if m[1] else m[0], json)


def _named(char: str) -> str:
    code = ord(char)
    if code <= 0x1F:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def _escapes(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _noted(text: str) -> str:
    """Append a note to each word of several scripts; idempotent."""
    words = _CYRILLIC.findall(text)
    alike = bool(words) and all(map(_IS_ALIKE, words)) and any(len(word) > 2 for word in words)

    def note(match: re.Match[str]) -> str:
        scripts = _scripts_of(match[0], alike)
        mark = f"⟨{scripts}⟩"
        return match[0] if not scripts or text.startswith(mark, match.end()) else match[0] + mark

    return _WORD.sub(note, text)


def _scripts_of(word: str, alike: bool) -> str:
    if word.isascii():
        return ""
    if _DRESSED.search(word):
        return "styled Latin"
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in word} & _ALPHABETS
    if len(scripts) > 1:
        return "+".join(name.title() for name in sorted(scripts, key=lambda name: (name != "LATIN", name)))
    return "Cyrillic" if alike and scripts == {"CYRILLIC"} else ""

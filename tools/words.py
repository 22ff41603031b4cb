"""`python -m tools.words`: plain words, unique class names and references that exist; part of `make check`.

It prints `path:line: message` and exits 1 on any finding:

1. Banned words and phrases (`words_banned.py`) in code, UI, documents and examples: case-insensitive, whole
   words, also as parts of snake_case and camelCase identifiers; a phrase also across a line break.
2. Names of public classes that are defined more than once in src.
3. Constants named `MOST_*`: bounds are `MAX_*`.
4. References: "ruling N" that docs/rulings.md lacks, "ADR-NNN" that docs/decisions lacks, rules "SNNN" that
   docs/spec.md (or docs/spec/*.md) lacks, and "issue N": issues are not in the repository.

`tools/words_allowed.txt` lists what must stay, as `path-glob | word | reason`, or with a `class Name`. A
line that allows nothing is a finding.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tools.words_banned import BANNED, PHRASES, REFERENCE_PLACES, SKIPPED, WORD_PLACES

ROOT = Path(__file__).parents[1]
ALLOWED = "tools/words_allowed.txt"

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# What may stand between the words of a phrase: spaces, quotes, and a line break with its comment marks.
BETWEEN = re.compile(r"[\s#*/_\"'>-]{0,40}")
NUMBER = r"\d+[a-d]?"
RULINGS = re.compile(rf"\brulings?\s+({NUMBER}(?:(?:–|-|, | and | to ){NUMBER})*)", re.IGNORECASE)
RULES = re.compile(r"\b[Ss]\d{3}\b")
RECORDS = re.compile(r"\bADR-\d{3}\b")
ISSUES = re.compile(r"\bissues? #?\d+\b", re.IGNORECASE)
MOST = re.compile(r"\b_?MOST_[A-Z0-9_]+")
NOQA = re.compile(r"#\s*noqa:[A-Z0-9, ]+")


class Finding(NamedTuple):
    path: str
    line: int
    word: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass
class Allowance:
    """One line of the allow list."""

    line: int
    glob: str
    word: str
    is_used: bool = False

    def covers(self, finding: Finding) -> bool:
        return finding.word == self.word and fnmatchcase(finding.path, self.glob)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def banned_words(path: str, text: str) -> Iterator[Finding]:
    for match in WORD.finditer(text):
        word = match[0].lower()
        if word in BANNED:
            message = f"banned word `{word}` (use: {BANNED[word]})"
            yield Finding(path, line_of(text, match.start()), word, message)


def banned_phrases(path: str, text: str) -> Iterator[Finding]:
    words = list(WORD.finditer(text))
    lowered = [match[0].lower() for match in words]
    for phrase, instead in PHRASES.items():
        parts = phrase.split()
        for at in (index for index, word in enumerate(lowered) if word == parts[0]):
            run = words[at : at + len(parts)]
            if lowered[at : at + len(parts)] == parts and _is_one_phrase(text, run):
                message = f"banned phrase `{phrase}` (use: {instead})"
                yield Finding(path, line_of(text, run[0].start()), phrase, message)


def _is_one_phrase(text: str, run: list[re.Match[str]]) -> bool:
    return all(BETWEEN.fullmatch(text[one.end() : other.start()]) for one, other in pairwise(run))


def most_constants(path: str, text: str) -> Iterator[Finding]:
    for match in MOST.finditer(text):
        message = f"`{match[0]}`: a bound is named MAX_*"
        yield Finding(path, line_of(text, match.start()), match[0], message)


def repeated_classes(sources: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Public classes at module level whose name two modules define."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path, text in sources:
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append((path, node.lineno))
    for name, where in sorted(places.items()):
        for path, line in where if len(where) > 1 else ():
            others = ", ".join(sorted(other for other, _ in where if other != path)) or "the same file"
            yield Finding(path, line, f"class {name}", f"class `{name}` is also defined in {others}")


def cited_rulings(text: str) -> Iterator[tuple[int, str]]:
    """Offset and number of each ruling named; a range names all between its ends."""
    for match in RULINGS.finditer(text):
        numbers = set(re.findall(NUMBER, match[1]))
        for low, high in re.findall(r"(\d+)(?:–|-| to )(\d+)", match[1]):
            numbers.update(str(number) for number in range(int(low), int(high) + 1))
        for number in sorted(numbers):
            yield match.start(), number


class References:
    """What the documents define."""

    def __init__(self, root: Path) -> None:
        rulings = (root / "docs/rulings.md").read_text("utf-8")
        self.rulings = {
            *re.findall(r"^### Ruling (\d+):", rulings, re.MULTILINE),
            *re.findall(r"^- \*\*(\d+[a-d])\.", rulings, re.MULTILINE),
        }
        self.records = {path.name[:7] for path in (root / "docs/decisions").glob("ADR-*.md")}
        specs = [root / "docs/spec.md", *sorted((root / "docs/spec").glob("*.md"))]
        text = "".join(path.read_text("utf-8") for path in specs if path.exists())
        self.rules = set(re.findall(r"\*\*(S\d{3})\b", text))

    def missing(self, path: str, text: str) -> Iterator[Finding]:
        text = NOQA.sub(lambda match: " " * len(match[0]), text)
        for offset, number in cited_rulings(text):
            if number not in self.rulings:
                yield self._finding(path, text, offset, f"ruling {number}", "docs/rulings.md")
        for match in RECORDS.finditer(text):
            if match[0] not in self.records:
                yield self._finding(path, text, match.start(), match[0], "docs/decisions")
        for match in RULES.finditer(text):
            if match[0].upper() not in self.rules:
                yield self._finding(path, text, match.start(), match[0], "docs/spec.md")
        for match in ISSUES.finditer(text):
            yield self._finding(path, text, match.start(), match[0].lower(), "the repository")

    def _finding(self, path: str, text: str, offset: int, word: str, place: str) -> Finding:
        return Finding(path, line_of(text, offset), word, f"`{word}` is not in {place}")


def read_texts(root: Path, places: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Each file below the places by its path from the root; what is no UTF-8 text is left out."""
    texts: dict[str, str] = {}
    for place, endings in places.items():
        start = root / place
        for file in sorted(start.rglob("*")) if start.is_dir() else [start]:
            path = file.relative_to(root).as_posix()
            is_wanted = file.is_file() and (not endings or file.suffix in endings)
            if is_wanted and not any(fnmatchcase(path, glob) for glob in SKIPPED):
                texts.update(_text(path, file))
    return texts


def _text(path: str, file: Path) -> dict[str, str]:
    try:
        return {path: file.read_text("utf-8")}
    except UnicodeDecodeError:
        return {}


def all_findings(root: Path) -> list[Finding]:
    worded = read_texts(root, WORD_PLACES)
    everywhere = worded | read_texts(root, REFERENCE_PLACES)
    checks: list[Callable[[str, str], Iterator[Finding]]] = [most_constants, References(root).missing]
    found = [one for path, text in everywhere.items() for check in checks for one in check(path, text)]
    for path, text in worded.items():
        found.extend((*banned_words(path, text), *banned_phrases(path, text)))
    found.extend(repeated_classes((path, text) for path, text in worded.items() if path.startswith("src/")))
    return sorted(found)


def read_allowed(text: str) -> tuple[list[Allowance], list[Finding]]:
    """The allow list, and a finding for each line that is not `path-glob | word | reason`."""
    allowed: list[Allowance] = []
    faults: list[Finding] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 3 and all(parts):
            allowed.append(Allowance(number, parts[0], parts[1]))
        else:
            faults.append(Finding(ALLOWED, number, "", "not `path-glob | word | reason`"))
    return allowed, faults


def not_allowed(found: Iterable[Finding], allowed: list[Allowance]) -> list[Finding]:
    """The findings that no line allows, and the lines that allow nothing."""
    left: list[Finding] = []
    for one in found:
        covering = [line for line in allowed if line.covers(one)]
        for line in covering:
            line.is_used = True
        if not covering:
            left.append(one)
    unused = (line for line in allowed if not line.is_used)
    left.extend(
        Finding(ALLOWED, one.line, one.word, f"`{one.word}` in {one.glob}: allows nothing") for one in unused
    )
    return left


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="words", description="check words, class names and references")
    parser.add_argument("paths", nargs="*", help="print only findings in these files or folders")
    paths = tuple(parser.parse_args(arguments).paths)
    allowed, faults = read_allowed((root / ALLOWED).read_text("utf-8"))
    left = faults + not_allowed(all_findings(root), allowed)
    shown = [one for one in left if not paths or one.path.startswith(paths)]
    for one in shown:
        print(one)
    print(f"words: {len(shown)} findings" if shown else "words: ok", file=sys.stderr)
    return int(bool(shown))


if __name__ == "__main__":
    sys.exit(main())

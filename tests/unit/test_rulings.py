"""Each ruling that code, tests or documents cite is in docs/rulings.md."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "bench", "tools", "docs", "ui/src", "sdk-ts/src", "examples")
KINDS = {".py", ".md", ".ts", ".tsx"}
NUMBER = r"\d+[a-d]?"
CITED = re.compile(rf"\brulings? ({NUMBER}(?:(?:–|-|, | and | to ){NUMBER})*)", re.IGNORECASE)


def cited(text: str) -> set[str]:
    """Every number named; a range names all between its ends."""
    found: set[str] = set()
    for match in CITED.finditer(re.sub(r"\s+(?:[#*>] ?)?", " ", text)):
        found.update(re.findall(NUMBER, match[1]))
        for low, high in re.findall(r"(\d+)(?:–|-| to )(\d+)", match[1]):
            found.update(str(number) for number in range(int(low), int(high) + 1))
    return found


def known() -> set[str]:
    text = (ROOT / "docs/rulings.md").read_text("utf-8")
    return {
        *re.findall(r"^### Ruling (\d+):", text, re.MULTILINE),
        *re.findall(r"^- \*\*(2[a-d])\.", text, re.MULTILINE),
    }


def test_a_range_names_all_numbers_between_its_ends() -> None:
    assert cited("rulings 2c and 19, see Ruling 21–24") == {"2c", "19", "21", "22", "23", "24"}


def test_every_ruling_that_is_cited_is_in_the_repository() -> None:
    files = (
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in KINDS and "node_modules" not in path.parts
    )
    missing = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in files
        for number in cited(path.read_text("utf-8")) - known()
    }
    assert not missing


def test_the_rulings_are_numbered_from_one_without_a_gap() -> None:
    numbers = re.findall(r"^### Ruling (\d+):", (ROOT / "docs/rulings.md").read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, 41))

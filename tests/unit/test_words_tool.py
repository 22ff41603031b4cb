"""The tool that refuses banned words, repeated class names and references to what does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import words

RULINGS = "### Ruling 1: one\n\n- **2a.** With\n### Ruling 2: two\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "docs/rulings.md": RULINGS,
        "docs/spec.md": "- **S001** A rule.\n",
        "docs/decisions/ADR-013-scope.md": "Nobody was told (issue 4).\n",
        "tools/words_allowed.txt": "# nothing\n",
        "src/a.py": "class One: ...\n",
    }
    for path, text in files.items():
        write(tmp_path, path, text)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


def found(root: Path) -> list[tuple[str, int, str]]:
    return [(one.path, one.line, one.word) for one in words.all_findings(root)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("# Whoever asks", "whoever"),
        ("told_to = 1", "told"),
        ("isTold()", "told"),
        ("TOLD_NS = 1", "told"),
        ("class HTTPTold:", "told"),
        ("TooDear", "dear"),
        ("x.nobody2", "nobody"),
    ],
)
def test_a_banned_word_is_found_alone_and_as_part_of_an_identifier(text: str, word: str) -> None:
    assert [one.word for one in words.banned_words("a.py", text)] == [word]


@pytest.mark.parametrize("text", ["retell", "intellect", "warehouse", "besides", "deary", "untold", "fare"])
def test_a_word_that_only_contains_a_banned_one_is_none(text: str) -> None:
    assert not list(words.banned_words("a.py", text))


@pytest.mark.parametrize(
    "text", ["let go", "Let Go", "let_go", "letGo", "# what is let\n    # go of", "let\n * go"]
)
def test_a_phrase_is_found_across_case_identifiers_and_line_breaks(text: str) -> None:
    assert [(one.word, one.line) for one in words.banned_phrases("a.py", text)] == [("let go", 1)]


@pytest.mark.parametrize("text", ["let x = go()", "let. go", "outlet go", "so, many"])
def test_words_that_are_apart_are_no_phrase(text: str) -> None:
    assert not list(words.banned_phrases("a.py", text))


def test_a_bound_is_named_max() -> None:
    text = "MAX_SIZE = 1\nMOST_SIZE = 2\n_MOST_X = 3\nUTMOST_X = 4\n"
    assert [(one.line, one.word) for one in words.most_constants("a.py", text)] == [
        (2, "MOST_SIZE"),
        (3, "_MOST_X"),
    ]


def test_a_public_class_name_is_used_once() -> None:
    sources = [
        ("a.py", "class Page: ...\nclass _Own: ...\n"),
        ("b.py", "x = 1\nclass Page: ...\nclass _Own: ...\nclass Other:\n    class Page: ...\n"),
    ]
    repeated = list(words.repeated_classes(sources))
    assert [(one.path, one.line, one.word) for one in repeated] == [
        ("a.py", 1, "class Page"),
        ("b.py", 2, "class Page"),
    ]
    assert "also defined in b.py" in repeated[0].message


def test_a_range_of_rulings_names_all_between_its_ends() -> None:
    numbers = {number for _, number in words.cited_rulings("rulings 2c and 19, see Ruling 21–24")}
    assert numbers == {"2c", "19", "21", "22", "23", "24"}


def test_references_to_what_does_not_exist_are_found(root: Path) -> None:
    text = "ruling 1, rulings 2a–3\nADR-013 ADR-001\nS001 s001 S002\nx = 1  # noqa: S608\n(issue 4)\n"
    write(root, "tests/test_a.py", text)
    assert found(root) == [
        ("tests/test_a.py", 1, "ruling 3"),
        ("tests/test_a.py", 2, "ADR-001"),
        ("tests/test_a.py", 3, "S002"),
        ("tests/test_a.py", 5, "issue 4"),
    ]


def test_rules_may_be_in_several_documents(root: Path) -> None:
    write(root, "docs/spec/more.md", "- **S002** Another.\n")
    write(root, "src/b.py", '"""S002, S003."""\n')
    assert found(root) == [("src/b.py", 1, "S003")]


def test_history_and_generated_files_are_skipped(root: Path) -> None:
    for path in ("ui/src/protocol/a.ts", "sdk-ts/src/protocol.ts", "src/observatory/store/migrations/v1.py"):
        write(root, path, "told\n")
    write(root, "examples/node_modules/x/a.js", "told\n")
    (root / "examples/a.bin").write_bytes(b"told \xff")
    assert not found(root)
    write(root, "examples/a.yaml", "told\n")
    assert found(root) == [("examples/a.yaml", 1, "told")]


def test_the_allow_list_is_by_path_and_word(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, "src/b.py", "told = 1\n")
    assert words.main([], root) == 1
    assert capsys.readouterr().out.startswith("src/b.py:1: banned word `told`")
    write(root, "tools/words_allowed.txt", "src/*.py | told | a column\n")
    assert words.main([], root) == 0


def test_a_line_that_allows_nothing_or_cannot_be_read_is_a_finding(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, "tools/words_allowed.txt", "src/*.py | told | a column\n\nsrc/*.py | told\n")
    assert words.main([], root) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "tools/words_allowed.txt:3: not `path-glob | word | reason`",
        "tools/words_allowed.txt:1: `told` in src/*.py: allows nothing",
    ]


def test_only_the_named_paths_are_printed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, "src/b.py", "told = 1\n")
    assert words.main(["docs"], root) == 0
    assert words.main(["src"], root) == 1
    assert "src/b.py" in capsys.readouterr().out

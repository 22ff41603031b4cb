"""`make trace` counts what it should, and nothing else. The tool runs over small trees made here."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools import trace

REQUIREMENTS = "# Requirements\n" + "".join(f"- R{n} · Part · Demand {n}.\n" for n in range(1, 31))
MARKED = """
import pytest
{module}
{decorator}
def test_it() -> None: ...
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("docs", "tools", "tests/contract", "tests/flows", "tests/vectors", "tests/unit", "ui/e2e"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/requirements.md").write_text(REQUIREMENTS)
    (tmp_path / "tools/no_code.md").write_text("# No code\n\nR28-R29 · history\nR30 · a name\n")
    return tmp_path


def put(tree: Path, place: str, decorator: str = "", module: str = "") -> None:
    (tree / place).write_text(MARKED.format(decorator=decorator, module=module))


def report(tree: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = trace.main(["--root", str(tree), "--json"])
    return code, json.loads(capsys.readouterr().out)


def covered(found: dict[str, Any]) -> set[str]:
    return {name for name, row in found["requirements"].items() if row["state"] == "covered"}


@pytest.mark.parametrize(
    ("decorator", "module", "numbers"),
    [
        ("@pytest.mark.req(1)", "", {1}),
        ("@pytest.mark.req(1, 2, *range(5, 8))", "", {1, 2, 5, 6, 7}),
        ("@pytest.mark.req(1)\n@pytest.mark.parametrize('a', [1])\n@pytest.mark.req(2)", "", {1, 2}),
        ("", "pytestmark = pytest.mark.req(3)", {3}),
        ("@pytest.mark.req(4)", "pytestmark = [pytest.mark.timeout(3), pytest.mark.req(3)]", {3, 4}),
        ("@pytest.mark.asyncio", "", set()),
        ("@pytest.mark.skip(reason='later')\n@pytest.mark.req(1)", "", set()),
        ("@pytest.mark.xfail\n@pytest.mark.req(1)", "", set()),
    ],
)
def test_marks_of_tests_and_modules_are_read_as_literals(
    tree: Path, capsys: pytest.CaptureFixture[str], decorator: str, module: str, numbers: set[int]
) -> None:
    put(tree, "tests/contract/test_a.py", decorator, module)
    code, found = report(tree, capsys)
    assert code == 0
    assert covered(found) == {f"R{number}" for number in numbers}


def test_a_mark_on_a_class_counts_for_the_tests_inside_it(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/flows/test_a.py").write_text(
        "import pytest\n@pytest.mark.req(7)\nclass TestIt:\n    pytestmark = pytest.mark.req(8)\n"
        "    async def test_one(self): ...\n    def helper(self): ...\n"
    )
    _, found = report(tree, capsys)
    assert covered(found) == {"R7", "R8"}
    assert found["requirements"]["R7"]["tests"] == ["tests/flows/test_a.py::TestIt::test_one"]


def test_a_mark_on_something_that_is_no_test_does_not_count(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/flows/test_a.py").write_text(
        "import pytest\n@pytest.mark.req(7)\ndef helper(): ...\n"
        "pytestmark = pytest.mark.req(8)\n# @pytest.mark.req(9)\n"
    )
    _, found = report(tree, capsys)
    assert covered(found) == set()


def test_a_mark_in_a_unit_test_does_not_count_and_is_told(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tree, "tests/unit/test_a.py", "@pytest.mark.req(1)")
    code, found = report(tree, capsys)
    assert code == 0
    assert covered(found) == set()
    assert found["warnings"] == ["tests/unit/test_a.py::test_it: the mark R1 does not count here"]


@pytest.mark.parametrize(
    ("decorator", "said"),
    [
        ("@pytest.mark.req(31)", "R31 is no requirement"),
        ("@pytest.mark.req(*range(30, 33))", "R31 is no requirement"),
        ("@pytest.mark.req(*NUMBERS)", "takes numbers and *range(a, b) only"),
        ("@pytest.mark.req('1')", "takes numbers and *range(a, b) only"),
        ("@pytest.mark.req(*range(A, 3))", "malformed"),
        ("@pytest.mark.req", "takes numbers and *range(a, b) only"),
        ("@pytest.mark.req()", "takes numbers and *range(a, b) only"),
        ("def (", "is not valid Python"),
    ],
)
def test_a_mark_that_is_unknown_or_unreadable_is_an_error(
    tree: Path, capsys: pytest.CaptureFixture[str], decorator: str, said: str
) -> None:
    put(tree, "tests/vectors/test_a.py", decorator)
    code, found = report(tree, capsys)
    assert code == 1
    assert said in found["errors"][0]


def test_browser_tests_are_marked_by_comments(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "ui/e2e/deep").mkdir()
    (tree / "ui/e2e/deep/fleet.spec.ts").write_text("// @req 3, 5-7\ntest('a', async () => {}) // @req R9\n")
    code, found = report(tree, capsys)
    assert code == 0
    assert covered(found) == {"R3", "R5", "R6", "R7", "R9"}
    (tree / "ui/e2e/bad.spec.ts").write_text("// @req soon\n")
    assert report(tree, capsys)[0] == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("R99 · history", "R99 is no requirement"),
        ("R1", "is not `R1 · reason`"),
        ("R1 · ", "is not `R1 · reason`"),
        ("R1 · once\nR1-R2 · twice", "R1 has two reasons"),
        ("".join(f"R{1 + n % 30} · reason\n" for n in range(61)), "at most 60 are allowed"),
    ],
)
def test_a_line_of_no_code_must_name_a_requirement_and_a_reason(
    tree: Path, capsys: pytest.CaptureFixture[str], lines: str, said: str
) -> None:
    (tree / "tools/no_code.md").write_text(lines)
    code, found = report(tree, capsys)
    assert code == 1
    assert said in found["errors"][0]


def test_the_text_names_tests_reasons_and_what_is_open_and_ends_with_the_counts(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tree, "tests/contract/test_a.py", "@pytest.mark.req(1)")
    put(tree, "tests/flows/test_b.py", "@pytest.mark.req(1, 30)")
    assert trace.main(["--root", str(tree)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "R1    covered  tests/contract/test_a.py::test_it (+1)"
    assert lines[1] == "R2    open     Part · Demand 2."
    assert lines[27] == "R28   no code  history"
    assert lines[-1] == "2 covered, 2 need no code, 26 open, of 30 requirements"
    assert "no_code.md: R30 is covered by a test" in err

    trace.main(["--root", str(tree), "--open"])
    only_open = capsys.readouterr().out.splitlines()
    assert len(only_open) == 27
    assert all(" open " in line for line in only_open[:-1])


def test_this_repository_holds_all_526_requirements_and_at_most_60_lines_without_code() -> None:
    root = Path(trace.__file__).parents[1]
    texts = trace.read_texts(root / "docs/requirements.md")
    assert list(texts) == list(range(1, 527))
    found = trace.Trace(texts)
    trace.read_reasons(root / "tools/no_code.md", found)
    assert found.errors == []

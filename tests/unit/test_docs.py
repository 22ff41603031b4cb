"""What the documents promise is there, and what is there is documented.

An undocumented setting, command, event or dependency is red, and so is a rule without a test, or a document
that speaks of what does not exist. Modules are imported inside the tests: a broken one fails its own test.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs/guides"
SOURCE = ROOT / "src/observatory"
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_readme_fits_on_120_lines() -> None:
    assert 10 < len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_document_claims_more_than_tamper_evidence(page: Path) -> None:
    assert not re.search(r"tamper[- ]?proof", page.read_text("utf-8"), re.IGNORECASE)


# --- the numbered rules of the spec ---


def rules() -> list[str]:
    text = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs/spec").glob("*.md")))
    return re.findall(r"^- \*\*S(\d+)\*\* ", text, re.MULTILINE)


@cache
def named_in_tests() -> list[tuple[str, str]]:
    """(rule number, test file) for each rule that the name or the docstring of a test mentions."""
    return list(_named())


def _named() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                in_name = re.findall(r"(?:^|_)[sS](\d+)(?=_|$)", node.name)
                in_docstring = re.findall(r"(?<![\w-])S(\d+)\b", ast.get_docstring(node) or "")
                yield from ((number, name_of(path)) for number in (*in_name, *in_docstring))


def test_rules_of_the_spec_have_one_number_each() -> None:
    numbers = rules()
    assert numbers, "docs/spec has no rule of the form `- **S1** text`"
    assert sorted({number for number in numbers if numbers.count(number) > 1}) == []


def test_every_rule_of_the_spec_is_named_by_a_test() -> None:
    named = {number for number, _ in named_in_tests()}
    assert [f"S{number}" for number in rules() if number not in named] == []


def test_every_rule_that_a_test_names_is_in_the_spec() -> None:
    known = set(rules())
    unknown = {f"S{number} in {place}" for number, place in named_in_tests() if number not in known}
    assert sorted(unknown) == []


# --- settings, commands, dependencies ---


def test_every_setting_is_documented_and_every_documented_one_exists() -> None:
    import msgspec

    from observatory import settings

    page = (GUIDES / "settings.md").read_text("utf-8")
    documented = set(re.findall(r"\bOBSERVATORY_([A-Z][A-Z0-9_]*)\b", page))
    existing = {field.name.upper() for field in msgspec.structs.fields(settings.Settings)}
    assert sorted(existing - documented) == [], "settings without a word in docs/guides/settings.md"
    assert sorted(documented - existing - settings.FOREIGN) == [], "documented, but no settings"


def commands() -> Iterator[str]:
    """Every command of the terminal with its parents, as a user types it."""
    from cyclopts import App

    from observatory import cli

    def walk(app: App, words: str) -> Iterator[str]:
        for name in app:
            if not name.startswith("-"):
                yield f"{words} {name}"
                yield from walk(app[name], f"{words} {name}")

    yield from walk(cli.app, "observatory")


def test_every_command_is_mentioned_in_the_readme_or_a_guide() -> None:
    pages = [ROOT / "README.md", *sorted(GUIDES.rglob("*.md"))]
    text = re.sub(r"\s+", " ", " ".join(page.read_text("utf-8") for page in pages))
    existing = list(commands())
    assert existing
    assert [command for command in existing if not re.search(rf"\b{re.escape(command)}\b", text)] == []


def test_every_event_is_documented_with_its_severity_and_every_documented_one_exists() -> None:
    from observatory.protocol.events import SEVERITY

    written, _, later = (GUIDES / "events.md").read_text("utf-8").partition("\n## Named and not written yet")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", written, re.MULTILINE)
    to_come = re.findall(r"`(\w+)`", later)
    assert [name for name, number in rows if SEVERITY.get(name) != int(number)] == []
    assert sorted([*(name for name, _ in rows), *to_come]) == sorted(SEVERITY), "each name once"
    rooms = ("gateway", "daemons")
    said = "".join(path.read_text("utf-8") for room in rooms for path in (SOURCE / room).glob("*.py"))
    assert [name for name in to_come if f'"{name}"' in said] == [], "written by now; say when"


def test_every_dependency_has_its_line_in_the_decision_record() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"].get("optional-dependencies", {})
    wanted = [
        *project["project"]["dependencies"],
        *(requirement for group in extras.values() for requirement in group),
        *(requirement for group in project["dependency-groups"].values() for requirement in group),
    ]
    names = {re.split(r"[\[<>=!~; ]", requirement)[0].lower() for requirement in wanted}
    for place in ("ui", "tools/browser"):
        package = json.loads((ROOT / place / "package.json").read_text("utf-8"))
        asked = {**package["dependencies"], **package.get("devDependencies", {})}
        names |= {name for name in asked if not name.startswith("@types/")}
    record = (ROOT / "docs/decisions/ADR-023-dependencies.md").read_text("utf-8")
    listed = {name.lower() for name in re.findall(r"^\| (@?[\w./-]+)", record, re.MULTILINE)}
    assert names == listed - {"dependency"}


def test_imports_go_in_the_direction_the_architecture_draws() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    run = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert explained == set(phony[1].split())


def test_security_md_says_where_to_report_and_names_this_version_s1263() -> None:
    """S1263: a stranger who found a hole knows in a minute what to do, and what comes of it."""
    from observatory.settings import VERSION

    text = (ROOT / "SECURITY.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[:4] == ["Report a vulnerability", "What to expect", "Supported versions", "What counts"]
    assert "Security → Report a vulnerability" in text and "working days" in text
    minor = VERSION.rpartition(".")[0]
    assert re.findall(r"^\| (\d+\.\d+)\.x", text, re.MULTILINE) == [minor]


# --- the table of OWASP AISVS ---

# How many requirements each section of the published version 1.0 has.
AISVS = {"9.1": 3, "9.2": 10, "9.3": 8, "9.4": 4, "9.5": 6, "9.6": 3}
AISVS |= {"12.1": 4, "12.2": 6, "12.3": 4, "12.4": 3, "12.5": 4}


class Requirement(NamedTuple):
    number: str
    level: str
    asked: str
    state: str
    evidence: str


def aisvs() -> list[Requirement]:
    text = (ROOT / "docs/aisvs.md").read_text("utf-8")
    return [
        Requirement(*row)
        for row in re.findall(r"^\| (\d+\.\d+\.\d+) \|" + r" (.+?) \|" * 4 + "$", text, re.M)
    ]


def test_the_aisvs_table_has_each_of_the_55_requirements_once_with_its_state_s1270() -> None:
    """S1270: and its summary says what the rows say."""
    rows = aisvs()
    numbers = [f"{section}.{number}" for section, many in AISVS.items() for number in range(1, many + 1)]
    assert len(numbers) == 55 and [row.number for row in rows] == numbers
    assert {row.state for row in rows} == {"met", "not met", "not ours"}
    assert {row.level for row in rows} == {"1", "2", "3"}
    assert all(len(row.evidence) > 5 for row in rows)
    text = (ROOT / "docs/aisvs.md").read_text("utf-8")
    for state in ("met", "not met", "not ours"):
        counts = [sum(row.state == state and row.level == level for row in rows) for level in "123"]
        assert f"| {state} | {' | '.join(map(str, counts))} | {sum(counts)} |" in text
    open_ones = [row.number for row in rows if row.level == "1" and row.state == "not met"]
    assert f"is met except: {', '.join(open_ones) or 'nothing'}." in text


def test_what_the_aisvs_table_calls_met_is_proved_by_tests_that_exist_s1270() -> None:
    """S1270: each test it names is there, and nothing is met without one."""
    for row in aisvs():
        named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", row.evidence)
        assert (row.state == "met") == bool(named), row.number
        for path, test in named:
            assert re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text("utf-8"), re.M), (
                row.number,
                test,
            )

"""Which requirement is proven by which test: the answer of `make trace`.

Reads docs/requirements.md (R1-R526), tools/no_code.md (lines `R1 · reason`, `R5-R6 · reason`) and the marks
on tests. A mark counts only where a promise is proven from outside (`COUNTED`), never on a skipped test.
Marks are read from the syntax tree and must be literal (no test is run): `@pytest.mark.req(1, *range(3, 9))`
on a test or its class, `pytestmark` in a module, `// @req 157, 160-162` in TypeScript. Exit 1 for a mark that
cannot be read or names an unknown requirement, and for a line of no_code.md without a reason.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

COUNTED = ("tests/contract/", "tests/flows/", "tests/vectors/", "tests/windows/", "tests/crewai/", "ui/e2e/")
NO_CODE_LIMIT = 60

REQUIREMENT = re.compile(r"^- R(\d+) · (.+)$", re.MULTILINE)
NUMBERS = r"R?(\d+)(?:\s*-\s*R?(\d+))?"
REASON = re.compile(rf"^{NUMBERS} · (.*\S)")
TS_MARK = re.compile(r"//\s*@req\s+(.*?)\s*$")


@dataclass
class Trace:
    texts: dict[int, str]
    covered: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[int, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def state(self, number: int) -> str:
        if number in self.covered:
            return "covered"
        return "no_code" if number in self.reasons else "open"

    def counts(self) -> dict[str, int]:
        states = [self.state(number) for number in self.texts]
        return {state: states.count(state) for state in ("covered", "no_code", "open")}


def read_texts(path: Path) -> dict[int, str]:
    return {int(number): text for number, text in REQUIREMENT.findall(path.read_text("utf-8"))}


def read_reasons(path: Path, trace: Trace) -> None:
    lines = [line for line in path.read_text("utf-8").splitlines() if re.match(r"R\d", line)]
    if len(lines) > NO_CODE_LIMIT:
        trace.errors.append(f"{path.name}: {len(lines)} lines, at most {NO_CODE_LIMIT} are allowed")
    for line in lines:
        match = REASON.match(line)
        if match is None:
            trace.errors.append(f"{path.name}: `{line[:60]}` is not `R1 · reason`")
            continue
        for number in range(int(match[1]), int(match[2] or match[1]) + 1):
            if number not in trace.texts:
                trace.errors.append(f"{path.name}: R{number} is no requirement")
            elif number in trace.reasons:
                trace.errors.append(f"{path.name}: R{number} has two reasons")
            trace.reasons[number] = match[3]


def numbers_of(mark: ast.expr) -> list[int]:
    """The numbers of a `pytest.mark.req(...)`, none for another mark; ValueError if they are not literal."""
    call = mark if isinstance(mark, ast.Call) else None
    if ast.unparse(call.func if call else mark) not in ("pytest.mark.req", "mark.req"):
        return []
    numbers: list[int] = []
    for argument in (call and call.args) or [mark]:
        match argument:
            case ast.Constant(value=int(number)):
                numbers.append(number)
            case ast.Starred(value=ast.Call(func=ast.Name(id="range"), args=bounds)):
                numbers.extend(range(*(ast.literal_eval(bound) for bound in bounds)))
            case _:
                raise ValueError("takes numbers and *range(a, b) only")
    return numbers


def marked_tests(
    body: list[ast.stmt], prefix: str = "", inherited: tuple[ast.expr, ...] = ()
) -> Iterator[tuple[str, list[ast.expr]]]:
    """Every test with its marks; those of a module or class are given to each test inside it."""
    own = [*inherited, *(mark for statement in body for mark in assigned_marks(statement))]
    for statement in body:
        if isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
            marks = (*own, *statement.decorator_list)
            yield from marked_tests(statement.body, f"{prefix}{statement.name}::", marks)
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith(
            "test"
        ):
            yield f"{prefix}{statement.name}", [*own, *statement.decorator_list]


def assigned_marks(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            return list(value.elts) if isinstance(value, ast.List | ast.Tuple) else [value]
        case _:
            return []


def marks_in_python(path: Path) -> Iterator[tuple[str, int | str]]:
    """(test name, number), or (test name, why the mark cannot be read)."""
    try:
        tree = ast.parse(path.read_text("utf-8"), str(path))
    except SyntaxError as problem:
        yield f"line {problem.lineno}", "is not valid Python"
        return
    for name, marks in marked_tests(tree.body):
        skipped = any(re.match(r"(pytest\.)?mark\.(skip|xfail)\b", ast.unparse(mark)) for mark in marks)
        for mark in marks:
            try:
                numbers = numbers_of(mark)
            except (TypeError, ValueError) as problem:
                yield name, f"pytest.mark.req {problem}"
            else:
                yield from ((name, number) for number in numbers if not skipped)


def marks_in_typescript(path: Path) -> Iterator[tuple[str, int | str]]:
    for line_number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        mark = TS_MARK.search(line)
        if mark and re.sub(r"[\s,]", "", re.sub(NUMBERS, "", mark[1])):
            yield f"line {line_number}", f"@req `{mark[1]}` holds more than numbers and ranges"
        for first, last in re.findall(NUMBERS, mark[1]) if mark else ():
            for number in range(int(first), int(last or first) + 1):
                yield f"line {line_number}", number


def collect(root: Path) -> Trace:
    trace = Trace(read_texts(root / "docs/requirements.md"))
    read_reasons(root / "tools/no_code.md", trace)
    sources = [(path, marks_in_python) for path in sorted((root / "tests").rglob("*.py"))]
    browser = [*(root / "ui/e2e").rglob("*.ts"), *(root / "tests/windows").rglob("*.ts")]
    sources += [(path, marks_in_typescript) for path in sorted(browser)]
    for path, read in sources:
        place = path.relative_to(root).as_posix()
        for name, number in read(path):
            test = f"{place}::{name}"
            if isinstance(number, str):
                trace.errors.append(f"{test}: {number}")
            elif number not in trace.texts:
                trace.errors.append(f"{test}: R{number} is no requirement")
            elif not place.startswith(COUNTED):
                trace.warnings.append(f"{test}: the mark R{number} does not count here")
            elif test not in trace.covered[number]:
                trace.covered[number].append(test)
    for number in trace.reasons.keys() & trace.covered.keys():
        trace.warnings.append(f"no_code.md: R{number} is covered by a test, its line can go")
    return trace


def as_json(trace: Trace) -> str:
    rows = {
        f"R{n}": {"state": trace.state(n), "tests": trace.covered.get(n, []), "reason": trace.reasons.get(n)}
        for n in trace.texts
    }
    said = {"warnings": trace.warnings, "errors": trace.errors}
    return json.dumps({"counts": trace.counts(), "requirements": rows, **said}, indent=2, ensure_ascii=False)


def as_lines(trace: Trace, *, only_open: bool) -> Iterator[str]:
    for number, text in trace.texts.items():
        if number in trace.covered and not only_open:
            tests = trace.covered[number]
            more = f" (+{len(tests) - 1})" if len(tests) > 1 else ""
            yield f"R{number:<4} covered  {tests[0]}{more}"
        elif trace.state(number) == "no_code" and not only_open:
            yield f"R{number:<4} no code  {trace.reasons[number]}"
        elif trace.state(number) == "open":
            yield f"R{number:<4} open     {text}"
    counts = trace.counts().values()
    yield "{} covered, {} need no code, {} open, of {} requirements".format(*counts, len(trace.texts))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="trace", description="requirements: covered, needs no code, open")
    parser.add_argument("--open", action="store_true", help="list the open ones only")
    parser.add_argument("--json", action="store_true", help="everything, for a script")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args(arguments)
    trace = collect(options.root)
    for warning in trace.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(as_json(trace) if options.json else "\n".join(as_lines(trace, only_open=options.open)), flush=True)
    for error in trace.errors:
        print(f"error: {error}", file=sys.stderr)
    return 1 if trace.errors else 0


if __name__ == "__main__":
    sys.exit(main())

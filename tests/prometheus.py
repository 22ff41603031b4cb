"""A strict reader of Prometheus' text form 0.0.4: what is not exactly as it must be raises."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
VALUE = re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|Inf)|NaN")
OF_HISTOGRAM = ("_bucket", "_sum", "_count")
Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    kind: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def parsed(text: str) -> dict[str, Family]:
    assert text.endswith("\n") and "\r" not in text
    families: dict[str, Family] = {}
    name = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, received = line.split(" ", 3)
            assert re.fullmatch(NAME, name) and name not in families, f"twice, or apart: {line}"
            assert re.fullmatch(r"(?:[^\\]|\\[\\n])+", received), line
            families[name] = Family("", received)
        elif line.startswith("# TYPE "):
            _, _, of, kind = line.split(" ")
            assert of == name and kind in ("counter", "gauge", "histogram"), line
            assert not families[name].kind and not families[name].samples
            families[name].kind = kind
        else:
            _sample(line, name, families[name])
    for name, family in families.items():
        assert family.samples, f"{name} tells nothing"
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def _sample(line: str, name: str, family: Family) -> None:
    found = SAMPLE.fullmatch(line)
    assert found is not None, line
    assert found[1].removeprefix(name) in (OF_HISTOGRAM if family.kind == "histogram" else ("",)), line
    labels = _labels(found[2] or "")
    assert VALUE.fullmatch(found[3]), line
    assert (found[1], labels) not in family.samples, f"twice: {line}"
    family.samples[found[1], labels] = float(found[3])


def _labels(text: str) -> Labels:
    found: list[tuple[str, str]] = []
    while text:
        pair = LABEL.match(text)
        assert pair is not None, text
        found.append((pair[1], re.sub(r'\\([\\n"])', lambda m: "\n" if m[1] == "n" else m[1], pair[2])))
        text = text[pair.end() :]
        assert not text or text.startswith(",")
        text = text[1:]
    assert len({name for name, _ in found}) == len(found)
    return tuple(found)


def _check_histogram(name: str, family: Family) -> None:
    """Of each set of labels the buckets grow, and the last is the count."""
    rest: dict[Labels, list[float]] = {}
    for (sample, labels), value in family.samples.items():
        if sample == f"{name}_bucket":
            rest.setdefault(tuple(pair for pair in labels if pair[0] != "le"), []).append(value)
    for labels, buckets in rest.items():
        assert buckets == sorted(buckets)
        assert buckets[-1] == family.samples[f"{name}_count", labels]
        assert (f"{name}_bucket", (*labels, ("le", "+Inf"))) in family.samples
        assert (f"{name}_sum", labels) in family.samples

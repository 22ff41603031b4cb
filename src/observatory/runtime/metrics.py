"""What a daemon tells of itself in figures: the words, and how they are written down for Prometheus.

Law: cheap. Who is asked tells what it has in memory, and asks neither a database nor the network. No tenant,
agent, key or address stands in a label: whoever may read `/metrics` sees figures of the whole house. Every
name is listed in docs/guides/operate.md; a test compares.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Measure(NamedTuple):
    """One figure. Of a histogram every bucket, sum and count is one, told apart by `suffix`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    value: float
    labels: Mapping[str, str] = NO_LABELS
    suffix: str = ""


@runtime_checkable
class Measured(Protocol):
    """Who can be asked; at once and as often as somebody likes."""

    def measures(self) -> list[Measure]: ...


class Looks:
    """How often a daemon looked, and when last: one that hangs looks no more, and does not fail either."""

    def __init__(self, daemon: str) -> None:
        self._labels = {"daemon": daemon}
        self._count, self._last = 0, time.monotonic()

    def look(self) -> None:
        self._count += 1
        self._last = time.monotonic()

    def measures(self) -> list[Measure]:
        age_s = time.monotonic() - self._last
        return [
            Measure("observatory_daemon_looks_total", "counter", "Looks for work", self._count, self._labels),
            Measure(
                "observatory_daemon_look_age_seconds", "gauge", "Since the last look", age_s, self._labels
            ),
        ]


def exposition(measures: Iterable[Measure]) -> str:
    """Prometheus' text form 0.0.4: what belongs to one name stands together under one HELP and TYPE."""
    families: dict[str, list[Measure]] = {}
    for measure in measures:
        families.setdefault(measure.name, []).append(measure)
    lines: list[str] = []
    for name, family in families.items():
        lines += [f"# HELP {name} {_help(family[0].help)}", f"# TYPE {name} {family[0].kind}"]
        lines += [f"{name}{one.suffix}{_labels(one.labels)} {_value(one.value)}" for one in family]
    return "\n".join([*lines, ""])


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _quoted(value: str) -> str:
    return _help(value).replace('"', '\\"')


def _value(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(round(value, 6)) if isinstance(value, float) else str(int(value))

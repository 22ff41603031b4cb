"""Metrics: the types that workers report their figures in, and the Prometheus text format.

Law: cheap. A source reports what it has in memory, and queries neither a database nor the network. No tenant,
agent, key or address stands in a label: a reader of `/metrics` sees figures of the whole deployment. Every
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
    """One sample. Of a histogram every bucket, sum and count is one, distinguished by `suffix`."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    value: float
    labels: Mapping[str, str] = NO_LABELS
    suffix: str = ""


@runtime_checkable
class MetricsSource(Protocol):
    """A source of metrics; returns at once and may be called often."""

    def measures(self) -> list[Measure]: ...


class PollCounter:
    """How often a worker polled, and when last: one that hangs no longer polls, and does not fail either."""

    def __init__(self, worker: str) -> None:
        self._labels = {"worker": worker}
        self._count, self._last = 0, time.monotonic()

    def look(self) -> None:
        self._count += 1
        self._last = time.monotonic()

    def measures(self) -> list[Measure]:
        age_s = time.monotonic() - self._last
        return [
            Measure("observatory_worker_polls_total", "counter", "Polls for work", self._count, self._labels),
            Measure(
                "observatory_worker_last_poll_age_seconds",
                "gauge",
                "Seconds since the last poll",
                age_s,
                self._labels,
            ),
        ]


def exposition(measures: Iterable[Measure]) -> str:
    """Prometheus text format 0.0.4: samples of one name are grouped under one HELP and TYPE."""
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

"""What a run found: notes while it goes, figures with what was asked of them, one table and one file."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True)
class Figure:
    """`asked` is a bound: at least, or at most when `is_limit`; None when nothing is asked."""

    name: str
    unit: str
    measured: float | None
    asked: float | None = None
    is_limit: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "missing"
        if self.asked is None:
            return ""
        fits = self.measured <= self.asked if self.is_limit else self.measured >= self.asked
        return "ok" if fits else "short"


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


@dataclass
class Report:
    quick: bool
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        measured = "–" if figure.measured is None else f"{shown(figure.measured)} {figure.unit}"
        self.say(f"    {figure.name}: {measured} {figure.verdict} {figure.note}".rstrip())

    def table(self) -> str:
        rows = [("figure", "asked", "measured", "")]
        for one in self.figures:
            sign = "≤" if one.is_limit else "≥"
            asked = "" if one.asked is None else f"{sign} {shown(one.asked)} {one.unit}"
            measured = "–" if one.measured is None else f"{shown(one.measured)} {one.unit}"
            rows.append((one.name, asked, measured, one.verdict))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join(line.rstrip() for line in lines)

    def write(self, path: Path | None) -> Path:
        target = path or OUT / time.strftime("bench-%Y%m%d-%H%M%S.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "quick": self.quick,
            "machine": {
                "python": platform.python_version(),
                "system": platform.platform(),
                "cores": os.cpu_count(),
                "load": os.getloadavg(),
            },
            "figures": [asdict(one) | {"verdict": one.verdict} for one in self.figures],
            "details": self.details,
        }
        target.write_text(json.dumps(document, indent=1) + "\n")
        return target

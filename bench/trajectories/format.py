"""Labelled trajectories: the shape of the data, its reader and its checks. `README.md` says what it means.

Law: knows nothing of the detector. A fault names the file, the trajectory and the key.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

HERE = Path(__file__).parent
STEP_S = 2.0  # between two steps that do not say when


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    agent: Annotated[str, Meta(min_length=1)]
    status: Literal["success", "failure", "pending", "skipped"]
    intent: str | None = None
    reasoning: list[str] | None = None
    tool: str | None = None
    tool_input: str | None = None
    output: str | None = None
    added_to_memory: list[str] | None = None
    children: list[str] | None = None
    offset_s: float | None = None


class Trajectory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    family: Annotated[str, Meta(pattern=r"^[a-z0-9_]+$")]
    label: Literal["loop", "normal"]
    steps: Annotated[list[Step], Meta(min_length=3, max_length=200)]
    polling_tools: list[str] = []


class BadTrajectory(Exception):
    """What is wrong, and where."""


def from_dicts(items: Iterable[dict[str, Any]], where: str = "") -> list[Trajectory]:
    """Each checked against the shape; names unique, one label a family, time never falling."""
    read: list[Trajectory] = []
    labels: dict[str, str] = {}
    for number, item in enumerate(items, 1):
        place = f"{where}:{number}" if where else f"trajectory {number}"
        try:
            one = msgspec.convert(item, Trajectory)
        except msgspec.ValidationError as error:
            raise BadTrajectory(f"{place} ({item.get('name', 'unnamed')}): {error}") from error
        if labels.setdefault(one.family, one.label) != one.label:
            raise BadTrajectory(f"{place} ({one.name}): family {one.family} has two labels")
        times = [step.offset_s for step in one.steps if step.offset_s is not None]
        if times != sorted(times):
            raise BadTrajectory(f"{place} ({one.name}): offset_s falls")
        read.append(one)
    twice = [name for name, count in Counter(one.name for one in read).items() if count > 1]
    if twice:
        raise BadTrajectory(f"{where or 'trajectories'}: names used twice: {', '.join(twice[:5])}")
    return read


def load(path: Path) -> list[Trajectory]:
    items = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                items.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.MsgspecError as error:
                raise BadTrajectory(f"{path.name}:{number}: {error}") from error
    return from_dicts(items, path.name)


def untouched() -> list[Trajectory]:
    """The part that is not used for tuning: empty when it does not exist."""
    return _part("untouched")


def opened() -> list[Trajectory]:
    """The first untouched part: opened after it was scored at 0.849, from then on used for tuning."""
    return _part("opened")


def _part(name: str) -> list[Trajectory]:
    """`name*.jsonl`, and what `name.py` makes."""
    read = [one for path in sorted(HERE.glob(f"{name}*.jsonl")) for one in load(path)]
    if (HERE / f"{name}.py").exists():
        read += from_dicts(import_module(f"bench.trajectories.{name}").trajectories(), f"{name}.py")
    return read


def main() -> None:
    for name in sys.argv[1:]:
        families = Counter((one.label, one.family) for one in load(Path(name)))
        print(f"{name}: {sum(families.values())} trajectories")
        for (label, family), count in sorted(families.items()):
            print(f"  {label:6} {family:32} {count}")


if __name__ == "__main__":
    main()

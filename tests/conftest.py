"""What holds for every test: authorities are read once, and the files that take long are begun first.

A file is one worker's from its first test to its last (`--dist loadfile`), so the file that is begun last
decides how long the others stand idle. xdist itself goes by the number of tests, which is no measure: a kill
under load takes longer than five hundred words of a parser.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.authorities import read_once

# Seconds of CPU a test takes, by the room it is in; and of whole files that are far from their room's.
EACH = {"unit": 0.02, "vectors": 0.02, "contract": 0.2, "flows": 0.25, "windows": 4.0}
WHOLE: dict[str, float] = {}


def pytest_configure(config: pytest.Config) -> None:
    read_once()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only where workers share the files; who names tests gets them in the order of the names."""
    if not hasattr(config, "workerinput"):
        return
    tests = Counter(item.path for item in items)
    weights = {
        path: WHOLE.get(path.stem, number * EACH.get(room_of(path.parts), 0.2))
        for path, number in tests.items()
    }
    items.sort(key=lambda item: (-weights[item.path], str(item.path)))


def room_of(parts: tuple[str, ...]) -> str:
    return next((part for part in reversed(parts[:-1]) if part in EACH), "")

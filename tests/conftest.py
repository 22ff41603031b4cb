"""What holds for every test: authorities are read once, no clock decides over examples, and the files that
take long are begun first.

A file is one worker's from its first test to its last (`--dist loadfile`), so the file that is begun last
decides how long the others stand idle. xdist itself goes by the number of tests, which is no measure: a kill
under load takes longer than five hundred words of a parser.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

from tests.authorities import read_once

# Seconds a test takes, by the room it is in; and those of files that are far from what their room says.
# They say what is begun first and nothing else: a wrong one costs a minute, never a test.
EACH = {"unit": 0.02, "vectors": 0.02, "contract": 0.2, "flows": 0.25, "crewai": 2.0, "windows": 10.0}
WHOLE = {
    "contract/test_analyst": 13,
    "contract/test_analyst_faults": 15,
    "contract/test_facts": 15,
    "contract/test_migrations": 10,
    "contract/test_store_copy": 17,
    "contract/test_traffic": 12,
    "flows/test_cli_control": 15,
    "flows/test_demo": 30,
    "flows/test_demo_atlas": 25,
    "flows/test_entropy": 10,
    "flows/test_envelopes": 6,
    "flows/test_example_intervene": 8,
    "flows/test_federation": 17,
    "flows/test_heartbeats": 17,
    "flows/test_insight": 19,
    "flows/test_kill": 12,
    "flows/test_kill_switch": 21,
    "flows/test_live_folded": 12,
    "flows/test_openapi": 12,
    "flows/test_redaction": 15,
    "flows/test_relay_kill": 15,
    "flows/test_relay_trail": 8,
    "flows/test_tenants": 15,
    "trail/test_import": 9,
    "trail/test_long": 18,
    "vectors/test_foreign": 30,
    "windows/test_access": 20,
    "windows/test_accessible": 60,
    "windows/test_archive": 40,
    "windows/test_first_hour": 20,
    "windows/test_god_mode": 50,
    "windows/test_inbox": 30,
    "windows/test_proof": 45,
    "windows/test_scheduler": 65,
    "windows/test_security": 50,
    "windows/test_session": 70,
    "windows/test_sessions": 35,
    "windows/test_settings": 40,
    "windows/test_settings_kept": 45,
    "windows/test_shell": 35,
}
# What they stand on costs as much as they do, as long as it lives.
ON_THE_MESH = ("access", "accessible", "first_hour", "fleet")
LAST = frozenset(f"windows/test_{name}" for name in ON_THE_MESH)


def pytest_configure(config: pytest.Config) -> None:
    read_once()
    # Its deadline of 200 ms is the clock's and not the code's: a busy machine is no finding.
    hypothesis.settings.register_profile("unhurried", deadline=None)
    hypothesis.settings.load_profile("unhurried")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Only where workers share the files; who names tests gets them in the order of the names."""
    if not hasattr(config, "workerinput"):
        return
    tests = Counter(item.path for item in items)
    weights = {
        path: WHOLE.get(_name(path), number * EACH.get(room_of(path.parts), 0.2))
        for path, number in tests.items()
    }
    items.sort(key=lambda item: (_name(item.path) in LAST, -weights[item.path], str(item.path)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded stays: to look through it for garbage, again and again, costs each worker seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def room_of(parts: tuple[str, ...]) -> str:
    return next((part for part in reversed(parts[:-1]) if part in EACH), "")

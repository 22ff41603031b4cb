"""The capabilities, one package each. No other file lists them.

A package registers itself by the modules it has: `feature` (routes, answers, live topics and workers of the
gateway), `queries` (what it adds to the stores' reads) and `fold` (derived data). Workers start in this
order: transparency and webhooks come before alerting, which watches them, and registry comes after every
feature that adds to `AppState.due`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final

FEATURES: Final = (
    "access",
    "graph",
    "fleet",
    "sessions",
    "costs",
    "budgets",
    "facts",
    "drift",
    "cascade",
    "compare",
    "annotations",
    "search",
    "archive",
    "insight",
    "injections",
    "certificates",
    "mcp",
    "hooks",
    "inbox",
    "relay",
    "decisions",
    "kill_switch",
    "instructions",
    "policies",
    "refusals",
    "redaction",
    "registry",
    "loops",
    "nats",
    "otlp",
    "transparency",
    "thoughts",
    "verification",
    "backup",
    "schedule",
    "webhooks",
    "alerting",
    "exporters",
)


def parts(name: str) -> Iterator[ModuleType]:
    """The module of this name of every feature that has one, in the order of `FEATURES`."""
    for feature in FEATURES:
        module = f"observatory.features.{feature}.{name}"
        if find_spec(module) is not None:
            yield import_module(module)

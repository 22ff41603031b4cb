"""The tenant's rulebook as stored: today the version registry; policies, weights and caps join it later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from observatory.protocol.versions import VersionEntry
from observatory.state import Rulebook

# Status of a version that was met but never registered; not a rule, only a note that it was told of.
SEEN = "seen"


def rulebook_of(number: int, rows: Iterable[Sequence[Any]]) -> Rulebook:
    registry: dict[str, dict[str, VersionEntry]] = {}
    noted: set[tuple[str, str]] = set()
    for agent_type, version, status, fields in rows:
        if status == SEEN:
            noted.add((agent_type, version))
            continue
        registry.setdefault(agent_type, {})[version] = VersionEntry(
            agent_type=agent_type,
            version=version,
            status=status,
            fields=msgspec.json.decode(fields) if fields else None,
        )
    return Rulebook(version=number, versions=registry, noted=frozenset(noted))

"""Capability versions: which are accepted, and which fields each may send.

Law (ruling 5): N and N-1 are accepted, an unknown version is accepted and reported as unknown, a retired
one is refused. Versions compare by Semantic Versioning 2.0.0 section 11; a leading `v` and build
metadata do not count.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, Literal

import msgspec

from observatory.protocol.decision_log import DecisionLog
from observatory.protocol.rules import SEMVER

VersionStatus = Literal["current", "previous", "retired"]
Judgement = Literal["accepted", "unknown", "retired"]
SemVerKey = tuple[int, int, int, int, tuple[tuple[int, int, str], ...]]

_SEMVER: Final = re.compile(SEMVER)


class VersionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A registered version of an agent type; `fields` None accepts the whole schema."""

    agent_type: str
    version: str
    status: VersionStatus
    fields: list[str] | None = None


@lru_cache(maxsize=4096)
def parse_semver(text: str) -> SemVerKey:
    """A key that orders and compares versions as semver does; `ValueError` for anything else."""
    if _SEMVER.search(text) is None:
        raise ValueError("not a semantic version")
    core, _, pre = text.removeprefix("v").partition("+")[0].partition("-")
    major, minor, patch = map(int, core.split("."))
    if not pre:
        return major, minor, patch, 1, ()  # a release follows its pre-releases
    parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split("."))
    return major, minor, patch, 0, parts


def judge_version(entries: Mapping[str, VersionEntry], version: str) -> Judgement:
    """Whether a version is accepted, given the entries of its agent type."""
    entry = find(entries, version)
    if entry is None:
        return "unknown"
    return "retired" if entry.status == "retired" else "accepted"


def find(entries: Mapping[str, VersionEntry], version: str) -> VersionEntry | None:
    """The entry of a version, whatever its spelling."""
    exact = entries.get(version)
    if exact is not None:
        return exact
    key = parse_semver(version)
    return next((entry for name, entry in entries.items() if parse_semver(name) == key), None)


def set_fields(log: DecisionLog) -> list[str]:
    """Dotted names of the fields a log uses: those that differ from their default."""
    names = []
    for section in log.__struct_fields__:
        value = getattr(log, section)
        if value is None:
            continue
        for field in msgspec.structs.fields(value):
            content = getattr(value, field.name)
            if content is not None and content is not msgspec.UNSET and content != field.default:
                names.append(f"{section}.{field.name}")
    return names


def fields_not_accepted(log: DecisionLog, accepted: Iterable[str] | None) -> list[str]:
    """The used fields beyond an accepted set of `section` or `section.field` names; None accepts all.

    Required fields are never outside.
    """
    if accepted is None:
        return []
    allowed = set(accepted) | REQUIRED
    return [name for name in set_fields(log) if name not in allowed and name.partition(".")[0] not in allowed]


REQUIRED: Final = frozenset(
    {
        "meta.trace_id",
        "meta.timestamp",
        "identity.agent_id",
        "identity.agent_type",
        "identity.capability_version",
        "action.status",
    }
)

"""Reads a tenant's configuration: versions, policies, budgets, routes, kill switches and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from observatory.pipeline.state import TenantConfig
from observatory.protocol.certificates import Binding
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.redaction import RedactionRules
from observatory.protocol.scopes import switch_of
from observatory.protocol.tenant_config import (
    Budget,
    DecisionSettings,
    DetectorSettings,
    Match,
    PolicyRule,
    Route,
    RoutingSettings,
)
from observatory.protocol.versions import VersionEntry

T = TypeVar("T")
# Status of a version that was used but never registered: a note that this was reported.
SEEN = "seen"
# Reads columns of all rows of one tenant: table, columns -> rows.
ReadAll = Callable[[str, tuple[str, ...]], Sequence[Sequence[Any]]]


def read_tenant_config(number: int, read: ReadAll) -> TenantConfig:
    registry, noted = _versions(read("versions", ("agent_type", "version", "status", "fields")))
    budgets = read("budgets", ("budget_id", "scope", "target", "soft", "hard", "period", "removed_ns"))
    routes = read("routes", ("capability", "weights"))
    switches = read("kill_switches", ("tenant_id", "kill_id", "scope", "target", "state"))
    knobs = {row[0]: row[1] for row in read("knobs", ("name", "value"))}
    newest: dict[str, int] = {}
    for agent_type, version in read("instructions", ("agent_type", "version")):
        newest[agent_type] = max(version, newest.get(agent_type, 0))
    return TenantConfig(
        version=number,
        versions=registry,
        noted=frozenset(noted),
        policies=_policies(read),
        budgets=tuple(
            Budget(budget_id=row[0], scope=row[1], target=row[2], soft=row[3], hard=row[4], period=row[5])
            for row in budgets
            if row[6] is None
        ),
        routes={row[0]: Route(capability=row[0], weights=msgspec.json.decode(row[1])) for row in routes},
        kill_switches=tuple(switch_of(*row) for row in switches if row[4] in ("engaged", "releasing")),
        instructions=newest,
        breakers=frozenset(row[0] for row in read("breakers", ("capability",))),
        detectors=_decoded(knobs.get("detectors"), DetectorSettings) or DetectorSettings(),
        decisions=_decoded(knobs.get("decisions"), DecisionSettings) or DecisionSettings(),
        routing=_decoded(knobs.get("routing"), RoutingSettings) or RoutingSettings(),
        grants=_grants(read),
        redaction=_decoded(knobs.get("redaction"), RedactionRules),
        certificates={
            row[0]: Binding(row[1], row[2])
            for row in read("agent_certificates", ("entity_id", "kind", "value", "removed_ns"))
            if row[3] is None
        },
        bound=frozenset(
            agent_entity_id(tenant_id, agent_id)
            for tenant_id, agent_id, revoked_ns in read("api_keys", ("tenant_id", "agent_id", "revoked_ns"))
            if agent_id is not None and revoked_ns is None
        ),
    )


def _grants(read: ReadAll) -> dict[str, frozenset[str]]:
    given: dict[str, set[str]] = {}
    for entity_id, address, removed_ns in read("grants", ("entity_id", "address", "removed_ns")):
        if removed_ns is None:
            given.setdefault(entity_id, set()).add(address)
    return {entity_id: frozenset(addresses) for entity_id, addresses in given.items()}


def _decoded(value: str | None, kind: type[T]) -> T | None:
    return None if value is None else msgspec.json.decode(value, type=kind)


def _versions(
    rows: Sequence[Sequence[Any]],
) -> tuple[dict[str, dict[str, VersionEntry]], set[tuple[str, str]]]:
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
    return registry, noted


def _policies(read: ReadAll) -> tuple[PolicyRule, ...]:
    columns = (
        "rule_id",
        "position",
        "effect",
        "matches",
        "quorum",
        "deadline_s",
        "on_expiry",
        "note",
        "enabled",
    )
    rules = [
        PolicyRule(
            rule_id=row[0],
            position=row[1],
            effect=row[2],
            match=msgspec.json.decode(row[3], type=Match),
            quorum=row[4],
            deadline_s=row[5],
            on_expiry=row[6],
            note=row[7],
            enabled=bool(row[8]),
        )
        for row in read("policies", (*columns, "removed_ns"))
        if row[9] is None
    ]
    return tuple(sorted(rules, key=lambda rule: (rule.position, rule.rule_id)))

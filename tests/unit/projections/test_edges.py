"""Edges and Yellow Pages as pure folds."""

from typing import Any

import pytest

from observatory.features.fleet.types_edges import SECOND, edges, percentile, status_of
from observatory.features.registry.capabilities import yellow_pages
from observatory.pipeline.ports import TrafficEdge

NOW = 1_000 * SECOND


def count(agent_no: int = 2, waiting: int = 0, waits_s: int | None = None) -> TrafficEdge:
    place = None if agent_no else "type:x"
    oldest = None if waits_s is None else NOW - waits_s * SECOND
    return TrafficEdge(1, agent_no, place, 120, 60, waiting, oldest)


@pytest.mark.parametrize(
    ("edge", "alive", "late_ms", "expected"),
    [
        (count(), "healthy", 10.0, "Healthy"),
        (count(waiting=3, waits_s=30), "unknown", None, "Healthy"),
        (count(waiting=3, waits_s=31), "healthy", None, "Alert"),
        (count(), "healthy", 5_000.0, "Healthy"),
        (count(), "healthy", 5_000.1, "Alert"),
        (count(), "zombie", 1.0, "Alert"),
        (count(), "evicted", 1.0, "Healthy"),  # nothing of it waits any more
        (count(waiting=1, waits_s=0), "evicted", 1.0, "Blocked"),
        (count(agent_no=0, waiting=1, waits_s=0), None, None, "Blocked"),
    ],
)
def test_the_status_of_an_edge(
    edge: TrafficEdge, alive: str | None, late_ms: float | None, expected: str
) -> None:
    """S142, S143, S144"""
    status, reason = status_of(edge, alive, late_ms, NOW)
    assert status == expected and (reason is None) == (status == "Healthy")


def test_an_edge_tells_rate_and_percentiles_of_its_own_pair_only() -> None:
    """S142"""
    people = {
        1: {"agent_id": "a", "entity_id": "agt_a", "liveness": "unknown"},
        2: {"agent_id": "b", "entity_id": "agt_b", "liveness": "healthy"},
    }
    spent = [(1, 2, n * 1_000_000) for n in range(1, 101)] + [(2, 1, 9_000 * 1_000_000)]
    quiet = TrafficEdge(0, 2, None, 1, 0, 0, None)  # a person wrote
    first, second = edges([quiet, count()], spent, people, NOW)
    assert (first["from"], first["to"], first["messages"], first["rate_per_s"]) == ("a", "b", 120, 1.0)
    assert (first["latency_p50_ms"], first["latency_p95_ms"]) == (50.0, 95.0)
    assert (second["from"], second["latency_p50_ms"], second["status"]) == (None, None, "Healthy")


def test_a_percentile_is_one_of_the_values() -> None:
    """S142"""
    assert percentile([], 95) is None
    assert percentile([5_000_000], 50) == percentile([5_000_000], 95) == 5.0
    assert percentile([1_000_000, 2_000_000], 50) == 1.0


def agent(name: str, alive: str, **more: Any) -> dict[str, Any]:
    row = {
        "agent_id": name,
        "agent_type": "writer",
        "capabilities": ["writer"],
        "liveness": alive,
        "model": None,
    }
    rest = {"capability_version": "v1.0.0", "trust_level": "unverified", "cluster_id": None}
    return row | rest | more


def test_the_yellow_pages_leave_the_evicted_out_of_every_share() -> None:
    """S145: and list what has only a circuit or a route."""
    agents = [
        agent("a", "healthy", model="m", capabilities=["writer", "edit"]),
        agent("b", "zombie"),
        agent("c", "evicted", model="m"),
    ]
    breakers = [{"capability": "writer", "state": "open"}, {"capability": "ghost", "state": "closed"}]
    routes = [{"capability": "writer", "weights": '{"a":1.0}'}]
    pages = {page["capability"]: page for page in yellow_pages(agents, breakers, routes)}
    assert set(pages) == {"edit", "ghost", "writer"}
    writer = pages["writer"]
    assert (writer["healthy"], writer["zombie"], writer["evicted"], writer["total"]) == (1, 1, 1, 2)
    assert writer["models"] == {"m": 1} and writer["versions"] == {"v1.0.0": 2}
    assert (writer["breaker"], writer["weights"]) == ("open", {"a": 1.0})
    assert (pages["ghost"]["total"], pages["edit"]["is_agent_type"]) == (0, False)

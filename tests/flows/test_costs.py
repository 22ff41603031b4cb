"""Costs through their doors: who spent what, in a grid, by branch, and where figures do not agree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.flows.fleet import Json
from tests.flows.graphs import ask
from tests.flows.insight import settled
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.workers import ASIA, EU, did


def spend(server: Server, agent: str, cost: float, *parents: str, **more: Any) -> str:
    return did(server, agent, *parents, delta={"cost": cost, "tokens_consumed": 100}, **more)


def mesh(server: Server) -> None:
    """Three agents, two sessions, two clusters: 10.0 in all."""
    spend(server, "planner", 0.5, session="ses-a", kind="planner", tool="plan", model="big")
    spend(server, "writer", 4.0, session="ses-a", kind="writer", tool="write", model="big")
    spend(server, "writer", 2.0, session="ses-b", kind="writer", tool="write", model="small")
    spend(server, "reader", 3.5, session="ses-b", kind="reader", tool="read", cluster=ASIA, model=None)
    settled(server)


def items(server: Server, **query: Any) -> dict[str | None, float]:
    return {row["id"]: row["cost"] for row in ask(server, "/v1/costs", **query)["items"]}


@pytest.mark.req(134, 222, 243)
def test_costs_are_attributed_to_agents_sessions_clusters_types_tools_and_models(
    either_tenant: Tenant,
) -> None:
    """S235: the dearest first, with share, tokens and messages; every way of asking gives the same sum."""
    server = either_tenant
    mesh(server)
    shown = ask(server, "/v1/costs")
    assert shown["total"] == {"cost": 10.0, "tokens": 400, "messages": 4}
    assert shown["items"][0] == {"id": "writer", "cost": 6.0, "share": 0.6, "tokens": 200, "messages": 2}
    assert items(server, by="agent") == {"writer": 6.0, "reader": 3.5, "planner": 0.5}
    assert items(server, by="session") == {"ses-b": 5.5, "ses-a": 4.5}
    assert items(server, by="cluster") == {EU: 6.5, ASIA: 3.5}
    assert items(server, by="type") == {"writer": 6.0, "reader": 3.5, "planner": 0.5}
    assert items(server, by="tool") == {"write": 6.0, "read": 3.5, "plan": 0.5}
    assert items(server, by="model") == {"big": 4.5, None: 3.5, "small": 2.0}
    # Session accumulation agrees with the session's own page.
    assert ask(server, "/v1/sessions/ses-a")["cost"] == 4.5
    first = ask(server, "/v1/costs", limit=2)
    rest = ask(server, "/v1/costs", limit=2, cursor=first["next_cursor"])
    assert [row["id"] for row in (*first["items"], *rest["items"])] == ["writer", "reader", "planner"]
    assert rest["next_cursor"] is None
    # The same within one session: what is past the first page is reached, not lost.
    received = ask(server, "/v1/costs", by="agent", session="ses-b", limit=1)
    assert received["total"]["cost"] == 5.5
    beyond = ask(server, "/v1/costs", by="agent", session="ses-b", limit=1, cursor=received["next_cursor"])
    assert [row["id"] for row in (*received["items"], *beyond["items"])] == ["reader", "writer"]
    assert beyond["next_cursor"] is None
    old = ask(server, "/v1/costs", since="2020-01-01T00:00:00Z", until="2020-01-02T00:00:00Z")
    assert (old["items"], old["total"]["cost"]) == ([], 0.0)


@pytest.mark.req(105, 153)
@pytest.mark.parametrize("bucket", ["minute", "hour"])
def test_the_heatmap_is_a_grid_whose_columns_add_up(either_tenant: Tenant, bucket: str) -> None:
    """S236: rows are the dearest, all others are one row."""
    server = either_tenant
    mesh(server)
    for by, first, total in (("cluster", EU, 6.5), ("agent", "writer", 6.0), ("session", "ses-b", 5.5)):
        shown = ask(server, "/v1/costs/heatmap", by=by, bucket=bucket)
        assert len(shown["columns"]) == (60 if bucket == "minute" else 24)
        assert (shown["rows"][0]["id"], shown["rows"][0]["total"]) == (first, total)
        assert all(len(row["values"]) == len(shown["columns"]) for row in shown["rows"])
        assert (shown["total"], sum(shown["others"])) == (10.0, 0.0)
        narrow = ask(server, "/v1/costs/heatmap", by=by, bucket=bucket, limit=1)
        assert len(narrow["rows"]) == 1 and round(sum(narrow["others"]), 6) == round(10.0 - total, 6)
        for column, whole in enumerate(narrow["totals"]):
            assert round(narrow["rows"][0]["values"][column] + narrow["others"][column], 6) == whole


@pytest.mark.req(105, 243)
def test_a_sessions_cost_is_told_by_branch(either_tenant: Tenant) -> None:
    """S238: along the causal graph, the dearest first; the parts of a fork add up with its own cost."""
    server = either_tenant
    root = spend(server, "planner", 0.5, session="ses-a")
    cheap = spend(server, "reader", 0.25, root, session="ses-a")
    dear = spend(server, "writer", 1.0, root, session="ses-a")
    spend(server, "writer", 3.0, dear, session="ses-a", intent="rewrite everything")
    shown = ask(server, "/v1/sessions/ses-a/costs")
    assert (shown["cost"], shown["steps"], shown["branches_count"]) == (4.75, 4, 3)
    assert [(branch["step_id"], branch["branch_cost"]) for branch in shown["branches"]] == [
        (root, 4.75),
        (dear, 4.0),
        (cheap, 0.25),
    ]
    assert shown["branches"][1]["share"] == round(4.0 / 4.75, 6)
    assert shown["branches"][1]["agents"] == [{"agent_id": "writer", "cost": 4.0}]
    assert [one["agent_id"] for one in shown["agents"]] == ["writer", "planner", "reader"]
    assert shown["hottest"][:2] == [root, dear] and len(shown["hottest"]) == 3
    missing = server.http("operator").get("/v1/sessions/none/costs")
    assert missing.status_code == 404 and missing.json()["detail"]


def test_where_reported_and_computed_figures_differ_is_listed(either_tenant: Tenant) -> None:
    """S241: one that fell, and one its own step does not explain; newest first."""
    server = either_tenant
    for figure, cost in ((1.0, None), (0.4, None), (2.0, 0.1)):
        did(server, "writer", session="ses-a", delta={"cumulative_session_cost": figure, "cost": cost})
    did(server, "reader", session="ses-a", delta={"cumulative_session_cost": 1.0})
    settled(server)
    gaps = ask(server, "/v1/costs/gaps")
    found = [(gap["kind"], gap["reported"], gap["computed"], gap["gap"]) for gap in gaps["items"]]
    assert found == [("differs", 2.0, 0.5, 1.5), ("fell", 0.4, 1.0, -0.6)]
    assert {gap["agent_id"] for gap in gaps["items"]} == {"writer"}
    first = ask(server, "/v1/costs/gaps", limit=1)
    second = ask(server, "/v1/costs/gaps", limit=1, cursor=first["next_cursor"])
    assert [*first["items"], *second["items"]] == gaps["items"] and second["next_cursor"] is None
    assert ask(server, "/v1/costs/gaps", session="ses-a", agent="writer") == gaps
    assert ask(server, "/v1/costs/gaps", agent="reader")["items"] == []
    assert ask(server, "/v1/sessions/ses-a/costs")["fell"]


def test_a_step_of_no_cost_does_not_hide_what_its_figure_grew_s1271(either_tenant: Tenant) -> None:
    """S1271: the board has what a cap would have counted, and the contradiction is listed."""
    for figure in (2.0, 7.0):
        did(either_tenant, "modest", session="ses-m", delta={"cumulative_session_cost": figure, "cost": 0.0})
    settled(either_tenant)
    rows = ask(either_tenant, "/v1/costs", by="agent")["items"]
    assert [row["cost"] for row in rows if row["id"] == "modest"] == [7.0]
    gaps = ask(either_tenant, "/v1/costs/gaps", agent="modest")["items"]
    assert [(gap["reported"], gap["computed"]) for gap in gaps] == [(7.0, 2.0), (2.0, 0.0)]


def test_burn_rates_stand_beside_every_budget_and_flat_ones_have_no_time(either_tenant: Tenant) -> None:
    """S239, S240"""
    server, door = either_tenant, either_tenant.http("operator")
    caps: list[Json] = [
        {"scope": "tenant", "soft": 15, "hard": 20},
        {"scope": "cluster", "target": ASIA, "hard": 7},
        {"scope": "session", "target": "ses-a", "hard": 3},
        {"scope": "agent", "target": "*", "hard": 12},
        {"scope": "agent", "target": "somebody-else", "hard": 5},
    ]
    assert [door.put("/v1/budgets", json=cap).status_code for cap in caps] == [200] * 5
    server.http("operator").put("/v1/budgets", json={"scope": "session", "target": "ses-a", "hard": 4.5})
    mesh(server)
    shown = ask(server, "/v1/costs/burn")
    # Over five minutes, the first of them by its share: all of it, or all but what fades.
    assert 1.5 < shown["tenant"]["per_min_5m"] <= 2.0 and 0.16 < shown["tenant"]["per_min_1h"] <= 0.17
    assert [row["id"] for row in shown["agents"]] == ["writer", "reader", "planner"]
    assert [row["id"] for row in shown["clusters"]] == [EU, ASIA]
    assert [row["id"] for row in shown["sessions"]] == ["ses-b", "ses-a"]
    budgets = {(row["scope"], row["target"]): row for row in shown["budgets"]}
    tenant = budgets["tenant", server.tenant_id]
    assert (tenant["spent"], tenant["share"]) == (10.0, 0.5)
    assert tenant["hard_in_s"] == pytest.approx(10 / tenant["per_min_5m"] * 60, rel=1e-3)
    assert tenant["soft_in_s"] == pytest.approx(5 / tenant["per_min_5m"] * 60, rel=1e-3)
    assert tenant["hard_at"] > shown["as_of"]
    assert budgets["cluster", ASIA]["spent"] == 3.5 and budgets["cluster", ASIA]["per_min_5m"] > 0.5
    full = budgets["session", "ses-a"]
    assert (full["spent"], full["hard_in_s"]) == (4.5, 0.0)  # there already
    each = budgets["agent", "*"]
    assert (each["whose"], each["spent"]) == ("writer", 6.0) and each["hottest"]["agent_id"] == "writer"
    flat = budgets["agent", "somebody-else"]
    assert (flat["per_min_5m"], flat["hard_in_s"], flat["hottest"]) == (0.0, None, None)
    assert shown["budgets"][0] == full and shown["budgets"][-1] == flat


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/costs", {"by": "colour"}),
        ("/v1/costs", {"since": "yesterday"}),
        ("/v1/costs", {"since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}),
        ("/v1/costs", {"since": "2020-01-01T00:00:00Z"}),
        ("/v1/costs", {"cursor": "nonsense"}),
        ("/v1/costs", {"by": "tool", "cursor": "WzEsMl0"}),
        ("/v1/costs/heatmap", {"by": "tool"}),
        ("/v1/costs/heatmap", {"since": "2020-01-01T00:00:00Z"}),
        ("/v1/costs/heatmap", {"since": "2200-01-01T00:00:00Z"}),
        ("/v1/costs/heatmap", {"limit": 1_000}),
        ("/v1/costs/gaps", {"cursor": "nonsense"}),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(server: Server, path: str, query: Json) -> None:
    """S237"""
    answer = server.http("operator").get(path, params=query)
    assert answer.status_code == 400 and answer.json()["detail"], answer.text


def test_nobody_has_no_gaps(server: Server) -> None:
    """S241"""
    for query in ({"agent": "nobody-at-all"}, {"session": "no-such-session"}):
        assert ask(server, "/v1/costs/gaps", **query) == {"items": [], "next_cursor": None}

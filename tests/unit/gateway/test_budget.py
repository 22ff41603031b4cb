"""Budgets as pure functions: what a message costs, which caps it counts for, and when periods begin."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observatory.features.budgets import stage as budget
from observatory.features.budgets.types import period_start
from observatory.ledger.chain import GENESIS_HASH, ChainHead
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import AgentRow, MemberRow, SessionRow, TenantRow
from observatory.pipeline.state import BatchState, Principal, SubmissionResult, TenantConfig
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import Budget
from tests.samples import decision_log, envelope

TENANT = "tnt_default"
NAME = "researcher-alpha-9"
WHO = Principal(tenant_id=TENANT, role="agent", key_id="key_1")
NOW = int(datetime(2026, 2, 16, 14, tzinfo=UTC).timestamp()) * 1_000_000_000
DAY = 86_400 * 1_000_000_000


def cap(scope: Any = "tenant", target: str = TENANT, **more: Any) -> Budget:
    fields = {"budget_id": "bud_1", "soft": None, "hard": None} | more
    return Budget(scope=scope, target=target, **fields)


class Mesh:
    """One agent in one session, sending; costs are folded as the pipeline does it."""

    def __init__(self, *budgets: Budget) -> None:
        self.memory = BatchState(
            TenantRow(tenant_id=TENANT, tenant_no=1),
            ChainHead(40, GENESIS_HASH),
            TenantConfig(budgets=budgets),
        )
        self.agent = AgentRow(agent_no=1, entity_id=agent_entity_id(TENANT, NAME), agent_id=NAME)
        self.session = SessionRow(session_no=1, session_id="s-1", trace_id="0" * 31 + "1")
        self.member = MemberRow(session_no=1, agent_no=1)
        self.writes: list[Any] = []

    def send(self, now_ns: int = NOW, **state_delta: Any) -> tuple[SubmissionResult | None, MessageContext]:
        base = {"cumulative_session_cost": None, **state_delta}
        message = intercept(json.dumps(decision_log(state_delta=base)).encode())
        assert isinstance(message, Message)
        ctx = MessageContext(
            message, WHO, 0, agent=self.agent, session=self.session, member=self.member,
            entity_id=self.agent.entity_id, step_id="step",
        )  # fmt: skip
        verdict = budget.check(ctx, self.memory, now_ns)
        if verdict is None:
            self.writes += ctx.writes
            total = state_delta.get("cumulative_session_cost")
            if total is not None:
                self.session.cost += total - self.member.cost
                self.session.spent += max(0.0, total - self.member.cost)
                self.agent.cost += max(0.0, total - self.member.cost)
                self.member.cost = total
        return verdict, ctx

    def spent(self, budget_id: str = "bud_1") -> float:
        found: float = self.memory.rows["spend"][budget_id]["spent"]
        return found


def test_without_budgets_nothing_is_looked_at_s156() -> None:
    mesh = Mesh()
    assert mesh.send(cost=1e9)[0] is None
    assert mesh.memory.rows == {} and mesh.writes == []


def test_a_message_costs_what_it_says_or_what_the_cumulative_figure_grew_by_s156() -> None:
    mesh = Mesh(cap(soft=1e9))
    figures: list[tuple[dict[str, Any], float]] = [
        ({"cumulative_session_cost": 2.0}, 2.0),
        ({"cumulative_session_cost": 2.5}, 2.5),
        ({"cumulative_session_cost": 1.0}, 2.5),  # it fell: nothing is given back
        ({"cumulative_session_cost": 1.5, "cost": 0.1}, 3.0),  # whichever is more
        ({"cumulative_session_cost": 2.5, "cost": 0}, 4.0),
        ({"cumulative_session_cost": 2.5, "cost": 0.5}, 4.5),
        ({"cost": -5}, 4.5),
        ({"cost": 0.4}, 4.9),
    ]
    for delta, spent in figures:
        verdict, _ = mesh.send(**delta)
        assert verdict is None and mesh.spent() == spent
    assert mesh.send()[0] is None and mesh.spent() == 4.9


def test_a_message_without_costs_is_not_judged_s156() -> None:
    mesh = Mesh(cap(hard=0.0))
    assert mesh.send()[0] is None
    message = intercept(json.dumps(envelope("text")).encode())
    assert isinstance(message, Message)
    ctx = MessageContext(message, WHO, 0, agent=mesh.agent, session=mesh.session, member=mesh.member)
    assert budget.check(ctx, mesh.memory, NOW) is None
    verdict, _ = mesh.send(cost=0.000001)
    assert verdict is not None and verdict.code == 402


def test_beyond_the_hard_cap_it_is_refused_by_name_and_nothing_is_added_s154() -> None:
    mesh = Mesh(cap(hard=5), cap("session", "s-1", hard=3, budget_id="bud_2"))
    assert mesh.send(cost=3)[0] is None
    verdict, ctx = mesh.send(cost=0.5)
    assert verdict is not None and (verdict.code, verdict.archived) == (402, True)
    assert (verdict.answer.reason, verdict.answer.cap) == ("budget_exceeded", "session:s-1 hard 3")
    assert "PUT /v1/budgets" in verdict.answer.detail and "0.5" in verdict.answer.detail
    (event,) = verdict.events
    assert event.event_type == "budget_exceeded"
    assert (event.detail["spent"], event.detail["cost"], event.detail["hard"]) == ("3", "0.5", "3")
    assert ctx.writes == []
    assert (mesh.spent("bud_1"), mesh.spent("bud_2")) == (3, 3)


def test_three_times_a_tenth_is_not_more_than_three_tenths_s154() -> None:
    mesh = Mesh(cap(hard=0.3))
    assert [mesh.send(cost=0.1)[0] for _ in range(3)] == [None] * 3
    assert mesh.send(cost=0.000000001)[0] is not None


@given(st.lists(st.floats(0, 10), max_size=30), st.floats(0, 50))
def test_a_hard_cap_is_never_passed_s154(costs: list[float], hard: float) -> None:
    mesh = Mesh(cap(hard=hard), cap("agent", "*", hard=hard, budget_id="bud_2"))
    total = 0.0
    for cost in costs:
        verdict, _ = mesh.send(cumulative_session_cost=total + cost)
        total = mesh.member.cost
        if verdict is None and mesh.memory.rows:
            assert mesh.spent() <= hard + 1e-9 and mesh.agent.cost <= hard + 1e-9


def test_the_first_beyond_the_soft_cap_waits_for_a_person_once_a_period_s155() -> None:
    mesh = Mesh(cap(soft=1.0, hard=9.0, period="daily"))
    held = [bool(mesh.send(cost=0.6)[1].gates) for _ in range(4)]
    assert held == [False, True, False, False]
    assert mesh.memory.rows["spend"]["bud_1"]["soft_seq"] == 41  # the number its warning will have
    _, ctx = mesh.send(NOW + DAY, cost=0.6)
    assert ctx.gates == [] and mesh.spent() == 0.6
    _, ctx = mesh.send(NOW + DAY, cost=0.6)
    (gate,), (event,) = ctx.gates, ctx.events
    assert (gate.reason, event.event_type, event.detail["soft"]) == ("budget", "budget_warning", "1")


@pytest.mark.parametrize(
    ("scope", "target", "counts"),
    [
        ("tenant", TENANT, True),
        ("cluster", "aws-eu-central-1-mesh-04", True),
        ("cluster", "elsewhere", False),
        ("session", "s-1", True),
        ("session", "s-2", False),
        ("session", "*", True),
        ("agent", NAME, True),
        ("agent", agent_entity_id(TENANT, NAME), True),
        ("agent", "another", False),
        ("agent", "*", True),
    ],
)
def test_a_cap_counts_for_its_own_target_s157(scope: str, target: str, counts: bool) -> None:
    verdict, _ = Mesh(cap(scope, target, hard=1)).send(cumulative_session_cost=2)
    assert (verdict is not None) is counts
    if verdict is not None:
        assert verdict.answer.cap == f"{scope}:{target} hard 1"


def test_each_session_has_its_own_cap_under_a_star_s157() -> None:
    mesh = Mesh(cap("session", "*", soft=1, hard=2))
    assert mesh.send(cumulative_session_cost=0.9)[1].gates == []
    assert len(mesh.send(cumulative_session_cost=1.1)[1].gates) == 1
    assert mesh.send(cumulative_session_cost=1.2)[1].gates == []
    verdict, _ = mesh.send(cumulative_session_cost=2.1)
    assert verdict is not None and "session s-1 may spend 2" in verdict.answer.detail
    mesh.session, mesh.member = (
        SessionRow(session_no=2, session_id="s-2", trace_id="0" * 31 + "2"),
        MemberRow(session_no=2, agent_no=1),
    )
    assert mesh.send(cumulative_session_cost=0.9)[0] is None
    assert mesh.memory.rows == {}  # the session's own row knows what it has spent


@pytest.mark.parametrize(
    ("period", "now", "begin", "end"),
    [
        ("daily", "2026-02-16T23:59:59", "2026-02-16", "2026-02-17"),
        ("daily", "2026-02-17T00:00:00", "2026-02-17", "2026-02-18"),
        ("monthly", "2026-02-28T23:59:59", "2026-02-01", "2026-03-01"),
        ("monthly", "2028-02-29T12:00:00", "2028-02-01", "2028-03-01"),
        ("monthly", "2026-12-31T23:59:59", "2026-12-01", "2027-01-01"),
        ("monthly", "2026-01-01T00:00:00", "2026-01-01", "2026-02-01"),
    ],
)
def test_periods_are_utc_days_and_months_s157(period: Any, now: str, begin: str, end: str) -> None:
    def ns(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000_000

    assert period_start(period, ns(now)) == ns(begin)
    assert budget.period_end(period, ns(now)) == ns(end)
    assert (period_start("none", ns(now)), budget.period_end("none", ns(now))) == (0, None)


def test_spending_begins_anew_with_the_period_and_a_clock_set_back_loses_nothing_s157() -> None:
    mesh = Mesh(cap(hard=1, period="monthly"))
    assert mesh.send(cost=1)[0] is None
    assert mesh.send(NOW + 5 * DAY, cost=0.1)[0] is not None
    assert mesh.send(NOW + 20 * DAY, cost=0.1)[0] is None
    assert mesh.spent() == 0.1
    assert mesh.send(NOW, cost=1)[0] is not None


def test_a_batch_writes_each_budget_once_s154() -> None:
    mesh = Mesh(cap(hard=100))
    mesh.memory.rows["spend"] = {"bud_1": {"spent": 7.0, "period_ns": 0, "soft_seq": None}}
    for _ in range(10):
        mesh.send(cost=1)
    (write,) = mesh.writes
    assert write.table == "spend" and write.key == ("tenant_id", "budget_id")
    assert write.values["spent"] == 17.0 and write.values["tenant_id"] == TENANT


MONEY = [(0.0, "0"), (5.0, "5"), (0.1 + 0.2, "0.3"), (1e-10, "0"), (1234.5, "1234.5"), (1e15, "1" + "0" * 15)]


@pytest.mark.parametrize(("amount", "text"), MONEY)
def test_money_is_decimal_text_in_events_s158(amount: float, text: str) -> None:
    assert budget.money(amount) == text

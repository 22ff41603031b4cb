"""What of the CrewAI adapter needs no CrewAI: names, causes, and whose tokens they were."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from observatory.sdk.credentials import GatewayCredentials
from observatory.sdk.delivery import Delivery
from observatory.sdk.integrations import crewai_runs
from observatory.sdk.integrations.course import Terms
from observatory.sdk.integrations.crewai_runs import CrewRun, CrewRuns, slug, total_of
from observatory.sdk.outbox import Outbox

ROLES = {
    "Senior Researcher": "senior-researcher",
    "  Böse/Rolle\n": "böse-rolle",
    "": "crewai-agent",
    "...": "crewai-agent",
    "x" * 300: "x" * 100,
}


def agent(role: str, llm: Any = None) -> Any:
    return SimpleNamespace(role=role, llm=llm, crew=None)


def task(name: str, context: Any = None) -> Any:
    return SimpleNamespace(id=name, context=context, tools_errors=0)


class Model:
    def __init__(self, total: int | None) -> None:
        self.model, self.total = "m", total

    def get_token_usage_summary(self) -> Any:
        return SimpleNamespace(total_tokens=self.total)


@pytest.fixture
def runs(tmp_path: Path) -> Any:
    outbox = Outbox("crewai", GatewayCredentials("http://127.0.0.1:9", "obs_none", tmp_path), Delivery())
    made = CrewRuns(outbox, Terms(), "1.0.0", None)
    yield made
    made.close()
    outbox.close(0)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_a_name_and_of_two_alike_each_has_its_own_s926(role: str) -> None:
    assert slug(role) == ROLES[role]
    one, two = agent(role), agent(role)
    run = CrewRun(object(), [one, two])
    assert [run.name_of(one), run.name_of(two), run.name_of(one)] == [
        slug(role),
        f"{slug(role)}-2",
        slug(role),
    ]


def test_what_a_model_spent_is_told_once_whoever_shares_it_s926(runs: CrewRuns) -> None:
    """S926: what it spent before it was met is nobody's; one that counts nothing tells nothing."""
    shared = Model(100)
    runs.meet(shared)
    shared.total = 142
    assert runs.spent(shared) == 42
    assert runs.spent(shared) is None, "told already, to whoever asked first"
    shared.total = 10
    assert runs.spent(shared) is None
    assert total_of("gpt") is total_of(Model(None)) is total_of(None) is None


def test_agents_of_ended_kickoffs_are_let_go_beyond_a_number_s926(
    runs: CrewRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S926: each listens, so they are bounded; one that is at work is never let go."""
    monkeypatch.setattr(crewai_runs, "MAX_AGENTS", 2)
    crew = SimpleNamespace(agents=[agent("busy")], manager_agent=None)
    runs.begin(crew)
    _, busy = runs.work(crew, task("t"), crew.agents[0])
    ended = []
    for number in range(4):
        other = SimpleNamespace(agents=[agent(f"idle {number}")], manager_agent=None)
        runs.begin(other)
        ended.append(runs.work(other, task("t"), other.agents[0])[1].course.sender)
        runs.end(other)
    assert not busy.course.sender.orders.closed
    assert [one.orders.closed for one in ended] == [True, True, True, False]

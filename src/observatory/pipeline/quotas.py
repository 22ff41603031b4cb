"""Quotas per key and per agent for pending requests and refusals: set once at start, from the settings."""

from __future__ import annotations

from typing import Final

import msgspec

from observatory.pipeline.rows import AgentRow
from observatory.pipeline.state import BatchState
from observatory.protocol.responses import Refused

# The tables whose pending rows count against a quota.
DECISIONS: Final = "decisions"
REMINDERS: Final = "jobs"


class Quotas(msgspec.Struct, frozen=True):
    refusals_in_full: int = 10  # per minute, key and reason; further ones are only counted
    agent_decisions: int = 20  # pending decisions per agent
    agent_reminders: int = 100  # reminders per agent that are not due yet


_quotas = Quotas()


def set_quotas(quotas: Quotas) -> None:
    """Set the quotas for every tenant of this gateway."""
    global _quotas
    _quotas = quotas


def current_quotas() -> Quotas:
    return _quotas


def quota_refusal(memory: BatchState, table: str, agent: AgentRow | None) -> Refused | None:
    """The refusal of one more row, if this agent has reached its quota."""
    if agent is None:
        return None
    waiting = memory.waiting.get((table, agent.agent_no), 0)
    if table == DECISIONS and waiting >= _quotas.agent_decisions:
        detail = (
            f"{waiting} decisions of this agent are pending; the limit agent_decisions is "
            f"{_quotas.agent_decisions}: wait until some are answered, cancelled or expired"
        )
        return Refused(reason="too_many_decisions", detail=detail)
    if table == REMINDERS and waiting >= _quotas.agent_reminders:
        detail = (
            f"{waiting} reminders of this agent are pending; the limit agent_reminders is "
            f"{_quotas.agent_reminders}: wait until some are due, or remove some"
        )
        return Refused(reason="too_many_reminders", detail=detail)
    return None


def count_waiting(memory: BatchState, table: str, agent_no: int, change: int = 1) -> None:
    """Count one more waiting row of this agent, or one less."""
    memory.waiting[table, agent_no] = max(0, memory.waiting.get((table, agent_no), 0) + change)

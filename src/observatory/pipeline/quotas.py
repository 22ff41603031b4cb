"""How much one key and one agent may make the record hold: set once at start, from the settings."""

from __future__ import annotations

from typing import Final

import msgspec

from observatory.pipeline.rows import Agent
from observatory.pipeline.state import Memory
from observatory.protocol.answers import Refused

# The tables of what is asked for.
DECISIONS: Final = "decisions"
REMINDERS: Final = "jobs"


class Quotas(msgspec.Struct, frozen=True):
    refusals_in_full: int = 10  # a minute, for each key and reason; the others are counted
    agent_decisions: int = 20  # pending ones of an agent
    agent_reminders: int = 100  # of an agent, that have not come yet


_quotas = Quotas()


def settle(quotas: Quotas) -> None:
    """What holds for every tenant of this gateway."""
    global _quotas
    _quotas = quotas


def in_force() -> Quotas:
    return _quotas


def exceeded(memory: Memory, table: str, agent: Agent | None) -> Refused | None:
    """The refusal of one more, when as many as may of this agent wait already."""
    if agent is None:
        return None
    waiting = memory.waiting.get((table, agent.agent_no), 0)
    if table == DECISIONS and waiting >= _quotas.agent_decisions:
        detail = (
            f"{waiting} decisions of this agent are pending; agent_decisions allows "
            f"{_quotas.agent_decisions}: wait until some are answered, cancelled or expired"
        )
        return Refused(reason="too_many_decisions", detail=detail)
    if table == REMINDERS and waiting >= _quotas.agent_reminders:
        detail = (
            f"{waiting} reminders of this agent wait; agent_reminders allows {_quotas.agent_reminders}: "
            "wait until some have come, or have some removed"
        )
        return Refused(reason="too_many_reminders", detail=detail)
    return None


def note(memory: Memory, table: str, agent_no: int, change: int = 1) -> None:
    """One more of this agent waits, or one less."""
    memory.waiting[table, agent_no] = max(0, memory.waiting.get((table, agent_no), 0) + change)

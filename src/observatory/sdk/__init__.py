"""What an agent imports: `Agent`, `AsyncAgent`, and what they hand back or raise.

Law: the agent's own work is never blocked and never broken by its telemetry. `step` returns at once;
what the gateway cannot take now waits on disk, in order.
"""

from observatory.sdk.agent import Agent
from observatory.sdk.aio import AsyncAgent, AsyncSession, AsyncStep
from observatory.sdk.client import Answer, Fault
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Lost, NotAnswered, NotConfigured, Rejected
from observatory.sdk.outbox import Outbox
from observatory.sdk.session import Handoff, Session
from observatory.sdk.step import Step

__all__ = [
    "Agent",
    "Answer",
    "AsyncAgent",
    "AsyncSession",
    "AsyncStep",
    "Delivery",
    "Fault",
    "Handoff",
    "Lost",
    "NotAnswered",
    "NotConfigured",
    "Outbox",
    "Rejected",
    "Session",
    "Step",
]

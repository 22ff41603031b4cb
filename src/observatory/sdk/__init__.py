"""What an agent imports: `Agent`, `AsyncAgent`, and what they hand back or raise.

Law: the agent's own work is never blocked and never broken by its telemetry. `step` returns at once;
what the gateway cannot take now waits on disk, in order. It waits only for people: while it is paused or
stopped, and for the verdict it asked for.
"""

from observatory.protocol.thoughts import RecordedThought as Recorded
from observatory.sdk.agent import Agent
from observatory.sdk.aio import AsyncAgent, AsyncSession, AsyncStep
from observatory.sdk.client import Answer, Fault
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Cancelled, Denied, Lost, NotAnswered, NotConfigured, NotSupported, Rejected
from observatory.sdk.gate import Approval
from observatory.sdk.outbox import Outbox
from observatory.sdk.received import Decision, Handoff, Prompt, Received, Verdict
from observatory.sdk.session import Session
from observatory.sdk.step import Step
from observatory.sdk.thoughts import AsyncProof, ChainBroken, Proof

__all__ = [
    "Agent",
    "Answer",
    "Approval",
    "AsyncAgent",
    "AsyncProof",
    "AsyncSession",
    "AsyncStep",
    "Cancelled",
    "ChainBroken",
    "Decision",
    "Delivery",
    "Denied",
    "Fault",
    "Handoff",
    "Lost",
    "NotAnswered",
    "NotConfigured",
    "NotSupported",
    "Outbox",
    "Prompt",
    "Proof",
    "Received",
    "Recorded",
    "Rejected",
    "Session",
    "Step",
    "Verdict",
]

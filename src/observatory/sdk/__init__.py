"""The public Python SDK: `Agent`, `AsyncAgent`, and the types they return or raise.

Rule: telemetry never blocks or breaks the agent's own work. `step` returns at once; messages that the
gateway cannot accept now are stored on disk, in order. The agent waits only for people: while it is paused or
stopped, and for a verdict it requested.

Names are imported on first use: a hook process lives for one call and loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from observatory.protocol.thoughts import RecordedThought as Recorded
    from observatory.sdk.agent import Agent
    from observatory.sdk.aio import AsyncAgent, AsyncSession, AsyncStep
    from observatory.sdk.answers import Answer, Fault
    from observatory.sdk.approval import Approval
    from observatory.sdk.delivery import Delivery
    from observatory.sdk.errors import (
        Cancelled,
        Denied,
        Lost,
        NotAnswered,
        NotConfigured,
        NotSupported,
        Rejected,
    )
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

_MODULES = {
    "agent": ("Agent",),
    "aio": ("AsyncAgent", "AsyncSession", "AsyncStep"),
    "answers": ("Answer", "Fault"),
    "approval": ("Approval",),
    "delivery": ("Delivery",),
    "errors": ("Cancelled", "Denied", "Lost", "NotAnswered", "NotConfigured", "NotSupported", "Rejected"),
    "outbox": ("Outbox",),
    "received": ("Decision", "Handoff", "Prompt", "Received", "Verdict"),
    "session": ("Session",),
    "step": ("Step",),
    "thoughts": ("AsyncProof", "ChainBroken", "Proof"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "Recorded":
        return import_module("observatory.protocol.thoughts").RecordedThought
    if (module := _MODULE_OF.get(name)) is None:
        raise AttributeError(f"module 'observatory.sdk' has no attribute {name!r}")
    return getattr(import_module(f"observatory.sdk.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

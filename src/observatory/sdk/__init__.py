"""What an agent imports: `Agent`, `AsyncAgent`, and what they hand back or raise.

Law: the agent's own work is never blocked and never broken by its telemetry. `step` returns at once;
what the gateway cannot take now waits on disk, in order. It waits only for people: while it is paused or
stopped, and for the verdict it asked for.

The names are resolved on first use: a hook's process, which lives for one call, loads only what it needs.
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

_PLACES = {
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
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "Recorded":
        return import_module("observatory.protocol.thoughts").RecordedThought
    if (place := _PLACE_OF.get(name)) is None:
        raise AttributeError(f"module 'observatory.sdk' has no attribute {name!r}")
    return getattr(import_module(f"observatory.sdk.{place}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""What happens to a message between arrival and commit, in order. `stages.py` fills it in for the gateway.

The pipeline knows no feature: it runs the functions it is handed. All of them are pure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.message_context import Effect, MessageContext, Stage
from observatory.pipeline.state import ReadSet
from observatory.protocol.message import Message

Reads = Callable[[Message, str, ReadSet], None]  # message, tenant, rows to read


@dataclass(frozen=True, kw_only=True)
class WritePath:
    # Asked before the batch is loaded: which rows the stages need of each message.
    reads: tuple[Reads, ...]
    # Run in order until one refuses.
    stages: tuple[Stage, ...]
    # After a message was archived as forwarded, at once or after a hold.
    forwarded: tuple[Effect, ...]
    # After it was archived as held, and after it was archived in any state.
    held: tuple[Callable[[MessageContext, EventWriter, int], None], ...]
    archived: tuple[Effect, ...]

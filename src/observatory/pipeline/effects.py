"""What follows from a message being forwarded, at once or after a hold, in this order.

Kept apart from the pipeline because the relay forwards too. An effect refuses nothing: whoever may
refuse is a stage.
"""

from __future__ import annotations

from observatory.features.decisions import commands as decisions
from observatory.features.registry import router
from observatory.features.registry import stage as registry
from observatory.features.schedule import reminders
from observatory.pipeline.message_context import Effect, Passage
from observatory.pipeline.state import Desk

FORWARDED: tuple[Effect, ...] = (registry.follow, router.route, decisions.follow, reminders.follow)


def forwarded(passage: Passage, desk: Desk, number: int) -> None:
    for effect in FORWARDED:
        effect(passage, desk, number)

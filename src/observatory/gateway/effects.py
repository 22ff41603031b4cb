"""What follows from a message being forwarded, at once or after a hold, in this order.

Kept apart from the pipeline because the relay forwards too. An effect refuses nothing: whoever may
refuse is a stage.
"""

from __future__ import annotations

from observatory.gateway import decisions, registry, reminders, router
from observatory.gateway.passage import Effect, Passage
from observatory.state import Desk

FORWARDED: tuple[Effect, ...] = (registry.follow, router.route, decisions.follow, reminders.follow)


def forwarded(passage: Passage, desk: Desk, number: int) -> None:
    for effect in FORWARDED:
        effect(passage, desk, number)

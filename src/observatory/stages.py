"""The write path of the gateway: every stage in its order.

Who sends, which agent it is, where the message belongs, which version, whether it may pass, and whether a
person must approve it first. An effect refuses nothing: what may refuse is a stage.
"""

from __future__ import annotations

from typing import Final

from observatory.features.budgets import stage as budgets
from observatory.features.decisions import commands as decisions
from observatory.features.decisions import stage as decision_rules
from observatory.features.loops import stage as loops
from observatory.features.registry import circuit_breaker, router, stage_versions
from observatory.features.relay import stage as relay
from observatory.features.schedule import reminders
from observatory.pipeline import agents, authority, placement, policy, sender_clock
from observatory.pipeline.write_path import WritePath

WRITE_PATH: Final = WritePath(
    reads=(
        placement.add_message_reads,
        router.add_route_reads,
        decisions.add_reads,
        reminders.add_reminder_reads,
    ),
    stages=(
        authority.check,
        agents.find_or_create_agent,
        placement.place_message,
        stage_versions.check,
        loops.check,
        decision_rules.check,
        policy.check,
        budgets.check,
        reminders.check,
        router.warn_unknown_recipient,
        relay.check_hold,
        sender_clock.check,
        agents.join_session,
    ),
    forwarded=(
        agents.apply_registry_effects,
        circuit_breaker.follow,
        router.route_message,
        decisions.apply_message,
        reminders.follow,
    ),
    held=(relay.hold,),
    archived=(loops.follow,),
)

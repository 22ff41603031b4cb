"""What fleet registers with the gateway."""

from __future__ import annotations

from observatory.features.fleet.live_topic import FleetSource
from observatory.features.fleet.routes import fleet
from observatory.features.fleet.routes_panels import PANEL_ANSWERS, panels
from observatory.features.fleet.routes_regions import regions
from observatory.features.fleet.types import FLEET_ANSWERS
from observatory.http.app_state import AppState
from observatory.http.feature import Feature, FoldedTopic
from observatory.runtime.feed_channel import TopicSource


def fleet_topic(app: AppState, tenant_id: str, _: str) -> TopicSource:
    return FleetSource(app, tenant_id)


FEATURE = Feature(
    folded_topics=[FoldedTopic(name="fleet", source=fleet_topic)],
    routes=(
        fleet,
        panels,
        regions,
    ),
    answers=FLEET_ANSWERS | PANEL_ANSWERS,
)

"""What insight registers with the gateway."""

from __future__ import annotations

from observatory.features.insight.queries import InsightStatus
from observatory.features.insight.routes import insight
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(insight,),
    answers={
        "insight_status": InsightStatus,
    },
)

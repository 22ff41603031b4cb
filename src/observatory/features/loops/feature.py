"""What loops registers with the gateway."""

from __future__ import annotations

from observatory.features.loops.routes import TOPIC, AlertItem, entropy, live_items
from observatory.features.loops.routes_settings import DetectorAnswer, detectors
from observatory.features.loops.worker import FindingsWorker
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import EventTopic, Feature


async def start(app: AppState) -> None:
    if "analyst" in app.workers:
        alarms = FindingsWorker(app, app.derived)
        app.workers["alarms"] = alarms.run
        app.measured.append(alarms)


FEATURE = Feature(
    event_topics=[EventTopic(name=TOPIC, items=live_items)],
    start=start,
    routes=(
        entropy,
        detectors,
    ),
    answers={
        "entropy_alerts": Page[AlertItem],
        "get_detectors": DetectorAnswer,
        "put_detectors": DetectorAnswer,
    },
)

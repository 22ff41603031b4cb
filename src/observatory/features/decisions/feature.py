"""What decisions registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.features.decisions import worker as deadlines
from observatory.features.decisions.live_topic import WaitingSource
from observatory.features.decisions.routes import decisions
from observatory.features.decisions.routes_settings import DecisionSettingsAnswer, decision_settings_router
from observatory.features.decisions.routes_waiting import WaitingAnswer, waiting_router
from observatory.features.decisions.types_answers import DecisionItem
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import Feature, FoldedTopic
from observatory.runtime.feed_channel import TopicSource
from observatory.runtime.worker_context import PeriodicTask, TenantWatch


def waiting(app: AppState, tenant_id: str, _: str) -> TopicSource:
    return WaitingSource(app, tenant_id)


async def start(app: AppState) -> None:
    watch = TenantWatch(app.store)
    app.due.append(PeriodicTask("decisions", 1.0, partial(deadlines.due, app.store, app.committer, watch)))


FEATURE = Feature(
    folded_topics=[FoldedTopic(name="waiting", source=waiting)],
    start=start,
    routes=(
        waiting_router,
        decisions,
        decision_settings_router,
    ),
    answers={
        "list_waiting": WaitingAnswer,
        "get_decision_settings": DecisionSettingsAnswer,
        "put_decision_settings": DecisionSettingsAnswer,
        "pending_decisions": Page[DecisionItem],
        "list_decisions": Page[DecisionItem],
        "get_decision": DecisionItem,
        "respond_decision": DecisionItem,
        "cancel_decision": DecisionItem,
    },
)

"""What graph registers with the gateway."""

from __future__ import annotations

from observatory.features.graph.live_topic import DagSource
from observatory.features.graph.routes import dag
from observatory.features.graph.types import DAG_ANSWERS
from observatory.http.app_state import AppState
from observatory.http.feature import Feature, FoldedTopic
from observatory.runtime.feed_channel import TopicSource


def graph_topic(app: AppState, tenant_id: str, session_id: str) -> TopicSource:
    return DagSource(app, tenant_id, session_id)


FEATURE = Feature(
    folded_topics=[FoldedTopic(name="session:dag:", source=graph_topic)], routes=(dag,), answers=DAG_ANSWERS
)

"""What sessions registers with the gateway."""

from __future__ import annotations

from observatory.features.sessions.live_topic import SessionsSource
from observatory.features.sessions.queries_rows import SessionItem
from observatory.features.sessions.routes import SessionAnswer, sessions
from observatory.http.answers import Page
from observatory.http.app_state import AppState
from observatory.http.feature import Feature, FoldedTopic
from observatory.runtime.feed_channel import TopicSource


def sessions_topic(app: AppState, tenant_id: str, _: str) -> TopicSource:
    return SessionsSource(app, tenant_id)


FEATURE = Feature(
    folded_topics=[FoldedTopic(name="sessions", source=sessions_topic)],
    routes=(sessions,),
    answers={
        "list_sessions": Page[SessionItem],
        "list_stuck_sessions": Page[SessionItem],
        "get_session": SessionAnswer,
    },
)

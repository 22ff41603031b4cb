"""What search registers with the gateway."""

from __future__ import annotations

from observatory.features.search.routes import search_router
from observatory.features.search.routes_views import views
from observatory.features.search.types import SEARCH_ANSWERS
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(
        search_router,
        views,
    ),
    answers=SEARCH_ANSWERS,
)

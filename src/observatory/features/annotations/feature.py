"""What annotations registers with the gateway."""

from __future__ import annotations

from observatory.features.annotations.routes import annotations_router
from observatory.features.annotations.routes_reviews import reviews
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(
        annotations_router,
        reviews,
    )
)

"""What drift registers with the gateway."""

from __future__ import annotations

from observatory.features.drift.routes import drift_router
from observatory.http.feature import Feature

FEATURE = Feature(routes=(drift_router,))

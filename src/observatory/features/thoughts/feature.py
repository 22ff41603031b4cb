"""What thoughts registers with the gateway."""

from __future__ import annotations

from observatory.features.thoughts.routes import thoughts_router
from observatory.features.thoughts.types import THOUGHT_ANSWERS
from observatory.http.feature import Feature

FEATURE = Feature(routes=(thoughts_router,), answers=THOUGHT_ANSWERS)

"""What cascade registers with the gateway."""

from __future__ import annotations

from observatory.features.cascade.routes import cascade_router
from observatory.features.cascade.types import CASCADE_ANSWERS
from observatory.http.feature import Feature

FEATURE = Feature(routes=(cascade_router,), answers=CASCADE_ANSWERS)

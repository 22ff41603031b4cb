"""What backup registers with the gateway."""

from __future__ import annotations

from observatory.features.backup.routes import EXPORT_ANSWERS, exports_router
from observatory.http.feature import Feature

FEATURE = Feature(routes=(exports_router,), answers=EXPORT_ANSWERS)

"""What compare registers with the gateway."""

from __future__ import annotations

from observatory.features.compare.routes import compare
from observatory.http.feature import Feature

FEATURE = Feature(routes=(compare,))

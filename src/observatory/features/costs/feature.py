"""What costs registers with the gateway."""

from __future__ import annotations

from observatory.features.costs.routes import costs
from observatory.features.costs.routes_branches import LINE_ANSWERS
from observatory.http.feature import Feature

FEATURE = Feature(routes=(costs,), answers=LINE_ANSWERS)

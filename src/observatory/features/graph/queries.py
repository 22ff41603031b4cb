"""What the causal graph reads of the derived store."""

from __future__ import annotations

from observatory.features.graph.queries_causes import CauseReads
from observatory.features.graph.queries_spread import SpreadQueries

DERIVED_QUERIES = (CauseReads, SpreadQueries)

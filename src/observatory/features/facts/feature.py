"""What facts registers with the gateway."""

from __future__ import annotations

from observatory.features.facts.routes import facts
from observatory.features.facts.routes_infection import infection
from observatory.features.facts.routes_memory import memory
from observatory.features.facts.types_answers import FACT_ANSWERS
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(
        facts,
        infection,
        memory,
    ),
    answers=FACT_ANSWERS,
)

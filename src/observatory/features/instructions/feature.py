"""What instructions registers with the gateway."""

from __future__ import annotations

from observatory.features.instructions.routes import (
    InstructionsAnswer,
    InstructionsIssued,
    InstructionsItem,
    instructions,
)
from observatory.http.answers import Page
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(instructions,),
    answers={
        "list_instructions": Page[InstructionsItem],
        "get_instructions": InstructionsAnswer,
        "put_instructions": InstructionsIssued,
        "roll_back_instructions": InstructionsIssued,
    },
)

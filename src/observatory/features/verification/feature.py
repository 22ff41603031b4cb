"""What verification registers with the gateway."""

from __future__ import annotations

from observatory.features.verification.routes import VerifyAnswer, verification
from observatory.features.verification.routes_evidence import evidence_router
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(
        verification,
        evidence_router,
    ),
    answers={
        "audit_verify": VerifyAnswer,
    },
)

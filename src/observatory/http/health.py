"""How the parts of a gateway report their health, and what `/healthz` and `/readyz` answer."""

from __future__ import annotations

from typing import Literal

import msgspec

HealthStatus = Literal["ok", "degraded", "down"]


class HealthPart(msgspec.Struct, kw_only=True):
    status: HealthStatus
    text: str


class Health(msgspec.Struct, kw_only=True):
    status: str
    detail: str | None = None
    database: str | None = None
    waiting: int | None = None

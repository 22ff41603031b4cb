"""HealthStatus of log signing: per tenant for its health panel, and over all tenants without names."""

from __future__ import annotations

from typing import Any

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.transparency.types_log import LogRows
from observatory.features.transparency.worker import PROMISED_S, Sealer
from observatory.http.app_state import AppState
from observatory.http.health import HealthPart
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns

LATE_S = 10.0


class LogHealth(HealthPart, kw_only=True):
    """`unsigned` events are not under a checkpoint; `unsigned_age_s` is the age of the oldest."""

    size: int
    unsigned: int
    unsigned_age_s: float
    signed_at: str | None


async def unsigned_age_s(app: AppState, tenant_id: str, size: int) -> float:
    """Seconds since the oldest event past a checkpoint of this size was committed."""
    first = await app.store.events(tenant_id, EventFilter(after=size, before=size + 2), 1, newest_first=False)
    if not first:
        return 0.0
    observed = msgspec.json.decode(first[0].record)["observed_timestamp"]
    return round(max(0.0, (app.clock() - to_ns(observed)) / 1e9), 3)


async def log_health(app: AppState, tenant_id: str) -> dict[str, Any]:
    figures: dict[str, Any] = {"size": 0, "unsigned": 0, "unsigned_age_s": 0.0, "signed_at": None}
    try:
        assert isinstance(app.store, LogRows)
        checkpoint = await app.store.checkpoint(tenant_id)
        head, _ = await app.store.head(tenant_id)
        if checkpoint is not None:
            figures |= {"size": checkpoint.size, "signed_at": from_ns(checkpoint.signed_ns)}
        figures["unsigned"] = max(0, head - figures["size"])
        if figures["unsigned"]:
            figures["unsigned_age_s"] = await unsigned_age_s(app, tenant_id, figures["size"])
    except ObservatoryError:
        return {"status": "down", "text": "The log cannot be read."} | figures
    refused = app.service(Sealer).refused.get(tenant_id)
    elsewhere = refused is not None and refused.kind == "key" and figures["unsigned_age_s"] <= LATE_S
    if refused is not None and not elsewhere:
        return {"status": "down", "text": f"The log is not signed: {refused.sentence}."} | figures
    if elsewhere:
        return {"status": "ok", "text": "Signed by another gateway of this deployment."} | figures
    if figures["unsigned_age_s"] > LATE_S:
        noun = "event" if figures["unsigned"] == 1 else "events"
        age = f"{figures['unsigned_age_s']:.0f} s"
        text = f"{figures['unsigned']:,} unsigned {noun}, the oldest for {age}."
        return {"status": "degraded", "text": text} | figures
    return {"status": "ok", "text": f"Signed within {PROMISED_S:.0f} s."} | figures


def unsigned(app: AppState) -> str:
    """Without tenant names: callers need no key."""
    if all(refused.kind == "key" for refused in app.service(Sealer).refused.values()):
        return "messages are stored; this gateway has no log key, so another gateway must sign the logs"
    count = len(app.service(Sealer).refused)
    logs = "the log of 1 tenant is" if count == 1 else f"the logs of {count:,} tenants are"
    return f"messages are stored, but {logs} not signed; see GET /v1/fleet/health and the gateway's log"

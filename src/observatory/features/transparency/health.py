"""Whether the logs are signed as promised: for one tenant on its panel, of all in figures without names."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.transparency.types_log import LogRows
from observatory.features.transparency.worker import PROMISED_S
from observatory.http.app_state import House
from observatory.pipeline.ports import EventFilter
from observatory.protocol.clock import from_ns, to_ns

LATE_S = 10.0
Health = Literal["ok", "degraded", "down"]


class HealthPart(msgspec.Struct, kw_only=True):
    status: Health
    text: str


class LogHealth(HealthPart, kw_only=True):
    """`unsigned` events are not under a checkpoint; `unsigned_age_s` is how long the oldest has waited."""

    size: int
    unsigned: int
    unsigned_age_s: float
    signed_at: str | None


async def unsigned_age_s(house: House, tenant_id: str, size: int) -> float:
    """Since the oldest event that is not under a checkpoint of this size was committed."""
    first = await house.store.events(
        tenant_id, EventFilter(after=size, before=size + 2), 1, newest_first=False
    )
    if not first:
        return 0.0
    observed = msgspec.json.decode(first[0].record)["observed_timestamp"]
    return round(max(0.0, (house.clock() - to_ns(observed)) / 1e9), 3)


async def log_health(house: House, tenant_id: str) -> dict[str, Any]:
    made: dict[str, Any] = {"size": 0, "unsigned": 0, "unsigned_age_s": 0.0, "signed_at": None}
    try:
        assert isinstance(house.store, LogRows)
        found = await house.store.checkpoint(tenant_id)
        head, _ = await house.store.head(tenant_id)
        if found is not None:
            made |= {"size": found.size, "signed_at": from_ns(found.signed_ns)}
        made["unsigned"] = max(0, head - made["size"])
        if made["unsigned"]:
            made["unsigned_age_s"] = await unsigned_age_s(house, tenant_id, made["size"])
    except ObservatoryError:
        return {"status": "down", "text": "The log cannot be read."} | made
    refused = house.sealer.refused.get(tenant_id)
    elsewhere = refused is not None and refused.kind == "key" and made["unsigned_age_s"] <= LATE_S
    if refused is not None and not elsewhere:
        return {"status": "down", "text": f"The log is not signed: {refused.sentence}."} | made
    if elsewhere:
        return {"status": "ok", "text": "Signed by another gateway of this house."} | made
    if made["unsigned_age_s"] > LATE_S:
        text = f"{made['unsigned']:,} events wait to be signed, the oldest {made['unsigned_age_s']:.0f} s."
        return {"status": "degraded", "text": text} | made
    return {"status": "ok", "text": f"Signed within {PROMISED_S:.0f} s."} | made


def unsigned(house: House) -> str:
    """Without a tenant's name: whoever asks need not show a key."""
    if all(refused.kind == "key" for refused in house.sealer.refused.values()):
        return (
            "messages are stored; the key that signs the logs is not here, so another gateway must sign them"
        )
    count = len(house.sealer.refused)
    logs = "the log of 1 tenant is" if count == 1 else f"the logs of {count:,} tenants are"
    return f"messages are stored, but {logs} not signed; see GET /v1/fleet/health and the gateway's log"

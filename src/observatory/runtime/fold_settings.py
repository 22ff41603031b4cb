"""The detector settings as the folds read them: set by operators, cached for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from observatory.pipeline.ports import RecordReads
from observatory.protocol.tenant_config import DetectorSettings

RULES_S: Final = 2.0
KNOB: Final = "detectors"


class DetectorSettingsCache:
    def __init__(self, past: RecordReads, clock: Callable[[], float] = time.monotonic) -> None:
        self._past, self._clock = past, clock
        self._known: dict[str, tuple[float, DetectorSettings]] = {}

    async def current(self, tenant_id: str) -> DetectorSettings:
        known, now = self._known.get(tenant_id), self._clock()
        if known is not None and now - known[0] < RULES_S:
            return known[1]
        rows = await self._past.rows(tenant_id, "knobs", name=KNOB)
        rules = DetectorSettings()
        if rows:
            with suppress(
                msgspec.MsgspecError
            ):  # written by a later version: the defaults are better than none
                rules = msgspec.json.decode(rows[0]["value"], type=DetectorSettings)
        self._known[tenant_id] = (now, rules)
        return rules

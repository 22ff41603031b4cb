"""Retention: payloads older than a tenant wants to keep are ordered to be shredded (rule S454).

Law: off unless an admin has said how many days. It only finds what is due, oldest first and a bounded number
at a look, by the gateway's clock at the time of the commit; the act looks again under the tenant's lock. What
is held for a person is left alone. Any number of gateways may run it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from observatory.features.hooks import commands_calls as hook_calls
from observatory.features.hooks.types_rows import HookRows
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import commands_thoughts as forgetting
from observatory.features.redaction.commands import RETENTION
from observatory.features.redaction.types_rows import PayloadRows
from observatory.features.thoughts.types_rows import Thoughts
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.redaction import Retention
from observatory.runtime.worker_context import Home, Watch

DAY_NS: Final = 86_400_000_000_000
EVERY_S: Final = 60.0
WHOLE: Final = 60  # every so many looks from the beginning
ORDERS: Final = 10  # of shredding.AT_ONCE messages each, of one tenant at one look


class _Event(msgspec.Struct):
    observed_timestamp: str


_observed: Final = msgspec.json.Decoder(_Event).decode


class Keeper:
    """Remembers of each tenant up to where nothing is left.

    Once in a while it looks from the beginning: what was held may have been decided since.
    """

    def __init__(self, house: Home, watch: Watch) -> None:
        self._house, self._watch = house, watch
        self._after: dict[str, int] = {}
        self._looks = 0

    async def due(self, now_ns: int) -> int:
        """How many payloads of all tenants were shredded; raises what the committer and the store raise."""
        self._looks += 1
        if self._looks % WHOLE == 0:
            self._after.clear()
        shredded = 0
        for tenant_id, head in await self._watch.awake():
            rows = await self._house.store.rows(tenant_id, "knobs", name=RETENTION)
            wish = msgspec.json.decode(rows[0]["value"], type=Retention) if rows else Retention()
            days = wish.days
            if days is None:
                self._watch.rest(tenant_id, head)
                continue
            shredded += await self._overdue(tenant_id, days, now_ns)
            if wish.thoughts:
                shredded += await self._forgotten(tenant_id, days, now_ns)
            await self._calls(tenant_id, now_ns - days * DAY_NS, now_ns)
        return shredded

    async def _forgotten(self, tenant_id: str, days: int, now_ns: int) -> int:
        """Words of thoughts; an order is of one session. None of them are held for anybody."""
        store, who = self._house.store, self._house.principal_of_house(tenant_id)
        assert isinstance(store, Thoughts)
        before, shredded = from_ns(now_ns - days * DAY_NS), 0
        for _ in range(ORDERS):
            left = await store.thoughts_left(tenant_id, 0, forgetting.AT_ONCE)
            old = [one for one in left if one.created_at <= before]
            for session_id in dict.fromkeys(one.session_id for one in old):
                names = [one.record_id for one in old if one.session_id == session_id]
                act = forgetting.shred(who, session_id, names, True, _reason(days), now_ns, cause="retention")
                (verdict,) = await self._house.committer.submit(tenant_id, [act])
                if isinstance(verdict.answer, shredding.Shredded):
                    shredded += verdict.answer.shredded
            if len(old) < forgetting.AT_ONCE:
                break
        return shredded

    async def _calls(self, tenant_id: str, until_ns: int, now_ns: int) -> None:
        """Bodies of webhooks that became no message; those of the others go with theirs."""
        store, who = self._house.store, self._house.principal_of_house(tenant_id)
        assert isinstance(store, HookRows)
        if old := await store.call_bodies(tenant_id, until_ns, shredding.AT_ONCE):
            act = hook_calls.forget_bodies(who, old, now_ns)
            await self._house.committer.submit(tenant_id, [act])

    async def _overdue(self, tenant_id: str, days: int, now_ns: int) -> int:
        store, who = self._house.store, self._house.principal_of_house(tenant_id)
        assert isinstance(store, PayloadRows)
        reason, shredded = _reason(days), 0
        for _ in range(ORDERS):
            left = await store.payloads_left(tenant_id, self._after.get(tenant_id, 0), shredding.AT_ONCE)
            times = {number: to_ns(_observed(record).observed_timestamp) for number, record in left}
            old = [number for number, at in times.items() if at <= now_ns - days * DAY_NS]
            if not old:
                break
            act = shredding.shred(who, old, reason, now_ns, cause="retention")
            (verdict,) = await self._house.committer.submit(tenant_id, [act])
            if isinstance(verdict.answer, shredding.Shredded):
                shredded += verdict.answer.shredded
            if len(old) < shredding.AT_ONCE:  # the others are too young, and so is what came after them
                break
            self._after[tenant_id] = old[-1]
        return shredded


def _reason(days: int) -> str:
    return f"kept for {days} day{'s' if days > 1 else ''}"

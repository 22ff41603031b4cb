"""The retention worker: payloads older than the tenant's retention are ordered to be shredded (rule S454).

Law: off unless an admin set a number of days. It only finds what is due, oldest first and a bounded number
per poll, by the gateway's clock at the time of the commit; the command checks again under the tenant's lock.
What is held for review is skipped. Any number of gateways may run it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from observatory.features.hooks import commands_calls as hook_calls
from observatory.features.hooks.types_rows import HookRows
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import commands_thoughts as thought_shredding
from observatory.features.redaction.commands import RETENTION
from observatory.features.redaction.types_rows import PayloadRows
from observatory.features.thoughts.types_rows import Thoughts
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.redaction import Retention
from observatory.runtime.worker_context import TenantWatch, WorkerContext

DAY_NS: Final = 86_400_000_000_000
EVERY_S: Final = 60.0
WHOLE: Final = 60  # every this many polls it starts from the beginning
ORDERS: Final = 10  # of shredding.AT_ONCE messages each, of one tenant per poll


class _Event(msgspec.Struct):
    observed_timestamp: str


_observed: Final = msgspec.json.Decoder(_Event).decode


class RetentionWorker:
    """Remembers for each tenant up to where nothing is left.

    Periodically it starts from the beginning: what was held may have been decided since.
    """

    def __init__(self, app: WorkerContext, watch: TenantWatch) -> None:
        self._app, self._watch = app, watch
        self._after: dict[str, int] = {}
        self._polls = 0

    async def due(self, now_ns: int) -> int:
        """Returns how many payloads were shredded; raises what the committer and the store raise."""
        self._polls += 1
        if self._polls % WHOLE == 0:
            self._after.clear()
        shredded = 0
        for tenant_id, head in await self._watch.awake():
            rows = await self._app.store.rows(tenant_id, "knobs", name=RETENTION)
            setting = msgspec.json.decode(rows[0]["value"], type=Retention) if rows else Retention()
            days = setting.days
            if days is None:
                self._watch.rest(tenant_id, head)
                continue
            shredded += await self._shred_payloads(tenant_id, days, now_ns)
            if setting.thoughts:
                shredded += await self._shred_thoughts(tenant_id, days, now_ns)
            await self._clear_call_bodies(tenant_id, now_ns - days * DAY_NS, now_ns)
        return shredded

    async def _shred_thoughts(self, tenant_id: str, days: int, now_ns: int) -> int:
        """Texts of thoughts; an order is for one session. Thoughts are never held."""
        store, principal = self._app.store, self._app.gateway_principal(tenant_id)
        assert isinstance(store, Thoughts)
        before, shredded = from_ns(now_ns - days * DAY_NS), 0
        for _ in range(ORDERS):
            left = await store.thoughts_left(tenant_id, 0, thought_shredding.AT_ONCE)
            old = [one for one in left if one.created_at <= before]
            for session_id in dict.fromkeys(one.session_id for one in old):
                names = [one.record_id for one in old if one.session_id == session_id]
                command = thought_shredding.shred(
                    principal, session_id, names, True, _reason(days), now_ns, cause="retention"
                )
                (verdict,) = await self._app.committer.submit(tenant_id, [command])
                if isinstance(verdict.answer, shredding.Shredded):
                    shredded += verdict.answer.shredded
            if len(old) < thought_shredding.AT_ONCE:
                break
        return shredded

    async def _clear_call_bodies(self, tenant_id: str, until_ns: int, now_ns: int) -> None:
        """Bodies of inbound webhooks that became no message; those of the others go with the message."""
        store, principal = self._app.store, self._app.gateway_principal(tenant_id)
        assert isinstance(store, HookRows)
        if old := await store.call_bodies(tenant_id, until_ns, shredding.AT_ONCE):
            command = hook_calls.delete_bodies(principal, old, now_ns)
            await self._app.committer.submit(tenant_id, [command])

    async def _shred_payloads(self, tenant_id: str, days: int, now_ns: int) -> int:
        store, principal = self._app.store, self._app.gateway_principal(tenant_id)
        assert isinstance(store, PayloadRows)
        reason, shredded = _reason(days), 0
        for _ in range(ORDERS):
            left = await store.unshredded_payloads(
                tenant_id, self._after.get(tenant_id, 0), shredding.AT_ONCE
            )
            times = {number: to_ns(_observed(record).observed_timestamp) for number, record in left}
            old = [number for number, at in times.items() if at <= now_ns - days * DAY_NS]
            if not old:
                break
            command = shredding.shred(principal, old, reason, now_ns, cause="retention")
            (verdict,) = await self._app.committer.submit(tenant_id, [command])
            if isinstance(verdict.answer, shredding.Shredded):
                shredded += verdict.answer.shredded
            if len(old) < shredding.AT_ONCE:  # the remaining ones are younger
                break
            self._after[tenant_id] = old[-1]
        return shredded


def _reason(days: int) -> str:
    return f"kept for {days} day{'s' if days > 1 else ''}"

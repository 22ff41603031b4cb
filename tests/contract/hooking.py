"""The door of webhooks over the contract's house: the real one, called without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

from observatory.features.hooks import commands as hooks
from observatory.features.hooks.commands import Row
from observatory.features.hooks.signatures import Scheme, new_secret
from observatory.features.hooks.types_mapping import Destination, HookMapping
from observatory.features.hooks.worker import HookReceiver, HookReply, HooksContext
from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, SubmissionResult
from observatory.settings import Settings
from tests import calling
from tests.contract.conftest import Harness

MAPPING = HookMapping(
    intent="review",
    target=Destination(cluster="code-reviewer"),
    payload="{number: number}",
    session="number",
    when="action != 'closed'",
)


class Keeper:
    """The contract's house as the door sees one. `fails` breaks off before what is handed in next."""

    def __init__(self, harness: Harness) -> None:
        self._harness, self.store, self.settings = harness, harness.store, Settings()
        self.committer = self
        self.handed_in: list[Submission] = []
        self.fails_at: int | None = None
        self.at_ns = harness.now()

    def clock(self) -> int:
        self.at_ns += 1_000_000
        return self.at_ns

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[SubmissionResult]:
        self.handed_in += items
        if self.fails_at == len(self.handed_in):
            raise asyncio.CancelledError  # as the process would end there
        return await asyncio.to_thread(self._harness.submit, *items, tenant_id=tenant_id)

    def gateway_principal(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


class Caller:
    """One hook, who holds its secret, and the door."""

    def __init__(
        self, harness: Harness, scheme: Scheme = "standard", mapping: HookMapping = MAPPING, name: str = "ci"
    ) -> None:
        self.harness, self.scheme, self.secret = harness, scheme, new_secret(scheme)
        wanted = hooks.NewHook(name, scheme, mapping, 300, self.secret)
        (made,) = harness.submit(hooks.create(harness.admin(), wanted, harness.now()))
        assert made.code == 201, made
        self.hook_id: str = made.answer["hook_id"]
        self.ticks = 0.0
        self.start()

    def start(self) -> None:
        """As after a restart: nothing but the database is remembered."""
        self.keeper = Keeper(self.harness)
        self.receiver = HookReceiver(cast(HooksContext, self.keeper), self.harness.store, lambda: self.ticks)

    def call(
        self,
        body: Any,
        delivery: str = "dlv_1",
        secret: str | None = None,
        headers: dict[str, str] | None = None,
        event: str = "pull_request",
    ) -> HookReply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        at = self.keeper.at_ns // 10**9
        if headers is None:
            headers = calling.signed(self.scheme, secret or self.secret, raw, at, delivery, event)
        given = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
        return self.harness.read(self.receiver.call(self.hook_id, given, raw, "192.0.2.7", lambda _: True))

    def due(self, later_ns: int = 0) -> None:
        self.keeper.at_ns += later_ns
        self.harness.wait(later_ns)
        self.harness.read(self.receiver.due(self.keeper.at_ns))

    def hook(self) -> Row:
        (row,) = self.harness.read(self.harness.store.rows(HOME_TENANT, "hooks", hook_id=self.hook_id))
        return row

    def calls(self, **where: Any) -> list[Row]:
        """Oldest first, whole."""
        rows = self.harness.read(self.harness.store.rows(HOME_TENANT, "hook_calls", **where))
        return sorted(rows, key=lambda row: str(row["call_id"]))


def received(harness: Harness, event_type: str) -> list[dict[str, Any]]:
    found = [json.loads(event.record)["body"] for event in harness.trail_of()]
    return [body for body in found if body["event_type"] == event_type]


def messages(harness: Harness) -> list[dict[str, Any]]:
    """What the outside became, as archived."""
    found = harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 1_000, False))
    return [json.loads(one.raw or b"{}") for one in found]

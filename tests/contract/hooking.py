"""The door of webhooks over the contract's house: the real one, called without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

from observatory.features.hooks import commands as hooks
from observatory.features.hooks.commands import Row
from observatory.features.hooks.types_mapping import Destination, HookMapping
from observatory.features.hooks.worker import Home, Hooks, Reply
from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.state import HOME_TENANT, Principal, Submission, Verdict
from observatory.protocol.signatures import Scheme, new_secret
from observatory.settings import Settings
from tests import calling
from tests.contract.conftest import House

MAPPING = HookMapping(
    intent="review",
    target=Destination(cluster="code-reviewer"),
    payload="{number: number}",
    session="number",
    when="action != 'closed'",
)


class Keeper:
    """The contract's house as the door sees one. `fails` breaks off before what is handed in next."""

    def __init__(self, house: House) -> None:
        self._house, self.store, self.settings = house, house.store, Settings()
        self.committer = self
        self.handed_in: list[Submission] = []
        self.fails_at: int | None = None
        self.at_ns = house.now()

    def clock(self) -> int:
        self.at_ns += 1_000_000
        return self.at_ns

    async def submit(self, tenant_id: str, items: Sequence[Submission]) -> list[Verdict]:
        self.handed_in += items
        if self.fails_at == len(self.handed_in):
            raise asyncio.CancelledError  # as the process would end there
        return await asyncio.to_thread(self._house.submit, *items, tenant_id=tenant_id)

    def principal_of_house(self, tenant_id: str) -> Principal:
        return Principal(tenant_id=tenant_id, role="admin", key_id="sys_gateway")


class Caller:
    """One hook, who holds its secret, and the door."""

    def __init__(
        self, house: House, scheme: Scheme = "standard", mapping: HookMapping = MAPPING, name: str = "ci"
    ) -> None:
        self.house, self.scheme, self.secret = house, scheme, new_secret(scheme)
        wanted = hooks.NewHook(name, scheme, mapping, 300, self.secret)
        (made,) = house.submit(hooks.create(house.admin(), wanted, house.now()))
        assert made.code == 201, made
        self.hook_id: str = made.answer["hook_id"]
        self.ticks = 0.0
        self.start()

    def start(self) -> None:
        """As after a restart: nothing but the database is remembered."""
        self.keeper = Keeper(self.house)
        self.door = Hooks(cast(Home, self.keeper), self.house.store, lambda: self.ticks)

    def call(
        self,
        body: Any,
        delivery: str = "dlv_1",
        secret: str | None = None,
        headers: dict[str, str] | None = None,
        event: str = "pull_request",
    ) -> Reply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        at = self.keeper.at_ns // 10**9
        if headers is None:
            headers = calling.signed(self.scheme, secret or self.secret, raw, at, delivery, event)
        given = [(name.lower().encode(), text.encode()) for name, text in headers.items()]
        return self.house.read(self.door.call(self.hook_id, given, raw, "192.0.2.7", lambda _: True))

    def due(self, later_ns: int = 0) -> None:
        self.keeper.at_ns += later_ns
        self.house.wait(later_ns)
        self.house.read(self.door.due(self.keeper.at_ns))

    def hook(self) -> Row:
        (row,) = self.house.read(self.house.store.rows(HOME_TENANT, "hooks", hook_id=self.hook_id))
        return row

    def calls(self, **where: Any) -> list[Row]:
        """Oldest first, whole."""
        rows = self.house.read(self.house.store.rows(HOME_TENANT, "hook_calls", **where))
        return sorted(rows, key=lambda row: str(row["call_id"]))


def told(house: House, event_type: str) -> list[dict[str, Any]]:
    found = [json.loads(event.record)["body"] for event in house.trail_of()]
    return [body for body in found if body["event_type"] == event_type]


def messages(house: House) -> list[dict[str, Any]]:
    """What the outside became, as archived."""
    found = house.read(house.store.messages(HOME_TENANT, MessageFilter(), 1_000, False))
    return [json.loads(one.raw or b"{}") for one in found]

"""A sender over the contract's house: the real one, looking when told to, at receivers with a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks.commands import EndpointConfig
from observatory.features.webhooks.retry import SCHEDULE_S
from observatory.features.webhooks.worker import DeliveryOutcome, WebhookWorker, WebhookWorkerContext
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from tests.contract.conftest import Harness
from tests.contract.sealing import Keeper

Row = dict[str, Any]
S = 1_000_000_000
OK, BAD = DeliveryOutcome(True, 200, "fine"), DeliveryOutcome(False, 500, "the receiver returned 500")


class Receiver:
    """What arrives, and what is answered: by a script, then always the last of it."""

    def __init__(self, *script: DeliveryOutcome) -> None:
        self.script = list(script) or [OK]
        self.heard: list[tuple[str, str, bytes]] = []  # endpoint, delivery, body
        self.hang: asyncio.Event | None = None

    async def send(
        self, endpoint: Row, delivery_id: str, event: Mapping[str, Any], body: bytes, now_ns: int
    ) -> DeliveryOutcome:
        if self.hang is not None:
            await self.hang.wait()
        self.heard.append((endpoint["name"], delivery_id, body))
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def types(self, name: str = "ours") -> list[str]:
        return [json.loads(body)["type"] for to, _, body in self.heard if to == name]


class Sending(Keeper):
    """The contract's house as a sender sees one; `clock` is the house's, which stands still while asked."""

    def __init__(self, harness: Harness, receiver: Receiver, **more: Any) -> None:
        super().__init__(harness)
        self.harness, self.receiver = harness, receiver
        self.clock: Callable[[], int] = harness.now
        self.sender = WebhookWorker(
            cast(WebhookWorkerContext, self), harness.store, {"webhook": receiver}, **more
        )

    def again(self) -> None:
        """The process killed and started anew."""
        self.sender = WebhookWorker(
            cast(WebhookWorkerContext, self), self.harness.store, {"webhook": self.receiver}
        )

    def look(self) -> None:
        self.harness.read(self._look())

    async def _look(self) -> None:
        """Once, and until every lane it set to work is done."""
        async with asyncio.TaskGroup() as group:
            self.sender._group = group
            await self.sender.look(self.clock())

    def wait(self, s: float) -> None:
        self.harness.wait(int(s * S))
        self.look()


def make(harness: Harness, *events: str, name: str = "ours", **more: Any) -> Row:
    wish: Row = {
        "kind": "webhook", "url": "https://them.example/in", "filters": {}, "rate_per_min": 60_000,
        "schedule_s": SCHEDULE_S, "events": events,
    } | more  # fmt: skip
    (made,) = harness.submit(
        webhooks.create(harness.admin(), EndpointConfig(name=name, **wish), SECRET, harness.now())
    )
    assert made.code == 201, made.answer
    return dict(made.answer)


SECRET = "whsec_" + "QUFB" * 8


def act(harness: Harness, one: Command) -> SubmissionResult:
    return harness.submit(one)[0]


def rows(harness: Harness, table: str, **where: Any) -> list[Row]:
    return harness.read(harness.store.rows(HOME_TENANT, table, **where))


def endpoint(harness: Harness, made: Row) -> Row:
    return rows(harness, "webhook_endpoints", endpoint_id=made["endpoint_id"])[0]


def deliveries(harness: Harness, made: Row, **where: Any) -> list[Row]:
    found = rows(harness, "webhook_deliveries", endpoint_id=made["endpoint_id"], **where)
    return sorted(found, key=lambda row: int(row["event_seq"]))


def received(harness: Harness, kind: str) -> list[Row]:
    events = [json.loads(event.record) for event in harness.trail_of()]
    return [event["body"] for event in events if event["body"]["event_type"] == kind]

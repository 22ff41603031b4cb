"""A gateway on NATS as tests look at it, and agents that know nothing but NATS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.flows.sdk_harness import SdkHarness
from tests.flows.server import Server

Json = dict[str, Any]


class NatsHarness(SdkHarness):
    """An operator by HTTP, and agents that know nothing but NATS."""

    def __init__(self, server: Server, home: Path, url: str) -> None:
        super().__init__(server, home)
        self.url = url

    def credentials(self) -> Json:
        return super().credentials() | {"url": self.url}


def bus_of(server: Server) -> Json:
    found: Json = server.http().get("/v1/fleet/health").json()["bus"]
    return found


def of_agent(server: Server, agent_id: str, after: int = 0) -> list[Json]:
    where: Json = {"agent_id": agent_id, "after": after, "limit": 1000}
    found: list[Json] = server.http().get("/v1/messages", params=where).json()["items"]
    return found


def metric(server: Server, name: str) -> float:
    lines = server.http().get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

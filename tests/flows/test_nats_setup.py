"""NATS as it is set up: addresses that are none, and the size of the stream."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from observatory import Agent
from observatory.features.nats.ingest import NatsIngest
from observatory.protocol import nats
from observatory.sdk import NotConfigured
from tests.flows.letters import by_hand
from tests.flows.server import Server
from tests.nats_server import running

if TYPE_CHECKING:
    from nats.aio.client import Client


@pytest.mark.parametrize("url", ["http://h:4222", "nats://h:port/p"])
def test_a_bus_that_is_none_is_told_at_start_without_being_quoted_s820(url: str, tmp_path: Path) -> None:
    """S820."""
    server = Server(tmp_path / "data", environment={"OBSERVATORY_BUS": url.replace("//", "//u:hush@")})
    with pytest.raises(AssertionError, match="the bus is not usable"):
        server.start()
    assert "hush" not in server.log


def test_an_agent_without_a_good_address_is_told_so_s820(tmp_path: Path) -> None:
    """S820, S839: also by the SDK, and without its password."""
    with pytest.raises(NotConfigured, match="NATS") as received:
        Agent("x", url="nats://u:hush@h:port", key="obs_x", data=tmp_path)
    assert "hush" not in str(received.value)
    with pytest.raises(NotConfigured) as received:
        Agent("x", url="nats://u:hush@h:4222", data=tmp_path)
    assert "hush" not in str(received.value) and "nats://h:4222/observatory" in str(received.value)


def test_a_stream_made_with_other_settings_is_given_these_s836() -> None:
    """S836: a larger or smaller one, told at a later start; what cannot be had leaves it as it is."""
    door = SimpleNamespace(address=nats.address("nats://h/sized"))

    async def prepared(client: Client) -> list[Any]:
        sizes = []
        for replicas, size in ((1, 1 << 20), (1, 4 << 20), (3, 2 << 20)):
            await NatsIngest(cast(Any, door), replicas, size).prepare(client, "house")
            found = await client.jetstream().stream_info("SIZED_INGEST")
            sizes.append(found.config.max_bytes)
        return sizes

    with running() as server:
        assert by_hand(server.url, prepared) == [1 << 20, 4 << 20, 4 << 20]

"""A controlling gateway, met over the socket and by polling, and an agent of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from observatory import Agent
from tests.unit.sdk.sdk_control_gateway import ControlGateway, agent_at, controlling


@pytest.fixture(params=["socket", "poll"])
def gateway(request: pytest.FixtureRequest) -> Iterator[ControlGateway]:
    with controlling() as one:
        one.sockets_open = request.param == "socket"
        yield one


@pytest.fixture
def agent(gateway: ControlGateway, tmp_path: Path) -> Iterator[Agent]:
    one = agent_at(gateway, tmp_path)
    yield one
    one.outbox.close()

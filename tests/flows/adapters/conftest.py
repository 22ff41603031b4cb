"""What the adapters' tests share: a tenant with rules about tools, and an operator's desk at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.flows.tool_harness import ToolHarness, ruled_tenant


@pytest.fixture(scope="module")
def tenant(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    with ruled_tenant(server, tmp_path_factory.mktemp("ruled") / "tenant") as made:
        yield made


@pytest.fixture
def harness(tenant: Tenant, tmp_path: Path) -> Iterator[ToolHarness]:
    one = ToolHarness(tenant, tmp_path / "home")
    yield one
    for agent in one.agents:
        agent.close()

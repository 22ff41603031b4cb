"""CrewAI runs in an environment of its own (`.venv-crewai`): `make test` calls these tests with it.

Before it is imported its telemetry is turned off; nothing here needs a network.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.flows.sdk_harness import SdkHarness
from tests.flows.server import Server

os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_DISABLE_TRACKING="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
)
if find_spec("crewai") is None:  # any other environment: a plain `pytest` leaves these out
    collect_ignore_glob = ["test_*.py"]
else:
    with warnings.catch_warnings():  # its own dependencies warn while they are imported
        warnings.simplefilter("ignore")
        import crewai  # noqa: F401


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("gateway") / "data") as running:
        rule = {"effect": "hold", "match": {"tool": ["pay_invoice"], "sender": ["ruled-*"]}}
        made = running.http("admin").post("/v1/policies", json=rule)
        assert made.status_code < 300, made.text
        yield running


@pytest.fixture
def harness(server: Server, tmp_path_factory: pytest.TempPathFactory) -> SdkHarness:
    return SdkHarness(server, tmp_path_factory.mktemp("home"))

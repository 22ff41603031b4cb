"""Gateways for flow tests: `server` and `tight_server` are shared by all, `fresh_server` belongs to one test.

A start costs seconds on a busy machine: a test that changes what holds for a whole tenant takes a tenant of
its own, and only one that stops, kills or fills its gateway takes a fresh gateway. `either_…` runs a test
twice, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.postgres import ask, running
from tests.flows.databases import ALONE, DATABASES, options_of
from tests.flows.server import Server
from tests.flows.tenant import Tenant

TIGHT = {
    "INSIGHT": "false",
    "QUEUE_MESSAGES": "2",
    "LIVE_BACKLOG": "50",
    "VIOLATION_WINDOW_S": "1",
    "LOGIN_MINUTES": "0",
    "SERVICE_NAME": "agentvault",
    "SERVICE_VERSION": "9.9.9",
    "ENVIRONMENT": "staging",
    "ALLOWED_HOSTS": "observatory.example",
    "ALLOWED_ORIGINS": "https://ui.example",
    "CORS_ORIGINS": "https://agents.example",
}


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("gateway") / "data") as running:
        yield running


# The contract suite runs every table on both databases. Of the flows these do in `make test`, all of them in
# `make test-both`.
WHEN_ASKED = {"test_wheel"}  # builds the pages twice more, a minute and a half
ON_BOTH_ALWAYS = {"test_kill", "test_relay_kill", "test_risk_hallucination"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("BOTH"):
        return
    left = [item for item in items if _is_asked_for(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_asked_for(item)])
    items[:] = left


def _is_asked_for(item: pytest.Item) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    if "flows" not in item.path.parts:
        return True
    if item.path.stem in WHEN_ASKED:
        return False
    return item.path.stem in ON_BOTH_ALWAYS or "postgres" not in params.values()


@pytest.fixture(scope="session")
def server(sqlite_server: Server) -> Server:
    """A file whose every promise is kept on both databases says so by a `server` of its own."""
    return sqlite_server


@pytest.fixture(scope="session")
def tight_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Small limits, short times and names of its own: what settings do."""
    environment = {f"OBSERVATORY_{name}": value for name, value in TIGHT.items()}
    with Server(tmp_path_factory.mktemp("tight") / "data", environment=environment) as running:
        yield running


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", environment=ALONE) as running:
        yield running


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real PostgreSQL for all flow tests that want one; make a database of your own on it."""
    with running(in_memory=True) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Server]:
    ask(postgres_url, "CREATE DATABASE flows")
    url = postgres_url.replace("/postgres?", "/flows?")
    with Server(tmp_path_factory.mktemp("on-postgres") / "data", "--db", url) as running_there:
        yield running_there


@pytest.fixture(params=DATABASES)
def either_server(request: pytest.FixtureRequest) -> Server:
    """A promise is kept on both databases."""
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def either_tenant(either_server: Server, tmp_path: Path) -> Iterator[Tenant]:
    """As good as a fresh gateway for all that is a tenant's own, at a fraction of its price."""
    made = Tenant(either_server, tmp_path / "tenant")
    yield made
    made.stop()


@pytest.fixture(params=DATABASES)
def either_options(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options of a gateway on an empty database of its own, for tests that start it with settings."""
    return options_of(request)


@pytest.fixture
def either_fresh_server(either_options: tuple[str, ...], tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", *either_options, environment=ALONE) as running:
        yield running


@pytest.fixture
def analysed_server(tmp_path: Path) -> Iterator[Server]:
    """Fresh, with its analyst."""
    with Server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def either_analysed_server(either_options: tuple[str, ...], tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", *either_options) as running:
        yield running

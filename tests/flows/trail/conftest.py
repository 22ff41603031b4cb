"""Folders and exports of a gateway that has worked and stopped; made once, copied to be changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flows.databases import ALONE
from tests.flows.server import Server, observatory
from tests.flows.trail.outside import lines
from tests.flows.trail.telling import RecordedTrail
from tests.samples import decision_log, envelope


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a gateway has worked and stopped: both forms, violations, versions, another tenant."""
    folder = tmp_path_factory.mktemp("lived") / "data"
    with Server(folder, environment=ALONE) as server:
        server.send_lines(lines(60))
        server.send(envelope("status_alert"))
        server.send(envelope("heartbeat"))
        server.send(b'{"meta": {}}')
        server.send(decision_log(identity={"capability_version": 7}))
        server.http().put(
            "/v1/versions",
            json={"agent_type": "writer", "versions": [{"version": "1.0.0", "status": "current"}]},
        )
        server.http().post("/v1/tenants", json={"display_name": "Other", "tenant_id": "tnt_other"})
    return folder


@pytest.fixture
def data(lived: Path, tmp_path: Path) -> Path:
    return shutil.copytree(lived, tmp_path / "data")


@pytest.fixture(scope="session")
def exported(lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "trail.jsonl"
    run = observatory("export", "--data", str(lived), "--out", str(out))
    assert run.returncode == 0, run.stderr
    return out


@pytest.fixture(scope="module")
def received(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedTrail]:
    made = RecordedTrail(server, tmp_path_factory.mktemp("told"))
    yield made
    made.tenant.stop()

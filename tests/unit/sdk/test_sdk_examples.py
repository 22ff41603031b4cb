"""Every example of the SDK runs against a gateway and ends well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.sdk.sdk_gateway import KEY, running

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(("name", "steps"), [("first_agent", 3), ("async_agent", 5), ("fork_join", 5)])
def test_the_example_runs(name: str, steps: int, tmp_path: Path) -> None:
    with running() as gateway:
        environment = os.environ | {"OBSERVATORY_URL": gateway.url, "OBSERVATORY_KEY": KEY}
        environment |= {"OBSERVATORY_DATA": str(tmp_path)}
        command = [sys.executable, str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "forwarded" in done.stdout
        assert len(gateway.logs) == steps

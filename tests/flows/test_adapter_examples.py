"""Each adapter's example, paused and resumed by an operator while it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.sdk_harness import PATIENCE_S, until
from tests.flows.server import Server, clean_environment
from tests.flows.tenant import Tenant
from tests.flows.tool_harness import ToolHarness

IMPORTS_S = 90.0  # a framework is seconds of imports, on a busy machine many
# The example, who is paused in which session, what must not happen meanwhile, and how it ends.
EXAMPLES = [
    ("langchain_agent", "clerk-1", "invoice-7", "reads invoice 7", "Invoice 7 is 1,200 euros"),
    ("langgraph_graph", "analyst-1", "report-3", "plans", "writes: look at revenue"),
    ("openai_agents_team", "billing-1", "order-12", "pays order 12 back", "It is paid back."),
]


@pytest.fixture(scope="module")
def tenant(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Tenant:
    return Tenant(server, tmp_path_factory.mktemp("examples") / "tenant")


@pytest.mark.req(186, 187, 188)
@pytest.mark.parametrize(
    ("example", "agent", "session", "act", "end"), EXAMPLES, ids=[one[0] for one in EXAMPLES]
)
def test_the_example_stands_still_while_it_is_paused_and_then_goes_on(
    tenant: Tenant, tmp_path: Path, example: str, agent: str, session: str, act: str, end: str
) -> None:
    """S901, S904, S907."""
    harness = ToolHarness(tenant, tmp_path / "home")
    harness.name = agent
    with harness.agent() as known:  # a session can be paused once its agent has spoken there
        known.session(session_id=session).step("was here before").answer(PATIENCE_S)
    harness.do("pause", session)
    received = tmp_path / "told"
    with received.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, str(Path("examples/adapters") / f"{example}.py")],
            env=clean_environment(OBSERVATORY_DATA=str(tenant.folder)),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: running.poll() is not None or not harness.inbox(), IMPORTS_S)  # it has obeyed
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.3)
        assert act not in received.read_text()
        harness.do("unpause", session)
        assert running.wait(PATIENCE_S) == 0, received.read_text()
        assert act in received.read_text() and end in received.read_text()
    finally:
        running.kill()
        running.wait()
    said = [item for item in harness.archived() if item["session_id"] == session]
    assert len(said) > 2 and {item["state"] for item in said} == {"forwarded"}

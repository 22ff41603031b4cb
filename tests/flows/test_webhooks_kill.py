"""Receivers that fail and a sender that is killed: a little of what bench/webhooks.py does at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import webhooks
from tests.flows.server import Server


@pytest.mark.req(130, 132, 234)
def test_every_event_is_delivered_or_buried_whoever_is_killed_s510(tmp_path: Path) -> None:
    """S510: what is sent twice has the same id and bytes; nothing is lost, nothing stands for two."""
    settings = {f"OBSERVATORY_{name.upper()}": value for name, value in webhooks.SETTINGS.items()}
    server = Server(tmp_path / "data", environment=settings)
    try:
        outcome = webhooks.run(server, 1, 7, lambda said: None)
    finally:
        server.kill()
    assert outcome.kills == 1 and outcome.deliveries == 3 * outcome.events
    assert outcome.dead >= outcome.events and outcome.delivered > outcome.events

"""A pause that an agent carries itself, over both databases: what waits for it goes when it is lifted."""

from __future__ import annotations

from observatory.features.relay import commands_agents as agent_pauses
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import release
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness
from tests.contract.test_relay import AGENT, SESSION, act, delivered, new_message, person


def test_what_waits_for_a_paused_agent_goes_with_its_pause_s1124(harness: Harness) -> None:
    """S1124: in a session without a pause of its own neither the approval nor the clock sends it."""
    (verdict,) = harness.send(new_message("s1", hitl=True))
    held = verdict.answer.message_id
    assert act(harness, agent_pauses.pause(person(harness), AGENT, None, harness.now())).code == 202
    answer = act(
        harness, gates.approve(person(harness), SESSION, AGENT, held, None, None, harness.now())
    ).answer
    assert (answer.state, answer.released) == ("held", 0) and delivered(harness) == []
    assert harness.read(harness.store.waiting(HOME_TENANT)) == [], "the clock finds nothing to send"
    assert act(harness, release.drain(person(harness), SESSION, harness.now())).answer.released == 0
    assert act(harness, agent_pauses.unpause(person(harness), AGENT, None, harness.now())).code == 200
    assert harness.read(harness.store.waiting(HOME_TENANT)) == [(SESSION, 1)]
    act(harness, release.drain(person(harness), SESSION, harness.now()))
    assert delivered(harness) == ["s1"]

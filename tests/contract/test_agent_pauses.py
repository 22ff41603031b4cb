"""A pause that an agent carries itself, over both databases: what waits for it goes when it is lifted."""

from __future__ import annotations

from observatory.features.relay import commands_agents as agent_pauses
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import release
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House
from tests.contract.test_relay import AGENT, SESSION, act, delivered, person, said


def test_what_waits_for_a_paused_agent_goes_with_its_pause_s1124(house: House) -> None:
    """S1124: in a session without a pause of its own neither the approval nor the clock sends it."""
    (verdict,) = house.send(said("s1", hitl=True))
    held = verdict.answer.message_id
    assert act(house, agent_pauses.pause(person(house), AGENT, None, house.now())).code == 202
    answer = act(house, gates.approve(person(house), SESSION, AGENT, held, None, None, house.now())).answer
    assert (answer.state, answer.released) == ("held", 0) and delivered(house) == []
    assert house.read(house.store.waiting(HOME_TENANT)) == [], "the clock finds nothing to send"
    assert act(house, release.drain(person(house), SESSION, house.now())).answer.released == 0
    assert act(house, agent_pauses.unpause(person(house), AGENT, None, house.now())).code == 200
    assert house.read(house.store.waiting(HOME_TENANT)) == [(SESSION, 1)]
    act(house, release.drain(person(house), SESSION, house.now()))
    assert delivered(house) == ["s1"]

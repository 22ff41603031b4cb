"""What an export reads, through either database's store, against what the bare reader finds there."""

from __future__ import annotations

from observatory.features.backup.types_rows import Exportable
from observatory.features.relay import commands as interventions
from observatory.features.verification.verify_rows import open_trail
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import House
from tests.contract.test_relay import AGENT, SESSION, act, pause, person, rewritten, said
from tests.contract.test_thought_export import lived


def test_the_store_gives_every_event_as_the_bare_reader_finds_it_s703(house: House) -> None:
    """S703: messages, rewrites, thoughts, intents, leaves and archived states, the same of both databases."""
    lived(house)
    pause(house)
    house.send(said("held"))
    message = rewritten(house, "held", said("held") | {"cognition": {"intent": "another"}})
    act(house, interventions.rewrite(person(house), SESSION, AGENT, "held", message, house.now()))
    house.sql("UPDATE payloads SET raw = NULL, salt = NULL, shredded_by = 9")
    house.send(said("after"))
    store = house.store
    assert isinstance(store, Exportable)
    head, _ = house.read(store.head(HOME_TENANT))
    trail = open_trail(house.url)
    try:
        wanted = [entry for page in trail.entries(HOME_TENANT, 1, head) for entry in page]
    finally:
        trail.close()
    assert house.read(store.entries(HOME_TENANT, 1, head)) == wanted
    assert house.read(store.entries(HOME_TENANT, 3, 5)) == wanted[2:5]
    assert len(wanted) == head
    assert {entry.rewritten is not None for entry in wanted} == {True, False}
    assert sum(entry.words is not None for entry in wanted) > 4
    assert {entry.message.state for entry in wanted if entry.message} == {"forwarded", "held"}
    assert house.read(store.entries("tnt_none", 1, head)) == []

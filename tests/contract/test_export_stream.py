"""What an export reads, through either database's store, against what the bare reader finds there."""

from __future__ import annotations

from typing import Any

from observatory.cli.verify.rows import open_trail
from observatory.features.backup.types_rows import Exportable
from observatory.features.relay import commands as interventions
from observatory.pipeline.state import HOME_TENANT
from tests.contract.conftest import Harness
from tests.contract.test_relay import AGENT, SESSION, act, new_message, pause, person, rewritten
from tests.contract.test_thought_export import lived


def test_the_store_gives_every_event_as_the_bare_reader_finds_it_s703(harness: Harness) -> None:
    """S703: messages, rewrites, thoughts, intents, leaves and archived states, the same of both databases."""
    lived(harness)
    pause(harness)
    harness.send(new_message("held"))
    message = rewritten(harness, "held", new_message("held") | {"cognition": {"intent": "another"}})
    act(harness, interventions.rewrite(person(harness), SESSION, AGENT, "held", message, harness.now()))
    harness.sql("UPDATE payloads SET raw = NULL, salt = NULL, shredded_by = 9")
    harness.send(new_message("after"))
    assert isinstance(harness.store, Exportable)
    store: Any = harness.store
    head, _ = harness.read(store.head(HOME_TENANT))
    trail = open_trail(harness.url)
    try:
        wanted = [entry for page in trail.entries(HOME_TENANT, 1, head) for entry in page]
    finally:
        trail.close()
    assert harness.read(store.entries(HOME_TENANT, 1, head)) == wanted
    assert harness.read(store.entries(HOME_TENANT, 3, 5)) == wanted[2:5]
    assert len(wanted) == head
    assert {entry.rewritten is not None for entry in wanted} == {True, False}
    assert sum(entry.words is not None for entry in wanted) > 4
    assert {entry.message.state for entry in wanted if entry.message} == {"forwarded", "held"}
    assert harness.read(store.entries("tnt_none", 1, head)) == []

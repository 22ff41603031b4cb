"""What people type is redacted like what agents say, before it is hashed, stored, told or put on record."""

from __future__ import annotations

import json
from hashlib import sha256

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import Note, Subject
from observatory.features.drift.commands import Ruling, reconcile
from observatory.features.facts import commands as facts
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.pipeline.state import HOME_TENANT, Act
from tests.contract.conftest import House
from tests.contract.test_fact_acts import ABOUT, HERE
from tests.contract.test_redaction import MAIL, add
from tests.contract.test_relay import AGENT, SESSION, act, events, person, said

TABLES = ("interventions", "deliveries", "annotations", "reviews", "fact_marks", "reconciliations")
SUBJECT = Subject(1, "msg_1", SESSION, 1)
WORDS = f"ask {MAIL} about it"


def typed(house: House) -> list[Act]:
    """One of every act by which a person types something free."""
    who, here, now = person(house), (SESSION, AGENT), house.now()
    return [
        annotating.annotate(who, SUBJECT, Note(f"label {MAIL}", None, WORDS), now),
        annotating.review(who, SUBJECT, "wrong", WORDS, now),
        facts.mark_false(who, ABOUT, WORDS, now),
        facts.quarantine(who, ABOUT, [HERE], WORDS, now),
        reconcile(who, Ruling(7, "the mail", MAIL, f"session:{SESSION}"), [HERE], WORDS + "!", now),
        interventions.inject(who, *here, f"now {WORDS}", now),
        interventions.unpause(who, *here, WORDS, now),
        interventions.pause(who, *here, WORDS, now),
        interventions.cancel(who, *here, WORDS, now),
        gates.approve(who, *here, "held-1", None, WORDS, now),
        gates.refuse(who, *here, "held-2", None, WORDS, now),
    ]


def everything(house: House) -> str:
    """All that is kept of it: rows, what agents are told, and the record."""
    rows = [house.read(house.store.rows(HOME_TENANT, table)) for table in TABLES]
    return repr(rows) + b"".join(event.record for event in house.trail_of()).decode()


def test_what_people_type_is_redacted_before_it_is_hashed_s617(house: House) -> None:
    """S617: prompts, notes, corrections, annotations, reviews, rulings; the event says by which rules."""
    house.send(said("first"), said("held-1", hitl=True), said("held-2", hitl=True))
    add(house, type="builtin", name="email")
    verdicts = [act(house, one) for one in typed(house)]
    assert {verdict.code for verdict in verdicts} <= {200, 201, 202}, verdicts
    kept = everything(house)
    assert MAIL not in kept and kept.count("[redacted:email:") > 15
    inject = next(
        one
        for one in house.read(house.store.rows(HOME_TENANT, "deliveries"))
        if "now ask" in (one["body"] or "")
    )
    prompt = json.loads(inject["body"])["prompt"]
    told = [event for event in events(house, "hitl_intervention") if event["body"]["command"] == "inject"]
    hashes = [event["body"]["after_hash"] for event in told]
    assert "sha256:" + sha256(prompt.encode()).hexdigest() in hashes
    assert {event["attributes"]["av.redaction.version"] for event in told} == {1}
    (event,) = events(house, "annotation_added")
    (row,) = house.read(house.store.rows(HOME_TENANT, "annotations"))
    assert event["body"]["text_hash"] == "sha256:" + sha256(row["text"].encode()).hexdigest()


def test_without_rules_and_beside_them_words_stay_as_typed_s617(house: House) -> None:
    """S617: a rule for a field names `typed.…`; without one nothing is touched, nor said of rules."""
    house.send(said("first"))
    who, now = person(house), house.now()
    act(house, interventions.inject(who, SESSION, AGENT, WORDS, now))
    assert MAIL in everything(house)
    (event,) = events(house, "hitl_intervention")
    assert "av.redaction.version" not in event["attributes"]
    add(house, type="field", name="prompts", path="typed.prompt")
    act(house, interventions.inject(who, SESSION, AGENT, "a secret plan", now))
    act(house, interventions.pause(who, SESSION, AGENT, "a plain note", now))
    kept = everything(house)
    assert "a secret plan" not in kept and "[redacted:prompts:" in kept and "a plain note" in kept

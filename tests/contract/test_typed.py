"""What people type is redacted like what agents say, before it is hashed, stored, told or put on record."""

from __future__ import annotations

import json
from hashlib import sha256

from observatory.features.annotations import commands as annotating
from observatory.features.annotations.commands import AnnotatedMessage, AnnotationText
from observatory.features.drift.commands import TrueValue, reconcile
from observatory.features.facts import commands as facts
from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.pipeline.state import HOME_TENANT, Command
from tests.contract.conftest import Harness
from tests.contract.test_fact_acts import ABOUT, HERE
from tests.contract.test_redaction import MAIL, add
from tests.contract.test_relay import AGENT, SESSION, act, events, new_message, person

TABLES = ("interventions", "deliveries", "annotations", "reviews", "fact_marks", "reconciliations")
SUBJECT = AnnotatedMessage(1, "msg_1", SESSION, 1)
WORDS = f"ask {MAIL} about it"


def typed(harness: Harness) -> list[Command]:
    """One of every act by which a person types something free."""
    who, here, now = person(harness), (SESSION, AGENT), harness.now()
    return [
        annotating.annotate(who, SUBJECT, AnnotationText(f"label {MAIL}", None, WORDS), now),
        annotating.review(who, SUBJECT, "wrong", WORDS, now),
        facts.mark_false(who, ABOUT, WORDS, now),
        facts.quarantine(who, ABOUT, [HERE], WORDS, now),
        reconcile(who, TrueValue(7, "the mail", MAIL, f"session:{SESSION}"), [HERE], WORDS + "!", now),
        interventions.inject(who, *here, f"now {WORDS}", now),
        interventions.unpause(who, *here, WORDS, now),
        interventions.pause(who, *here, WORDS, now),
        interventions.cancel(who, *here, WORDS, now),
        gates.approve(who, *here, "held-1", None, WORDS, now),
        gates.reject_message(who, *here, "held-2", None, WORDS, now),
    ]


def everything(harness: Harness) -> str:
    """All that is kept of it: rows, what agents are told, and the record."""
    rows = [harness.read(harness.store.rows(HOME_TENANT, table)) for table in TABLES]
    return repr(rows) + b"".join(event.record for event in harness.trail_of()).decode()


def test_what_people_type_is_redacted_before_it_is_hashed_s617(harness: Harness) -> None:
    """S617: prompts, notes, corrections, annotations, reviews, rulings; the event says by which rules."""
    harness.send(new_message("first"), new_message("held-1", hitl=True), new_message("held-2", hitl=True))
    add(harness, type="builtin", name="email")
    verdicts = [act(harness, one) for one in typed(harness)]
    assert {verdict.code for verdict in verdicts} <= {200, 201, 202}, verdicts
    kept = everything(harness)
    assert MAIL not in kept and kept.count("[redacted:email:") > 15
    inject = next(
        one
        for one in harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
        if "now ask" in (one["body"] or "")
    )
    prompt = json.loads(inject["body"])["prompt"]
    received = [
        event for event in events(harness, "hitl_intervention") if event["body"]["command"] == "inject"
    ]
    hashes = [event["body"]["after_hash"] for event in received]
    assert "sha256:" + sha256(prompt.encode()).hexdigest() in hashes
    assert {event["attributes"]["av.redaction.version"] for event in received} == {1}
    (event,) = events(harness, "annotation_added")
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "annotations"))
    assert event["body"]["text_hash"] == "sha256:" + sha256(row["text"].encode()).hexdigest()


def test_without_rules_and_beside_them_words_stay_as_typed_s617(harness: Harness) -> None:
    """S617: a rule for a field names `typed.…`; without one nothing is touched, nor said of rules."""
    harness.send(new_message("first"))
    who, now = person(harness), harness.now()
    act(harness, interventions.inject(who, SESSION, AGENT, WORDS, now))
    assert MAIL in everything(harness)
    (event,) = events(harness, "hitl_intervention")
    assert "av.redaction.version" not in event["attributes"]
    add(harness, type="field", name="prompts", path="typed.prompt")
    act(harness, interventions.inject(who, SESSION, AGENT, "a secret plan", now))
    act(harness, interventions.pause(who, SESSION, AGENT, "a plain note", now))
    kept = everything(harness)
    assert "a secret plan" not in kept and "[redacted:prompts:" in kept and "a plain note" in kept

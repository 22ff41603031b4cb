"""Redaction over both databases: what is archived, hashed and told; repeats, whatever the rules did."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction.commands import RedactionRequest
from observatory.features.relay import commands as interventions
from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.state import HOME_TENANT, SubmissionResult
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_relay import AGENT, SESSION, new_message, person, rewritten
from tests.samples import decision_log, envelope

SECRET = "ab" * 32
MAIL = "ada.lovelace@example.org"
Json = dict[str, Any]


def add(harness: Harness, tenant_id: str = HOME_TENANT, **wish: Any) -> SubmissionResult:
    now = harness.now()
    rule = redaction_rules.add(harness.admin(tenant_id), RedactionRequest(**wish), f"red_{now}", SECRET, now)
    (verdict,) = harness.submit(rule, tenant_id=tenant_id)
    return verdict


def remove(harness: Harness, rule_id: str) -> SubmissionResult:
    (verdict,) = harness.submit(redaction_rules.remove(harness.admin(), rule_id, harness.now()))
    return verdict


def archived(harness: Harness, tenant_id: str = HOME_TENANT) -> list[bytes]:
    found = harness.read(harness.store.messages(tenant_id, MessageFilter(), 100, False))
    return [one.raw for one in found if one.raw is not None]


def events(harness: Harness, kind: str) -> list[Json]:
    received = [json.loads(event.record) for event in harness.trail_of()]
    return [event for event in received if event["body"]["event_type"] == kind]


def mailing(**meta: Any) -> Json:
    return decision_log(meta=meta, cognition={"intent": f"write to {MAIL} and again to {MAIL}"})


def test_what_is_archived_and_hashed_is_what_the_rules_leave_s441(harness: Harness) -> None:
    """S440, S441: bytes, digest and event are of the redacted message; equal text keeps one look."""
    harness.create_tenant(OTHER_TENANT)
    assert add(harness, type="builtin", name="email").answer["version"] == 1
    (verdict,) = harness.send(mailing())
    assert verdict.code == 202
    (raw,) = archived(harness)
    kept = json.loads(raw)["cognition"]["intent"]
    marks = [word for word in kept.split() if word.startswith("[redacted:email:")]
    assert len(marks) == 2 and marks[0] == marks[1] and MAIL.encode() not in raw
    (event,) = events(harness, "message_delivered")
    assert event["attributes"]["av.message.digest"] == "sha256:" + sha256(raw).hexdigest()
    assert event["attributes"]["av.redaction.version"] == 1
    assert event["attributes"]["av.redaction.replaced"] == 2
    harness.send(decision_log())
    assert events(harness, "message_delivered")[-1]["attributes"]["av.redaction.replaced"] == 0
    harness.send(mailing(), tenant_id=OTHER_TENANT)
    assert MAIL.encode() in archived(harness, OTHER_TENANT)[0], "rules are a tenant's own"


def test_a_change_of_rules_is_on_record_without_pattern_and_secret_s440(harness: Harness) -> None:
    """S440: version by version; a pattern may quote the very secret."""
    pattern = r"ACME-\d{6}"
    assert add(harness, type="pattern", name="acme_no", pattern=pattern).code == 201
    again = add(harness, type="pattern", name="acme_no", pattern=pattern)
    assert (again.code, again.answer.reason) == (409, "exists")
    made = add(harness, type="field", name="tool", path="action.tool_input")
    assert remove(harness, made.answer["rule_id"]).answer["version"] == 3
    assert remove(harness, made.answer["rule_id"]).code == 404
    received = events(harness, "setting_changed")
    assert [(event["body"]["change"], event["body"]["version"]) for event in received] == [
        ("added", 1),
        ("added", 2),
        ("removed", 3),
    ]
    assert received[0]["body"]["pattern_hash"] == "sha256:" + sha256(pattern.encode()).hexdigest()
    trail = b"".join(event.record for event in harness.trail_of())
    assert pattern.encode() not in trail and SECRET.encode() not in trail
    harness.send(decision_log(cognition={"intent": "order ACME-123456 now"}))
    assert b"ACME-123456" not in archived(harness)[0]
    assert b"NVDA 10-K" in archived(harness)[0], "the rule that ended rules no more"


@pytest.mark.parametrize(
    "wish",
    [
        {"type": "builtin", "name": "shoe_size"},
        {"type": "builtin", "name": "email", "pattern": "x"},
        {"type": "pattern", "name": "x", "pattern": "(a+)+$"},
        {"type": "pattern", "name": "x", "pattern": "["},
        {"type": "pattern", "name": "x"},
        {"type": "pattern", "name": "email", "pattern": "x"},
        {"type": "pattern", "name": "Mine!", "pattern": "x"},
        {"type": "field", "name": "x", "path": "meta.session_id"},
        {"type": "field", "name": "x", "path": "identity"},
        {"type": "field", "name": "x", "path": "payload.decision_id"},
        {"type": "field", "name": "x", "path": "*"},
        {"type": "field", "name": "x", "path": "a b"},
        {"type": "field", "name": "x"},
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_and_nothing_is_written_s442(
    sqlite_harness: Any, wish: Json
) -> None:
    """S442: with one sentence that does not quote it."""
    before = len(sqlite_harness.trail_of())
    verdict = add(sqlite_harness, **wish)
    assert (verdict.code, verdict.answer.reason) == (422, "bad_rule")
    assert "(a+)" not in verdict.answer.detail
    assert len(sqlite_harness.trail_of()) == before


def test_patterns_that_are_too_dear_together_and_too_many_rules_are_refused_s442(sqlite_harness: Any) -> None:
    """S442: enough of a long message must be looked through, whatever the rules."""
    for number in range(4):
        pattern = rf"{number}\w{{1,30}}-\w{{1,30}}x"
        assert add(sqlite_harness, type="pattern", name=f"p{number}", pattern=pattern).code == 201
    dear = add(sqlite_harness, type="pattern", name="p9", pattern=r"9\w{1,40}-\w{1,40}x")
    assert (dear.code, dear.answer.reason) == (409, "too_costly")
    for number in range(50):
        verdict = add(sqlite_harness, type="field", name="f", path=f"metadata.f{number}")
    assert (verdict.code, verdict.answer.reason) == (409, "too_many_rules")


def test_a_repeat_is_known_under_the_same_rules_and_after_they_changed_s444(harness: Harness) -> None:
    """S444: named by the sender, by its trace, or by its own content; with other content it is a conflict."""
    named = mailing(step_id="s1", session_id="ses-1")
    trace = mailing()
    second = trace | {"cognition": {"intent": f"another step for {MAIL}"}}
    first = harness.send(named, trace, second)
    assert [verdict.code for verdict in first] == [202, 202, 202]
    assert first[2].answer.step_id != first[1].answer.step_id
    made = add(harness, type="builtin", name="email")
    assert harness.send(named, trace, second) == first, "sent before there was a rule"
    later = [mailing(step_id="s2", session_id="ses-1"), mailing()]
    later.append(later[1] | {"cognition": {"intent": f"one more for {MAIL}"}})
    answers = harness.send(*later)
    assert [verdict.code for verdict in answers] == [202, 202, 202]
    assert harness.send(*later) == answers, "under the same rules"
    add(harness, type="field", name="tool", path="action.tool_input")
    assert harness.send(*later, named) == [*answers, first[0]], "under more rules"
    remove(harness, made.answer["rule_id"])
    assert harness.send(*later, named) == [*answers, first[0]], "under other rules"
    other = named | {"cognition": {"intent": "something else"}}
    assert harness.send(other)[0].code == 409
    assert len(archived(harness)) == 6
    assert len(events(harness, "security_violation")) == 1


def test_a_message_of_which_too_little_is_left_is_refused_and_nothing_of_it_kept_s443(
    harness: Harness,
) -> None:
    """S443: 422; the event holds its hash, and no word of it."""
    add(harness, type="pattern", name="a_long_name_for_one_letter", pattern="q")
    fits = harness.send(decision_log(action={"tool_call": "q"}))
    (verdict,) = harness.send(decision_log(action={"tool_call": "q" * 200}))
    assert fits[0].code == 202
    assert (verdict.code, verdict.answer.reason) == (422, "not_redactable")
    (event,) = events(harness, "schema_violation")
    assert "qqqq" not in json.dumps(event)
    assert len(archived(harness)) == 1


def test_names_the_record_is_kept_by_are_never_touched_s443(harness: Harness) -> None:
    """S443: whatever a rule says: ids, senders, times and words of the contract."""
    add(harness, type="pattern", name="anything", pattern=r"[\w@:.-]{1,64}")
    log = decision_log(meta={"session_id": MAIL, "step_id": "s1"}, identity={"agent_id": "a@example.org"})
    sent = envelope("decision_request")
    assert [verdict.code for verdict in harness.send(log, sent)] == [202, 202]
    one, two = map(json.loads, archived(harness))
    assert one["meta"] == log["meta"] and one["identity"] == log["identity"]
    assert one["action"]["status"] == "success" and "NVDA" not in json.dumps(one)
    for name in ("message_id", "trace_id", "span_id", "timestamp", "sender", "recipient", "message_type"):
        assert two[name] == sent[name]
    assert two["payload"]["decision_id"] == sent["payload"]["decision_id"]
    assert [option["option_id"] for option in two["payload"]["options"]] == [
        option["option_id"] for option in sent["payload"]["options"]
    ]
    assert two["payload"]["title"] != sent["payload"]["title"]


def test_what_a_person_puts_in_a_messages_place_is_redacted_like_it_s445(harness: Harness) -> None:
    """S445: the rewrite's bytes and hash are of what the rules leave."""
    add(harness, type="builtin", name="email")
    (verdict,) = harness.send(new_message("h1", hitl=True))
    assert verdict.answer.state == "held"
    body = new_message("h1")
    body["cognition"]["intent"] = f"ask {MAIL} instead"
    number, new = verdict.answer.sequence_number, rewritten(harness, "h1", body)
    (done,) = harness.submit(
        interventions.rewrite(person(harness), SESSION, AGENT, number, new, harness.now())
    )
    assert done.code == 200
    ((raw, digest),) = harness.sql("SELECT raw, digest FROM rewrites")
    assert b"[redacted:email:" in bytes(raw) and MAIL.encode() not in bytes(raw)
    assert bytes(digest) == sha256(bytes(raw)).digest()
    assert done.answer.after_hash == "sha256:" + bytes(digest).hex()

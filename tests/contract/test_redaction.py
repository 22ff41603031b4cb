"""Redaction over both databases: what is archived, hashed and told; repeats, whatever the rules did."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction.commands import Wish
from observatory.features.relay import commands as interventions
from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.state import HOME_TENANT, Verdict
from tests.contract.conftest import OTHER_TENANT, House
from tests.contract.test_relay import AGENT, SESSION, person, rewritten, said
from tests.samples import decision_log, envelope

SECRET = "ab" * 32
MAIL = "ada.lovelace@example.org"
Json = dict[str, Any]


def add(house: House, tenant_id: str = HOME_TENANT, **wish: Any) -> Verdict:
    now = house.now()
    rule = redaction_rules.add(house.admin(tenant_id), Wish(**wish), f"red_{now}", SECRET, now)
    (verdict,) = house.submit(rule, tenant_id=tenant_id)
    return verdict


def remove(house: House, rule_id: str) -> Verdict:
    (verdict,) = house.submit(redaction_rules.remove(house.admin(), rule_id, house.now()))
    return verdict


def archived(house: House, tenant_id: str = HOME_TENANT) -> list[bytes]:
    found = house.read(house.store.messages(tenant_id, MessageFilter(), 100, False))
    return [one.raw for one in found if one.raw is not None]


def events(house: House, kind: str) -> list[Json]:
    told = [json.loads(event.record) for event in house.trail_of()]
    return [event for event in told if event["body"]["event_type"] == kind]


def mailing(**meta: Any) -> Json:
    return decision_log(meta=meta, cognition={"intent": f"write to {MAIL} and again to {MAIL}"})


def test_what_is_archived_and_hashed_is_what_the_rules_leave_s441(house: House) -> None:
    """S440, S441: bytes, digest and event are of the redacted message; equal text keeps one look."""
    house.create_tenant(OTHER_TENANT)
    assert add(house, type="builtin", name="email").answer["version"] == 1
    (verdict,) = house.send(mailing())
    assert verdict.code == 202
    (raw,) = archived(house)
    kept = json.loads(raw)["cognition"]["intent"]
    marks = [word for word in kept.split() if word.startswith("[redacted:email:")]
    assert len(marks) == 2 and marks[0] == marks[1] and MAIL.encode() not in raw
    (event,) = events(house, "message_delivered")
    assert event["attributes"]["av.message.digest"] == "sha256:" + sha256(raw).hexdigest()
    assert event["attributes"]["av.redaction.version"] == 1
    assert event["attributes"]["av.redaction.replaced"] == 2
    house.send(decision_log())
    assert events(house, "message_delivered")[-1]["attributes"]["av.redaction.replaced"] == 0
    house.send(mailing(), tenant_id=OTHER_TENANT)
    assert MAIL.encode() in archived(house, OTHER_TENANT)[0], "rules are a tenant's own"


def test_a_change_of_rules_is_on_record_without_pattern_and_secret_s440(house: House) -> None:
    """S440: version by version; a pattern may quote the very secret."""
    pattern = r"ACME-\d{6}"
    assert add(house, type="pattern", name="acme_no", pattern=pattern).code == 201
    again = add(house, type="pattern", name="acme_no", pattern=pattern)
    assert (again.code, again.answer.reason) == (409, "exists")
    made = add(house, type="field", name="tool", path="action.tool_input")
    assert remove(house, made.answer["rule_id"]).answer["version"] == 3
    assert remove(house, made.answer["rule_id"]).code == 404
    told = events(house, "setting_changed")
    assert [(event["body"]["change"], event["body"]["version"]) for event in told] == [
        ("added", 1),
        ("added", 2),
        ("removed", 3),
    ]
    assert told[0]["body"]["pattern_hash"] == "sha256:" + sha256(pattern.encode()).hexdigest()
    trail = b"".join(event.record for event in house.trail_of())
    assert pattern.encode() not in trail and SECRET.encode() not in trail
    house.send(decision_log(cognition={"intent": "order ACME-123456 now"}))
    assert b"ACME-123456" not in archived(house)[0]
    assert b"NVDA 10-K" in archived(house)[0], "the rule that ended rules no more"


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
    sqlite_house: Any, wish: Json
) -> None:
    """S442: with one sentence that does not quote it."""
    before = len(sqlite_house.trail_of())
    verdict = add(sqlite_house, **wish)
    assert (verdict.code, verdict.answer.reason) == (422, "bad_rule")
    assert "(a+)" not in verdict.answer.detail
    assert len(sqlite_house.trail_of()) == before


def test_patterns_that_are_too_dear_together_and_too_many_rules_are_refused_s442(sqlite_house: Any) -> None:
    """S442: enough of a long message must be looked through, whatever the rules."""
    for number in range(4):
        pattern = rf"{number}\w{{1,30}}-\w{{1,30}}x"
        assert add(sqlite_house, type="pattern", name=f"p{number}", pattern=pattern).code == 201
    dear = add(sqlite_house, type="pattern", name="p9", pattern=r"9\w{1,40}-\w{1,40}x")
    assert (dear.code, dear.answer.reason) == (409, "too_costly")
    for number in range(50):
        verdict = add(sqlite_house, type="field", name="f", path=f"metadata.f{number}")
    assert (verdict.code, verdict.answer.reason) == (409, "too_many_rules")


def test_a_repeat_is_known_under_the_same_rules_and_after_they_changed_s444(house: House) -> None:
    """S444: named by the sender, by its trace, or by its own content; with other content it is a conflict."""
    named = mailing(step_id="s1", session_id="ses-1")
    trace = mailing()
    second = trace | {"cognition": {"intent": f"another step for {MAIL}"}}
    first = house.send(named, trace, second)
    assert [verdict.code for verdict in first] == [202, 202, 202]
    assert first[2].answer.step_id != first[1].answer.step_id
    made = add(house, type="builtin", name="email")
    assert house.send(named, trace, second) == first, "sent before there was a rule"
    later = [mailing(step_id="s2", session_id="ses-1"), mailing()]
    later.append(later[1] | {"cognition": {"intent": f"one more for {MAIL}"}})
    answers = house.send(*later)
    assert [verdict.code for verdict in answers] == [202, 202, 202]
    assert house.send(*later) == answers, "under the same rules"
    add(house, type="field", name="tool", path="action.tool_input")
    assert house.send(*later, named) == [*answers, first[0]], "under more rules"
    remove(house, made.answer["rule_id"])
    assert house.send(*later, named) == [*answers, first[0]], "under other rules"
    other = named | {"cognition": {"intent": "something else"}}
    assert house.send(other)[0].code == 409
    assert len(archived(house)) == 6
    assert len(events(house, "security_violation")) == 1


def test_a_message_of_which_too_little_is_left_is_refused_and_nothing_of_it_kept_s443(house: House) -> None:
    """S443: 422; the event holds its hash, and no word of it."""
    add(house, type="pattern", name="a_long_name_for_one_letter", pattern="q")
    fits = house.send(decision_log(action={"tool_call": "q"}))
    (verdict,) = house.send(decision_log(action={"tool_call": "q" * 200}))
    assert fits[0].code == 202
    assert (verdict.code, verdict.answer.reason) == (422, "not_redactable")
    (event,) = events(house, "schema_violation")
    assert "qqqq" not in json.dumps(event)
    assert len(archived(house)) == 1


def test_names_the_record_is_kept_by_are_never_touched_s443(house: House) -> None:
    """S443: whatever a rule says: ids, senders, times and words of the contract."""
    add(house, type="pattern", name="anything", pattern=r"[\w@:.-]{1,64}")
    log = decision_log(meta={"session_id": MAIL, "step_id": "s1"}, identity={"agent_id": "a@example.org"})
    sent = envelope("decision_request")
    assert [verdict.code for verdict in house.send(log, sent)] == [202, 202]
    one, two = map(json.loads, archived(house))
    assert one["meta"] == log["meta"] and one["identity"] == log["identity"]
    assert one["action"]["status"] == "success" and "NVDA" not in json.dumps(one)
    for name in ("message_id", "trace_id", "span_id", "timestamp", "sender", "recipient", "message_type"):
        assert two[name] == sent[name]
    assert two["payload"]["decision_id"] == sent["payload"]["decision_id"]
    assert [option["option_id"] for option in two["payload"]["options"]] == [
        option["option_id"] for option in sent["payload"]["options"]
    ]
    assert two["payload"]["title"] != sent["payload"]["title"]


def test_what_a_person_puts_in_a_messages_place_is_redacted_like_it_s445(house: House) -> None:
    """S445: the rewrite's bytes and hash are of what the rules leave."""
    add(house, type="builtin", name="email")
    (verdict,) = house.send(said("h1", hitl=True))
    assert verdict.answer.state == "held"
    body = said("h1")
    body["cognition"]["intent"] = f"ask {MAIL} instead"
    number, new = verdict.answer.sequence_number, rewritten(house, "h1", body)
    (done,) = house.submit(interventions.rewrite(person(house), SESSION, AGENT, number, new, house.now()))
    assert done.code == 200
    ((raw, digest),) = house.sql("SELECT raw, digest FROM rewrites")
    assert b"[redacted:email:" in bytes(raw) and MAIL.encode() not in bytes(raw)
    assert bytes(digest) == sha256(bytes(raw)).digest()
    assert done.answer.after_hash == "sha256:" + bytes(digest).hex()

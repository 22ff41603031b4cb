"""Webhooks out on both databases: every event an endpoint asks for ends delivered or in the dead letters."""

from __future__ import annotations

import json

import pytest

from observatory.errors import StatementFailed
from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks import commands_sending as webhook_sending
from observatory.features.webhooks.commands import MAX_ENDPOINTS, EndpointConfig, MatchedEvent
from observatory.features.webhooks.retry import give_up_after_s
from observatory.features.webhooks.subscriptions import Subscription
from observatory.features.webhooks.worker import DeliveryOutcome
from observatory.pipeline import dead_letters
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, SubmissionResult
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.webhooking import (
    BAD,
    OK,
    SECRET,
    Receiver,
    Sending,
    act,
    deliveries,
    endpoint,
    make,
    received,
    rows,
)
from tests.samples import decision_log

SAID = "message_delivered"


def test_endpoints_are_made_changed_and_removed_on_record_s490(harness: Harness) -> None:
    """S490, S511: a name is one endpoint's; every act is told, without secret, of the URL the host."""
    made = make(harness, SAID, url="https://them.example/in/t0ken?key=hush")
    wish = EndpointConfig("ours", "webhook", "https://them.example/two", [SAID], {}, 60, [1.0])
    again = act(harness, webhooks.create(harness.admin(), wish, SECRET, harness.now()))
    assert (again.code, again.answer.reason) == (409, "name_taken")
    assert (
        act(harness, webhooks.change(harness.admin(), made["endpoint_id"], wish, harness.now())).code == 200
    )
    slack = wish._replace(kind="slack")
    fixed = act(harness, webhooks.change(harness.admin(), made["endpoint_id"], slack, harness.now()))
    assert (fixed.code, fixed.answer.reason) == (409, "kind_fixed")
    assert act(harness, webhooks.remove(harness.admin(), made["endpoint_id"], harness.now())).code == 200
    assert act(harness, webhooks.remove(harness.admin(), made["endpoint_id"], harness.now())).code == 404
    assert {row["secret"] for row in rows(harness, "webhook_secrets")} == {""}, (
        "a secret that is over is emptied"
    )
    assert make(harness, SAID)["endpoint_id"] != made["endpoint_id"], "its name is free again"
    trail = b"".join(event.record for event in harness.trail_of())
    assert b"https://them.example" in trail
    for secret in (b"t0ken", b"hush", SECRET.encode(), b"/two"):
        assert secret not in trail
    assert [len(received(harness, f"webhook_{what}")) for what in ("created", "changed", "removed")] == [
        2,
        1,
        1,
    ]


def test_a_tenant_has_so_many_endpoints_and_no_other_tenants_s490(harness: Harness) -> None:
    """S490: and a tenant's endpoints are its own."""
    first = make(harness, SAID, name="e0")
    wishes = [
        EndpointConfig(f"e{number}", "webhook", "https://them.example/", [SAID], {}, 60, [1.0])
        for number in range(1, 50)
    ]
    harness.submit(*(webhooks.create(harness.admin(), one, SECRET, harness.now()) for one in wishes))
    assert len(rows(harness, "webhook_endpoints")) == MAX_ENDPOINTS
    wish = EndpointConfig("one more", "webhook", "https://them.example/", [SAID], {}, 60, [1.0])
    refused = act(harness, webhooks.create(harness.admin(), wish, SECRET, harness.now()))
    assert refused.answer.reason == "too_many_endpoints"
    harness.create_tenant(OTHER_TENANT)
    theirs = webhooks.remove(harness.admin(OTHER_TENANT), first["endpoint_id"], harness.now())
    assert harness.submit(theirs, tenant_id=OTHER_TENANT)[0].code == 404
    act(harness, webhooks.test(harness.admin(), first["endpoint_id"], harness.now()))
    for tenant_id, many in ((HOME_TENANT, 1), (OTHER_TENANT, 0)):
        asked = tenant_id, first["endpoint_id"]
        assert len(harness.read(harness.store.deliveries_page(*asked, None, 9))) == many
        assert len(harness.read(harness.store.deliveries_first(*asked, 9))) == many
        assert len(harness.read(harness.store.deliveries_old(*asked, harness.now(), 9))) == many
        assert len(harness.read(harness.store.deliveries_waiting(tenant_id))) == many


@pytest.mark.req(223)
def test_the_log_of_all_endpoints_is_paged_newest_first_and_filtered_s720(harness: Harness) -> None:
    """S720: each delivery once, whichever page it falls on; another tenant's are not in it."""
    harness.create_tenant(OTHER_TENANT)
    ones = [make(harness, SAID, name=name) for name in ("a", "b")]
    sending = Sending(harness, Receiver())
    harness.send(*(decision_log() for _ in range(3)))
    sending.look()
    log = harness.store.deliveries_log
    whole = harness.read(log(HOME_TENANT, None, 99))
    assert len(whole) == 6
    assert whole == sorted(whole, key=lambda row: (row["created_ns"], row["delivery_id"]), reverse=True)
    paged, before = [], None
    while page := harness.read(log(HOME_TENANT, before, 4)):
        paged += page
        before = page[-1]["created_ns"], page[-1]["delivery_id"]
    assert paged == whole
    mine = harness.read(log(HOME_TENANT, None, 99, ones[0]["endpoint_id"], "delivered", SAID))
    assert mine == [row for row in whole if row["endpoint_id"] == ones[0]["endpoint_id"]] and len(mine) == 3
    for wrong in (("none", None, None), (None, "dead", None), (None, None, "gate_opened")):
        assert harness.read(log(HOME_TENANT, None, 99, *wrong)) == []
    assert harness.read(log(OTHER_TENANT, None, 99)) == []


@pytest.mark.req(113, 129)
def test_an_endpoint_is_told_of_what_happens_after_it_was_made_once_s491(harness: Harness) -> None:
    """S491, S492, S502: from the present head on, what it asks for, each event once, also over a restart."""
    harness.send(decision_log())
    made = make(harness, SAID, "webhook_created")
    sending = Sending(harness, receiver := Receiver())
    sending.look()
    assert receiver.heard == [], "not of what was before, nor of itself"
    harness.send(decision_log(), decision_log())
    sending.look()
    sending.look()
    assert receiver.types() == [SAID, SAID]
    sending.again()
    sending.look()
    assert len(receiver.heard) == 2
    archived = {event.sequence_number: json.loads(event.record) for event in harness.trail_of()}
    names = {row["delivery_id"]: row["event_seq"] for row in deliveries(harness, made)}
    for _, name, body in receiver.heard:
        sent = json.loads(body)
        assert sent["data"] == archived[names[name]]
        assert sent["timestamp"] == sent["data"]["timestamp"]
    assert {row["state"] for row in deliveries(harness, made)} == {"delivered"}


def test_a_cursor_never_goes_back_and_moves_only_from_where_it_was_seen_s491(harness: Harness) -> None:
    """S491: whoever races, one is right; the database refuses the rest."""
    made = make(harness, SAID)
    harness.send(decision_log())
    seen, head = made["cursor_seq"], harness.read(harness.store.head(HOME_TENANT))[0]
    matched = [MatchedEvent(head, SAID)]
    who, name = harness.admin(), made["endpoint_id"]
    acts = [webhook_sending.queue(who, name, seen, head, matched, harness.now()) for _ in range(2)]
    assert [verdict.answer for verdict in harness.submit(*acts)] == [1, 0]
    late = webhook_sending.queue(who, name, seen, head, matched, harness.now())
    assert act(harness, late).answer == 0 and len(deliveries(harness, made)) == 1
    where = {"tenant_id": HOME_TENANT, "endpoint_id": name}
    back = RowWrite("webhook_endpoints", {"cursor_seq": seen}, where)
    with pytest.raises(StatementFailed):
        harness.submit(Command(who, harness.now(), lambda uow: SubmissionResult(200, None, writes=[back])))
    assert harness.refuses("DELETE FROM webhook_deliveries")
    assert harness.refuses("UPDATE webhook_endpoints SET cursor_seq = 0")


@pytest.mark.req(130, 131, 132, 234)
def test_a_failing_receiver_is_tried_by_the_schedule_and_then_buried_s494(harness: Harness) -> None:
    """S494, S497, S509: at once, 30 s, 2 min, 10 min, 1 h, 6 h, never sooner; same id and bytes; a letter."""
    made = make(harness, SAID)
    sending = Sending(harness, receiver := Receiver(BAD))
    harness.send(decision_log())
    sending.look()
    for tries, wait in enumerate((30, 120, 600, 3_600, 21_600), 1):
        assert len(receiver.heard) == tries
        sending.wait(wait - 1)
        assert len(receiver.heard) == tries, "not a moment sooner"
        sending.wait(wait * 0.26 + 602)  # the jitter, and the pause of a receiver that failed so often
    assert len(receiver.heard) == 6
    assert len({body for _, _, body in receiver.heard}) == len({name for _, name, _ in receiver.heard}) == 1
    (dead,) = deliveries(harness, made)
    assert (dead["state"], dead["attempts"], dead["last_code"], dead["next_ns"]) == ("dead", 6, 500, None)
    log = sorted(rows(harness, "webhook_attempts"), key=lambda row: int(row["attempt"]))
    assert [row["attempt"] for row in log] == [1, 2, 3, 4, 5, 6]
    (letter,) = rows(harness, "dead_letters")
    assert (letter["kind"], letter["subject_id"]) == ("webhook", dead["delivery_id"])
    assert letter["preview"].startswith('{"type":"message_delivered"')
    assert len(received(harness, "dead_lettered")) == 1 and received(harness, "webhook_disabled") == []
    receiver.script = [OK]
    assert act(harness, webhooks.revive(harness.admin(), letter, harness.now())).code == 200
    assert (
        act(harness, webhooks.revive(harness.admin(), letter, harness.now())).answer.reason == "already_ended"
    )
    sending.wait(601)
    assert deliveries(harness, made)[0]["state"] == "delivered"
    assert {name for _, name, _ in receiver.heard} == {dead["delivery_id"]}


def test_a_letter_whose_endpoint_is_gone_cannot_be_tried_again_s497(harness: Harness) -> None:
    """S497: the sentence says what to do."""
    made = make(harness, SAID, schedule_s=[])
    sending = Sending(harness, Receiver(BAD))
    harness.send(decision_log())
    sending.look()
    (letter,) = rows(harness, "dead_letters")
    act(harness, webhooks.disable(harness.admin(), made["endpoint_id"], harness.now()))
    assert act(harness, webhooks.revive(harness.admin(), letter, harness.now())).answer.reason == "disabled"
    act(harness, webhooks.remove(harness.admin(), made["endpoint_id"], harness.now()))
    assert act(harness, webhooks.revive(harness.admin(), letter, harness.now())).answer.reason == "removed"
    assert act(harness, dead_letters.discard(harness.admin(), letter["letter_id"], harness.now())).code == 200


def test_a_try_counts_only_under_its_number_s498(harness: Harness) -> None:
    """S498: of two senders that tried the same one counts, and a late one changes nothing."""
    made = make(harness, SAID)
    sending = Sending(harness, receiver := Receiver(BAD))
    harness.send(decision_log())
    sending.look()
    (row,) = deliveries(harness, made)
    tried = webhook_sending.DeliveryAttempt(1, harness.now(), 5, True, 200, "fine", "", None, False, "")
    who, ids = harness.admin(), (made["endpoint_id"], row["delivery_id"])
    assert act(harness, webhook_sending.settle(who, *ids, tried, harness.now())).answer is None
    second = tried._replace(attempt=2)
    acts = [webhook_sending.settle(who, *ids, second, harness.now()) for _ in range(2)]
    assert [verdict.answer is None for verdict in harness.submit(*acts)] == [False, True]
    (row,) = deliveries(harness, made)
    assert (row["state"], row["attempts"], len(rows(harness, "webhook_attempts"))) == ("delivered", 2, 2)
    assert len(receiver.heard) == 1


def test_a_receiver_that_is_gone_is_disabled_and_what_waits_dies_with_its_time_s496(harness: Harness) -> None:
    """S496, S506: 410 is told; what waits is not sent, and is buried when its schedule's time is over."""
    made = make(harness, SAID)
    sending = Sending(harness, receiver := Receiver(BAD, DeliveryOutcome(False, 410, "gone", gone=True)))
    harness.send(decision_log())
    sending.look()
    harness.send(decision_log())
    sending.look()
    assert endpoint(harness, made)["state"] == "disabled"
    (event,) = received(harness, "webhook_disabled")
    assert "410" in event["reason"]
    assert [row["state"] for row in deliveries(harness, made)] == ["waiting", "dead"]
    harness.send(decision_log())
    sending.wait(100)
    assert len(receiver.heard) == 2, "nothing is sent to it"
    sending.again()
    sending.wait(give_up_after_s((30, 120, 600, 3_600, 21_600)))
    assert [row["state"] for row in deliveries(harness, made)] == ["dead", "dead"]
    assert len(rows(harness, "dead_letters")) == 2 and len(receiver.heard) == 2
    act(harness, webhooks.enable(harness.admin(), made["endpoint_id"], harness.now()))
    receiver.script = [OK]
    harness.send(decision_log())
    sending.look()
    assert len(deliveries(harness, made)) == 3, "of what happened while it was disabled it is not told"
    span = [
        MatchedEvent(event.sequence_number, SAID)
        for event in harness.trail_of()
        if f'"event_type":"{SAID}"'.encode() in event.record
    ]
    done = act(harness, webhooks.replay(harness.admin(), made["endpoint_id"], span, {}, harness.now()))
    assert done.answer == 4
    sending.look()
    assert {row["state"] for row in deliveries(harness, made)} == {"delivered"}
    assert len(deliveries(harness, made)) == 4, "until somebody replays it"


def test_what_was_looked_at_before_an_endpoint_asked_for_it_can_be_replayed_s505(harness: Harness) -> None:
    """S491, S505: a change counts for what was not looked at yet, restart or not; a replay finds all."""
    made = make(harness, "agent_evicted")
    sending = Sending(harness, receiver := Receiver())
    harness.send(decision_log(), decision_log())
    sending.look()
    wish = EndpointConfig("ours", "webhook", "https://them.example/in", [SAID], {}, 60_000, [1.0])
    act(harness, webhooks.change(harness.admin(), made["endpoint_id"], wish, harness.now()))
    sending.look()
    sending.again()
    sending.look()
    assert receiver.heard == []
    events = harness.read(harness.store.events(HOME_TENANT, EventFilter(), 100, newest_first=False))
    asked = Subscription(endpoint(harness, made))
    found = harness.read(sending.sender.reading.matched(HOME_TENANT, events, [asked]))[asked.endpoint_id]
    done = act(harness, webhooks.replay(harness.admin(), made["endpoint_id"], found, {}, harness.now()))
    sending.look()
    assert (done.answer, len(receiver.heard)) == (2, 2)


@pytest.mark.req(129)
def test_a_completed_task_is_told_with_session_agent_step_and_cost_s501(harness: Harness) -> None:
    """S501: in place of its message's event; the same bytes after its payload is gone."""
    make(harness, "task_completed")
    make(harness, SAID, "task_completed", name="both")
    sending = Sending(harness, receiver := Receiver(BAD))
    end = {"hitl_required": False, "interrupt_signal": None, "is_terminal": True}
    harness.send(decision_log(meta={"session_id": "ses_1"}))
    harness.send(decision_log(meta={"session_id": "ses_1"}, control=end))
    sending.look()
    assert receiver.types() == ["task_completed"]
    assert sorted(receiver.types("both")) == [SAID, "task_completed"]
    if harness.name == "sqlite":
        harness.sql("UPDATE payloads SET raw = NULL, shredded_by = 1")
    receiver.script = [OK]
    sending.wait(40)
    bodies = [body for name, _, body in receiver.heard if name == "ours"]
    assert len(bodies) == 2 and bodies[0] == bodies[1], "tried again, byte for byte"
    whole = json.loads(bodies[0])["data"]
    task = whole["task"]
    assert (task["session_id"], task["agent_id"]) == ("ses_1", "researcher-alpha-9")
    assert (task["session_cost"], task["agent_cost"], task["status"]) == (0.084, 0.084, "success")
    assert task["step_id"] == whole["attributes"]["av.step.id"]


def test_filters_are_plain_sets_and_alerts_reach_whom_they_name_s502(harness: Harness) -> None:
    """S502: each filter has one of its values; an alert that names an endpoint reaches it all the same."""
    choices = {
        "agent": ["researcher-alpha-9"], "session": ["ses_1"], "cluster": ["aws-eu-central-1-mesh-04"],
        "tool": ["serp_search"], "severity": ["INFO"], "message_type": ["decision_log"],
    }  # fmt: skip
    for name, values in choices.items():
        make(harness, SAID, name=f"{name} yes", filters={name: ["never", *values]})
        make(harness, SAID, name=f"{name} no", filters={name: ["never"]})
    named = make(harness, name="named")
    sending = Sending(harness, receiver := Receiver())
    harness.send(decision_log(meta={"session_id": "ses_1"}))
    from observatory.pipeline.event_writer import gateway_event

    def alert(uow: object) -> SubmissionResult:
        detail = {"endpoint_ids": [named["endpoint_id"]]}
        return SubmissionResult(
            200,
            None,
            [gateway_event(HOME_TENANT, "alert_raised", "trouble", harness.now(), None, detail, 13)],
        )

    act(harness, Command(harness.admin(), harness.now(), alert))
    sending.look()
    heard = sorted(name for name, _, _ in receiver.heard)
    assert heard == sorted([*(f"{name} yes" for name in choices), "named"])


def test_no_failure_feeds_on_itself_s503(harness: Harness) -> None:
    """S503: tries write no event; what tells of a dead letter is not buried in its turn."""
    one = make(harness, SAID, "dead_lettered", name="one", schedule_s=[])
    two = make(harness, "dead_lettered", name="two", schedule_s=[])
    sending = Sending(harness, receiver := Receiver(BAD))
    harness.send(decision_log())
    before = len(harness.trail_of())
    for _ in range(4):
        sending.wait(700)
    assert receiver.types("one") == [SAID], "of its own dead letter it is not told"
    assert receiver.types("two") == ["dead_lettered"]
    assert len(harness.trail_of()) == before + 1 and len(rows(harness, "dead_letters")) == 1
    assert [row["state"] for row in deliveries(harness, two)] == ["dead"], "but the log has it"
    assert len(deliveries(harness, one)) == 1


def test_a_test_is_an_event_of_its_own_and_tried_once_s504(harness: Harness) -> None:
    """S504: whatever the endpoint asks for, disabled or not; it is not tried again and not buried."""
    made = make(harness, "dead_lettered")
    sending = Sending(harness, receiver := Receiver(BAD))
    act(harness, webhooks.disable(harness.admin(), made["endpoint_id"], harness.now()))
    row = act(harness, webhooks.test(harness.admin(), made["endpoint_id"], harness.now())).answer
    done = harness.read(sending.sender.attempt(endpoint(harness, made), row))
    assert done is not None and done["state"] == "dead" and receiver.types() == ["webhook_tested"]
    sending.wait(700)
    assert len(receiver.heard) == 1 and rows(harness, "dead_letters") == []
    assert [body["test"] for body in received(harness, "webhook_tested")] == [True]


def test_a_secret_is_followed_by_another_with_both_signing_meanwhile_s493(harness: Harness) -> None:
    """S493: never three; the old one is emptied when it is over."""
    made = make(harness, SAID)
    for number in (2, 3):
        rotated = webhooks.rotate(
            harness.admin(), made["endpoint_id"], f"{SECRET}{number}", 60, harness.now()
        )
        assert act(harness, rotated).code == 200
    kept = {row["secret_no"]: row for row in rows(harness, "webhook_secrets")}
    assert [kept[number]["secret"] for number in (1, 2, 3)] == ["", f"{SECRET}2", f"{SECRET}3"]
    assert kept[2]["ends_ns"] is not None and kept[3]["ends_ns"] is None
    assert [body["secret_no"] for body in received(harness, "webhook_secret_rotated")] == [2, 3]
    sending = Sending(harness, Receiver())
    sending.wait(30)
    assert {row["secret"] for row in rows(harness, "webhook_secrets")} == {"", f"{SECRET}2", f"{SECRET}3"}
    sending.again()
    sending.wait(31)
    assert {row["secret"] for row in rows(harness, "webhook_secrets")} == {"", f"{SECRET}3"}

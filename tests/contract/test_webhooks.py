"""Webhooks out on both databases: every event an endpoint asks for ends delivered or in the dead letters."""

from __future__ import annotations

import json

import pytest

from observatory.errors import StatementFailed
from observatory.features.schedule import commands_dead_letters as dead_letters
from observatory.features.webhooks import commands as webhooks
from observatory.features.webhooks import commands_sending as webhook_sending
from observatory.features.webhooks.commands import MOST_ENDPOINTS, Matched, Wish
from observatory.features.webhooks.retry import patience_s
from observatory.features.webhooks.subscriptions import Subscription
from observatory.features.webhooks.worker import Outcome
from observatory.pipeline.ports import EventFilter
from observatory.pipeline.rows import Write
from observatory.pipeline.state import HOME_TENANT, Act, Verdict
from tests.contract.conftest import OTHER_TENANT, House
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
    rows,
    told,
)
from tests.samples import decision_log

SAID = "message_delivered"


def test_endpoints_are_made_changed_and_removed_on_record_s490(house: House) -> None:
    """S490, S511: a name is one endpoint's; every act is told, without secret, of the URL the host."""
    made = make(house, SAID, url="https://them.example/in/t0ken?key=hush")
    wish = Wish("ours", "webhook", "https://them.example/two", [SAID], {}, 60, [1.0])
    again = act(house, webhooks.create(house.admin(), wish, SECRET, house.now()))
    assert (again.code, again.answer.reason) == (409, "name_taken")
    assert act(house, webhooks.change(house.admin(), made["endpoint_id"], wish, house.now())).code == 200
    slack = wish._replace(kind="slack")
    fixed = act(house, webhooks.change(house.admin(), made["endpoint_id"], slack, house.now()))
    assert (fixed.code, fixed.answer.reason) == (409, "kind_fixed")
    assert act(house, webhooks.remove(house.admin(), made["endpoint_id"], house.now())).code == 200
    assert act(house, webhooks.remove(house.admin(), made["endpoint_id"], house.now())).code == 404
    assert {row["secret"] for row in rows(house, "webhook_secrets")} == {""}, (
        "a secret that is over is emptied"
    )
    assert make(house, SAID)["endpoint_id"] != made["endpoint_id"], "its name is free again"
    trail = b"".join(event.record for event in house.trail_of())
    assert b"https://them.example" in trail
    for secret in (b"t0ken", b"hush", SECRET.encode(), b"/two"):
        assert secret not in trail
    assert [len(told(house, f"webhook_{what}")) for what in ("created", "changed", "removed")] == [2, 1, 1]


def test_a_tenant_has_so_many_endpoints_and_no_other_tenants_s490(house: House) -> None:
    """S490: and a tenant's endpoints are its own."""
    first = make(house, SAID, name="e0")
    wishes = [
        Wish(f"e{number}", "webhook", "https://them.example/", [SAID], {}, 60, [1.0])
        for number in range(1, 50)
    ]
    house.submit(*(webhooks.create(house.admin(), one, SECRET, house.now()) for one in wishes))
    assert len(rows(house, "webhook_endpoints")) == MOST_ENDPOINTS
    wish = Wish("one more", "webhook", "https://them.example/", [SAID], {}, 60, [1.0])
    refused = act(house, webhooks.create(house.admin(), wish, SECRET, house.now()))
    assert refused.answer.reason == "too_many_endpoints"
    house.create_tenant(OTHER_TENANT)
    theirs = webhooks.remove(house.admin(OTHER_TENANT), first["endpoint_id"], house.now())
    assert house.submit(theirs, tenant_id=OTHER_TENANT)[0].code == 404
    act(house, webhooks.test(house.admin(), first["endpoint_id"], house.now()))
    for tenant_id, many in ((HOME_TENANT, 1), (OTHER_TENANT, 0)):
        asked = tenant_id, first["endpoint_id"]
        assert len(house.read(house.store.deliveries_page(*asked, None, 9))) == many
        assert len(house.read(house.store.deliveries_first(*asked, 9))) == many
        assert len(house.read(house.store.deliveries_old(*asked, house.now(), 9))) == many
        assert len(house.read(house.store.deliveries_waiting(tenant_id))) == many


@pytest.mark.req(223)
def test_the_log_of_all_endpoints_is_paged_newest_first_and_filtered_s720(house: House) -> None:
    """S720: each delivery once, whichever page it falls on; another tenant's are not in it."""
    house.create_tenant(OTHER_TENANT)
    ones = [make(house, SAID, name=name) for name in ("a", "b")]
    sending = Sending(house, Receiver())
    house.send(*(decision_log() for _ in range(3)))
    sending.look()
    log = house.store.deliveries_log
    whole = house.read(log(HOME_TENANT, None, 99))
    assert len(whole) == 6
    assert whole == sorted(whole, key=lambda row: (row["created_ns"], row["delivery_id"]), reverse=True)
    paged, before = [], None
    while page := house.read(log(HOME_TENANT, before, 4)):
        paged += page
        before = page[-1]["created_ns"], page[-1]["delivery_id"]
    assert paged == whole
    mine = house.read(log(HOME_TENANT, None, 99, ones[0]["endpoint_id"], "delivered", SAID))
    assert mine == [row for row in whole if row["endpoint_id"] == ones[0]["endpoint_id"]] and len(mine) == 3
    for wrong in (("none", None, None), (None, "dead", None), (None, None, "gate_opened")):
        assert house.read(log(HOME_TENANT, None, 99, *wrong)) == []
    assert house.read(log(OTHER_TENANT, None, 99)) == []


@pytest.mark.req(113, 129)
def test_an_endpoint_is_told_of_what_happens_after_it_was_made_once_s491(house: House) -> None:
    """S491, S492, S502: from the present head on, what it asks for, each event once, also over a restart."""
    house.send(decision_log())
    made = make(house, SAID, "webhook_created")
    sending = Sending(house, receiver := Receiver())
    sending.look()
    assert receiver.heard == [], "not of what was before, nor of itself"
    house.send(decision_log(), decision_log())
    sending.look()
    sending.look()
    assert receiver.types() == [SAID, SAID]
    sending.again()
    sending.look()
    assert len(receiver.heard) == 2
    archived = {event.sequence_number: json.loads(event.record) for event in house.trail_of()}
    names = {row["delivery_id"]: row["event_seq"] for row in deliveries(house, made)}
    for _, name, body in receiver.heard:
        sent = json.loads(body)
        assert sent["data"] == archived[names[name]]
        assert sent["timestamp"] == sent["data"]["timestamp"]
    assert {row["state"] for row in deliveries(house, made)} == {"delivered"}


def test_a_cursor_never_goes_back_and_moves_only_from_where_it_was_seen_s491(house: House) -> None:
    """S491: whoever races, one is right; the database refuses the rest."""
    made = make(house, SAID)
    house.send(decision_log())
    seen, head = made["cursor_seq"], house.read(house.store.head(HOME_TENANT))[0]
    matched = [Matched(head, SAID)]
    who, name = house.admin(), made["endpoint_id"]
    acts = [webhook_sending.queue(who, name, seen, head, matched, house.now()) for _ in range(2)]
    assert [verdict.answer for verdict in house.submit(*acts)] == [1, 0]
    late = webhook_sending.queue(who, name, seen, head, matched, house.now())
    assert act(house, late).answer == 0 and len(deliveries(house, made)) == 1
    where = {"tenant_id": HOME_TENANT, "endpoint_id": name}
    back = Write("webhook_endpoints", {"cursor_seq": seen}, where)
    with pytest.raises(StatementFailed):
        house.submit(Act(who, house.now(), lambda desk: Verdict(200, None, writes=[back])))
    assert house.refuses("DELETE FROM webhook_deliveries")
    assert house.refuses("UPDATE webhook_endpoints SET cursor_seq = 0")


@pytest.mark.req(130, 131, 132, 234)
def test_a_failing_receiver_is_tried_by_the_schedule_and_then_buried_s494(house: House) -> None:
    """S494, S497, S509: at once, 30 s, 2 min, 10 min, 1 h, 6 h, never sooner; same id and bytes; a letter."""
    made = make(house, SAID)
    sending = Sending(house, receiver := Receiver(BAD))
    house.send(decision_log())
    sending.look()
    for tries, wait in enumerate((30, 120, 600, 3_600, 21_600), 1):
        assert len(receiver.heard) == tries
        sending.wait(wait - 1)
        assert len(receiver.heard) == tries, "not a moment sooner"
        sending.wait(wait * 0.26 + 602)  # the jitter, and the pause of a receiver that failed so often
    assert len(receiver.heard) == 6
    assert len({body for _, _, body in receiver.heard}) == len({name for _, name, _ in receiver.heard}) == 1
    (dead,) = deliveries(house, made)
    assert (dead["state"], dead["attempts"], dead["last_code"], dead["next_ns"]) == ("dead", 6, 500, None)
    log = sorted(rows(house, "webhook_attempts"), key=lambda row: int(row["attempt"]))
    assert [row["attempt"] for row in log] == [1, 2, 3, 4, 5, 6]
    (letter,) = rows(house, "dead_letters")
    assert (letter["kind"], letter["subject_id"]) == ("webhook", dead["delivery_id"])
    assert letter["preview"].startswith('{"type":"message_delivered"')
    assert len(told(house, "dead_lettered")) == 1 and told(house, "webhook_disabled") == []
    receiver.script = [OK]
    assert act(house, webhooks.revive(house.admin(), letter, house.now())).code == 200
    assert act(house, webhooks.revive(house.admin(), letter, house.now())).answer.reason == "already_ended"
    sending.wait(601)
    assert deliveries(house, made)[0]["state"] == "delivered"
    assert {name for _, name, _ in receiver.heard} == {dead["delivery_id"]}


def test_a_letter_whose_endpoint_is_gone_cannot_be_tried_again_s497(house: House) -> None:
    """S497: the sentence says what to do."""
    made = make(house, SAID, schedule_s=[])
    sending = Sending(house, Receiver(BAD))
    house.send(decision_log())
    sending.look()
    (letter,) = rows(house, "dead_letters")
    act(house, webhooks.disable(house.admin(), made["endpoint_id"], house.now()))
    assert act(house, webhooks.revive(house.admin(), letter, house.now())).answer.reason == "disabled"
    act(house, webhooks.remove(house.admin(), made["endpoint_id"], house.now()))
    assert act(house, webhooks.revive(house.admin(), letter, house.now())).answer.reason == "removed"
    assert act(house, dead_letters.discard(house.admin(), letter["letter_id"], house.now())).code == 200


def test_a_try_counts_only_under_its_number_s498(house: House) -> None:
    """S498: of two senders that tried the same one counts, and a late one changes nothing."""
    made = make(house, SAID)
    sending = Sending(house, receiver := Receiver(BAD))
    house.send(decision_log())
    sending.look()
    (row,) = deliveries(house, made)
    tried = webhook_sending.Tried(1, house.now(), 5, True, 200, "fine", "", None, False, "")
    who, ids = house.admin(), (made["endpoint_id"], row["delivery_id"])
    assert act(house, webhook_sending.settle(who, *ids, tried, house.now())).answer is None
    second = tried._replace(attempt=2)
    acts = [webhook_sending.settle(who, *ids, second, house.now()) for _ in range(2)]
    assert [verdict.answer is None for verdict in house.submit(*acts)] == [False, True]
    (row,) = deliveries(house, made)
    assert (row["state"], row["attempts"], len(rows(house, "webhook_attempts"))) == ("delivered", 2, 2)
    assert len(receiver.heard) == 1


def test_a_receiver_that_is_gone_is_disabled_and_what_waits_dies_with_its_time_s496(house: House) -> None:
    """S496, S506: 410 is told; what waits is not sent, and is buried when its schedule's time is over."""
    made = make(house, SAID)
    sending = Sending(house, receiver := Receiver(BAD, Outcome(False, 410, "gone", gone=True)))
    house.send(decision_log())
    sending.look()
    house.send(decision_log())
    sending.look()
    assert endpoint(house, made)["state"] == "disabled"
    (event,) = told(house, "webhook_disabled")
    assert "410" in event["reason"]
    assert [row["state"] for row in deliveries(house, made)] == ["waiting", "dead"]
    house.send(decision_log())
    sending.wait(100)
    assert len(receiver.heard) == 2, "nothing is sent to it"
    sending.again()
    sending.wait(patience_s((30, 120, 600, 3_600, 21_600)))
    assert [row["state"] for row in deliveries(house, made)] == ["dead", "dead"]
    assert len(rows(house, "dead_letters")) == 2 and len(receiver.heard) == 2
    act(house, webhooks.enable(house.admin(), made["endpoint_id"], house.now()))
    receiver.script = [OK]
    house.send(decision_log())
    sending.look()
    assert len(deliveries(house, made)) == 3, "of what happened while it was disabled it is not told"
    span = [
        Matched(event.sequence_number, SAID)
        for event in house.trail_of()
        if f'"event_type":"{SAID}"'.encode() in event.record
    ]
    done = act(house, webhooks.replay(house.admin(), made["endpoint_id"], span, {}, house.now()))
    assert done.answer == 4
    sending.look()
    assert {row["state"] for row in deliveries(house, made)} == {"delivered"}
    assert len(deliveries(house, made)) == 4, "until somebody replays it"


def test_what_was_looked_at_before_an_endpoint_asked_for_it_can_be_replayed_s505(house: House) -> None:
    """S491, S505: a change counts for what was not looked at yet, restart or not; a replay finds all."""
    made = make(house, "agent_evicted")
    sending = Sending(house, receiver := Receiver())
    house.send(decision_log(), decision_log())
    sending.look()
    wish = Wish("ours", "webhook", "https://them.example/in", [SAID], {}, 60_000, [1.0])
    act(house, webhooks.change(house.admin(), made["endpoint_id"], wish, house.now()))
    sending.look()
    sending.again()
    sending.look()
    assert receiver.heard == []
    events = house.read(house.store.events(HOME_TENANT, EventFilter(), 100, newest_first=False))
    asked = Subscription(endpoint(house, made))
    found = house.read(sending.sender.reading.matched(HOME_TENANT, events, [asked]))[asked.endpoint_id]
    done = act(house, webhooks.replay(house.admin(), made["endpoint_id"], found, {}, house.now()))
    sending.look()
    assert (done.answer, len(receiver.heard)) == (2, 2)


@pytest.mark.req(129)
def test_a_completed_task_is_told_with_session_agent_step_and_cost_s501(house: House) -> None:
    """S501: in place of its message's event; the same bytes after its payload is gone."""
    make(house, "task_completed")
    make(house, SAID, "task_completed", name="both")
    sending = Sending(house, receiver := Receiver(BAD))
    end = {"hitl_required": False, "interrupt_signal": None, "is_terminal": True}
    house.send(decision_log(meta={"session_id": "ses_1"}))
    house.send(decision_log(meta={"session_id": "ses_1"}, control=end))
    sending.look()
    assert receiver.types() == ["task_completed"]
    assert sorted(receiver.types("both")) == [SAID, "task_completed"]
    if house.name == "sqlite":
        house.sql("UPDATE payloads SET raw = NULL, shredded_by = 1")
    receiver.script = [OK]
    sending.wait(40)
    bodies = [body for name, _, body in receiver.heard if name == "ours"]
    assert len(bodies) == 2 and bodies[0] == bodies[1], "tried again, byte for byte"
    whole = json.loads(bodies[0])["data"]
    task = whole["task"]
    assert (task["session_id"], task["agent_id"]) == ("ses_1", "researcher-alpha-9")
    assert (task["session_cost"], task["agent_cost"], task["status"]) == (0.084, 0.084, "success")
    assert task["step_id"] == whole["attributes"]["av.step.id"]


def test_filters_are_plain_sets_and_alerts_reach_whom_they_name_s502(house: House) -> None:
    """S502: each filter has one of its values; an alert that names an endpoint reaches it all the same."""
    choices = {
        "agent": ["researcher-alpha-9"], "session": ["ses_1"], "cluster": ["aws-eu-central-1-mesh-04"],
        "tool": ["serp_search"], "severity": ["INFO"], "message_type": ["decision_log"],
    }  # fmt: skip
    for name, values in choices.items():
        make(house, SAID, name=f"{name} yes", filters={name: ["never", *values]})
        make(house, SAID, name=f"{name} no", filters={name: ["never"]})
    named = make(house, name="named")
    sending = Sending(house, receiver := Receiver())
    house.send(decision_log(meta={"session_id": "ses_1"}))
    from observatory.pipeline.event_writer import notice

    def alert(desk: object) -> Verdict:
        detail = {"endpoint_ids": [named["endpoint_id"]]}
        return Verdict(
            200, None, [notice(HOME_TENANT, "alert_raised", "trouble", house.now(), None, detail, 13)]
        )

    act(house, Act(house.admin(), house.now(), alert))
    sending.look()
    heard = sorted(name for name, _, _ in receiver.heard)
    assert heard == sorted([*(f"{name} yes" for name in choices), "named"])


def test_no_failure_feeds_on_itself_s503(house: House) -> None:
    """S503: tries write no event; what tells of a dead letter is not buried in its turn."""
    one = make(house, SAID, "dead_lettered", name="one", schedule_s=[])
    two = make(house, "dead_lettered", name="two", schedule_s=[])
    sending = Sending(house, receiver := Receiver(BAD))
    house.send(decision_log())
    before = len(house.trail_of())
    for _ in range(4):
        sending.wait(700)
    assert receiver.types("one") == [SAID], "of its own dead letter it is not told"
    assert receiver.types("two") == ["dead_lettered"]
    assert len(house.trail_of()) == before + 1 and len(rows(house, "dead_letters")) == 1
    assert [row["state"] for row in deliveries(house, two)] == ["dead"], "but the log has it"
    assert len(deliveries(house, one)) == 1


def test_a_test_is_an_event_of_its_own_and_tried_once_s504(house: House) -> None:
    """S504: whatever the endpoint asks for, disabled or not; it is not tried again and not buried."""
    made = make(house, "dead_lettered")
    sending = Sending(house, receiver := Receiver(BAD))
    act(house, webhooks.disable(house.admin(), made["endpoint_id"], house.now()))
    row = act(house, webhooks.test(house.admin(), made["endpoint_id"], house.now())).answer
    done = house.read(sending.sender.attempt(endpoint(house, made), row))
    assert done is not None and done["state"] == "dead" and receiver.types() == ["webhook_tested"]
    sending.wait(700)
    assert len(receiver.heard) == 1 and rows(house, "dead_letters") == []
    assert [body["test"] for body in told(house, "webhook_tested")] == [True]


def test_a_secret_is_followed_by_another_with_both_signing_meanwhile_s493(house: House) -> None:
    """S493: never three; the old one is emptied when it is over."""
    made = make(house, SAID)
    for number in (2, 3):
        rotated = webhooks.rotate(house.admin(), made["endpoint_id"], f"{SECRET}{number}", 60, house.now())
        assert act(house, rotated).code == 200
    kept = {row["secret_no"]: row for row in rows(house, "webhook_secrets")}
    assert [kept[number]["secret"] for number in (1, 2, 3)] == ["", f"{SECRET}2", f"{SECRET}3"]
    assert kept[2]["ends_ns"] is not None and kept[3]["ends_ns"] is None
    assert [body["secret_no"] for body in told(house, "webhook_secret_rotated")] == [2, 3]
    sending = Sending(house, Receiver())
    sending.wait(30)
    assert {row["secret"] for row in rows(house, "webhook_secrets")} == {"", f"{SECRET}2", f"{SECRET}3"}
    sending.again()
    sending.wait(31)
    assert {row["secret"] for row in rows(house, "webhook_secrets")} == {"", f"{SECRET}3"}

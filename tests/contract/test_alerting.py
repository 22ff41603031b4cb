"""Alert rules and scaling triggers on both databases: rules, the trail by its cursor, levels, a race."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.errors import NotDurable
from observatory.features.alerting import commands as alerting
from observatory.features.alerting import commands_findings as alert_telling
from observatory.features.alerting import worker as daemon
from observatory.features.alerting.commands_findings import AlertFinding, record_findings
from observatory.features.alerting.types_rules import DEFAULTS
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.features.transparency.types_log import LogRefusal
from observatory.pipeline import quotas
from observatory.pipeline.agents import TIMES
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.ports import SilentAgent
from observatory.pipeline.quotas import Quotas
from observatory.pipeline.refusals import close_minute
from observatory.pipeline.state import HOME_TENANT, Command, RejectedBody, SubmissionResult
from observatory.store.committed import HEADS
from tests.alert_samples import SECOND, alert_rule
from tests.contract.alerting import Watchman, add, change, received, violate
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, Harness
from tests.contract.test_entropy import step
from tests.contract.test_relay import new_message
from tests.samples import decision_log

MINUTE_NS = 60 * SECOND


@pytest.fixture(autouse=True)
def at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are read and cursors kept at each look: these tests move the house's clock only."""
    monkeypatch.setattr(daemon, "LEVEL_S", 0.0)
    monkeypatch.setattr(daemon, "KEEP_S", 0.0)


def rows(harness: Harness, table: str, **where: Any) -> list[dict[str, Any]]:
    return harness.read(harness.store.rows(HOME_TENANT, table, **where))


def tell(harness: Harness, event_type: str, **detail: Any) -> None:
    """An event of the house, as whoever writes it would."""
    now_ns = harness.now()
    event = gateway_event(HOME_TENANT, event_type, "swordfish", now_ns, None, detail)
    harness.submit(Command(harness.admin(), now_ns, lambda _: SubmissionResult(200, None, [event])))


def test_every_change_of_a_rule_is_audited_with_before_and_after_s540(harness: Harness) -> None:
    """S540: the same again changes nothing; a name means one rule of its purpose; the record keeps all."""
    row = add(harness)
    assert change(harness, row).code == 200 and len(received(harness, "alert_rule_changed")) == 1
    after = change(harness, row, threshold=7.5, scope="tenant").answer
    assert after["since_seq"] == harness.read(harness.store.head(HOME_TENANT))[0] > row["since_seq"]
    twin = alert_rule(rule_id="alr_twin", name=row["name"])
    (refused,) = harness.submit(alerting.add(harness.admin(), twin, harness.now()))
    assert (refused.code, refused.answer.reason) == (409, "name_taken")
    trigger = alert_rule(
        "queue_depth", rule_id="scl_1", purpose="scaling", direction="up", amount=1, name=row["name"]
    )
    assert harness.submit(alerting.add(harness.admin(), trigger, harness.now()))[0].code == 201
    muted = alerting.mute(harness.admin(), "alert", row["rule_id"], harness.now() + MINUTE_NS, harness.now())
    assert harness.submit(muted)[0].answer["since_seq"] == after["since_seq"], "a mute begins nothing anew"
    for purpose, code in (("scaling", 404), ("alert", 200), ("alert", 404)):
        act = alerting.remove(harness.admin(), purpose, row["rule_id"], harness.now())  # type: ignore[arg-type]
        assert harness.submit(act)[0].code == code
    changes = received(harness, "alert_rule_changed")
    assert [one["change"] for one in changes] == ["created", "changed", "created", "muted", "removed"]
    assert (changes[1]["before"]["threshold"], changes[1]["after"]["threshold"]) == ("1", "7.5")
    assert changes[3]["muted_until"] is not None and changes[4]["after"] is None


def test_a_tenant_has_so_many_rules_and_the_offered_set_fits_s540_s552(harness: Harness) -> None:
    """S540, S552: defaults are made once, for what nobody watches yet."""
    add(harness, "silence")
    (made,) = harness.submit(alerting.add_defaults(harness.admin(), ("whe_1",), harness.now()))
    assert {row["condition"] for row in made.answer} == {one.condition for one in DEFAULTS} - {"silence"}
    assert all(alerting.rule_from_row(row).endpoint_ids == ("whe_1",) for row in made.answer)
    (again,) = harness.submit(alerting.add_defaults(harness.admin(), (), harness.now()))
    assert (again.code, again.answer) == (200, [])
    rules = [alert_rule(rule_id=f"alr_{number}", name=f"n{number}") for number in range(alerting.MAX_RULES)]
    verdicts = harness.submit(*(alerting.add(harness.admin(), rule, harness.now()) for rule in rules))
    assert sum(one.code == 201 for one in verdicts) == alerting.MAX_RULES - len(DEFAULTS)
    assert verdicts[-1].answer.reason == "too_many_rules"


def test_a_default_rule_of_an_earlier_version_is_still_recognized_s552(harness: Harness) -> None:
    """S552: its name has changed since; it gets the endpoints, and no second rule is created."""
    (loops,) = [one for one in DEFAULTS if one.condition == "entropy"]
    assert loops.former_name and loops.former_name != loops.name
    add(harness, "entropy", name=loops.former_name)
    (made,) = harness.submit(alerting.add_defaults(harness.admin(), ("whe_9",), harness.now()))
    (row,) = [row for row in made.answer if row["condition"] == "entropy"]
    assert row["name"] == loops.former_name and "whe_9" in alerting.rule_from_row(row).endpoint_ids


@pytest.mark.req(219)
def test_events_are_told_once_with_what_a_person_needs_s545_s550(harness: Harness) -> None:
    """S545, S550: raised at the threshold, resolved by the window; figures, link, endpoints; no payload."""
    violate(harness, 3)
    rule = add(harness, threshold=3.0, window_s=60)
    watchman = Watchman(harness)
    violate(harness, 2)
    assert watchman.look() == [], "what was before the rule does not count"
    violate(harness)
    assert watchman.look() == [("alert_raised", "agent:writer")]
    violate(harness, 5)
    assert watchman.look() == [], "de-duplicated"
    harness.create_tenant(OTHER_TENANT)
    assert harness.read(harness.store.alerts_open(OTHER_TENANT, None, 10)) == []
    assert harness.read(harness.store.alert_standings(OTHER_TENANT, 0, 10)) == []
    (row,) = harness.read(harness.store.alerts_open(HOME_TENANT, None, 10))
    (body,) = received(harness)
    assert (row["subject"], row["times"], row["raised_seq"]) == ("agent:writer", 1, body_seq(harness))
    assert (body["rule_id"], body["value"], body["threshold"]) == (rule["rule_id"], "3", "3")
    assert body["link"] == "http://here/fleet?peek=agent:writer" and body["endpoint_ids"] == ["whe_one"]
    assert (body["window_s"], body["severity"], body["test"]) == (60, "error", False)
    event = harness.trail_of()[body_seq(harness) - 1]
    assert b"swordfish" not in event.record and b'"severity_number":17' in event.record
    assert watchman.look(after_s=61) == [("alert_resolved", "agent:writer")]
    assert received(harness)[-1]["raised_sequence_number"] == row["raised_seq"]
    assert harness.refuses("DELETE FROM alert_rules") and harness.refuses("DELETE FROM alert_states")
    assert harness.read(harness.store.alerts_open(HOME_TENANT, None, 10)) == []


def body_seq(harness: Harness) -> int:
    (found,) = [event for event in harness.trail_of() if b'"event_type":"alert_raised"' in event.record]
    return found.sequence_number


def test_killed_between_any_two_looks_it_tells_the_same_s545(harness: Harness) -> None:
    """S545: windows are filled again, nothing is told twice, what was written meanwhile is told late."""
    add(harness, threshold=4.0, window_s=60, cooldown_s=300)
    found: list[tuple[str, str]] = []
    watchman = Watchman(harness)
    for _ in range(4):
        violate(harness)
        watchman.again()
        found += watchman.look()
    assert found == [("alert_raised", "agent:writer")], "counted over four processes"
    watchman.again()
    assert watchman.look() == []
    assert watchman.look(after_s=3_600) == [("alert_resolved", "agent:writer")]
    violate(harness, 4, "reader")
    harness.wait(7_200 * SECOND)  # two hours without any gateway: the window is long over
    watchman.again()
    assert watchman.look() == [("alert_raised", "agent:reader"), ("alert_resolved", "agent:reader")]
    watchman.again()
    assert watchman.look() == []


def test_what_could_not_be_kept_is_found_again_s545(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S545: a full disk or a database away costs a look, no alert and no second one."""
    add(harness, threshold=2.0, cooldown_s=300)
    watchman = Watchman(harness)
    violate(harness, 2)

    async def away(tenant_id: str, items: Any) -> list[SubmissionResult]:
        raise NotDurable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(watchman, "submit", away)
        assert watchman.look() == [] and watchman.look() == []
    assert watchman.alerts.measures()[4].value == 2
    assert watchman.look() == [("alert_raised", "agent:writer")]
    assert watchman.look() == []


def test_many_events_are_read_in_pages_and_the_cursor_only_grows_s545(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S545: also when a look ends before the trail does."""
    monkeypatch.setattr(daemon, "PAGE", 4)
    monkeypatch.setattr(daemon, "PAGES", 2)
    monkeypatch.setattr(quotas, "_quotas", Quotas(refusals_in_full=100))
    add(harness, threshold=20.0)
    violate(harness, 20)
    watchman = Watchman(harness)
    cursors, told_all = [], list[tuple[str, str]]()
    for _ in range(4):
        told_all += watchman.look()
        cursors.append(int(rows(harness, "knobs", name=alert_telling.CURSOR)[0]["value"]))
    assert told_all == [("alert_raised", "agent:writer")] and cursors == sorted(cursors)
    late = record_findings(watchman.gateway_principal(HOME_TENANT), [], 3, harness.now())
    harness.submit(late)
    assert int(rows(harness, "knobs", name=alert_telling.CURSOR)[0]["value"]) == cursors[-1]


def test_violations_that_are_only_counted_raise_the_alert_as_if_each_were_told_s1161(
    harness: Harness,
) -> None:
    """S1161: ten are events of their own; the threshold lies beyond them."""
    add(harness, threshold=30.0, scope="tenant")
    watchman = Watchman(harness)
    violate(harness, 40)
    assert watchman.look() == []
    harness.wait(61 * SECOND)
    harness.submit(close_minute(harness.admin(), "key_admin", "schema_violation/refused", harness.now()))
    assert watchman.look() == [("alert_raised", "tenant")]


def test_a_second_evaluator_tells_nothing_the_first_has_told_s546(harness: Harness) -> None:
    """S546: with or without the lease; a stale rule, a judged event and a standing alert are left alone."""
    row = add(harness, cooldown_s=300)
    first, second = Watchman(harness), Watchman(harness)
    second.look()
    violate(harness)
    assert first.look() == [("alert_raised", "agent:writer")]
    assert second.look() == []
    rule, who = alerting.rule_from_row(row), first.gateway_principal(HOME_TENANT)
    head, _ = harness.read(harness.store.head(HOME_TENANT))
    now_ns = harness.now()
    late = [
        AlertFinding(rule, "agent:writer", "raise", 1, now_ns, now_ns, "", head + 1),
        AlertFinding(rule, "agent:reader", "raise", 1, now_ns, now_ns, "", row["since_seq"] + 1),
        AlertFinding(rule, "agent:reader", "resolve", 0, now_ns, now_ns, "", None),
    ]
    assert harness.submit(record_findings(who, late, head, now_ns))[0].answer == []
    change(harness, row, threshold=2.0)
    stale = AlertFinding(rule, "agent:other", "raise", 1, now_ns, now_ns, "", head + 9)
    assert harness.submit(record_findings(who, [stale], 0, now_ns))[0].answer == []
    assert len(received(harness)) == 1
    third = Watchman(harness)
    third.alerts._leader.holder = "gtw_other"
    assert third.look() == [], "another holds the lease"


@pytest.mark.req(219)
def test_a_looping_session_is_told_and_resolved_when_it_goes_on_s547(harness: Harness) -> None:
    """S547: by the session itself, long before its window ends; a removed rule resolves as well."""
    add(harness, "entropy", window_s=3_600)
    watchman = Watchman(harness)
    harness.send(*(step() for _ in range(5)))
    assert watchman.look() == [("alert_raised", "session:ses-1")]
    assert watchman.look(after_s=30) == []
    harness.send(*(step(f"Another way {number}") for number in range(5)))
    assert watchman.look() == [("alert_resolved", "session:ses-1")]
    harness.send(*(step() for _ in range(5)))
    assert watchman.look() == [("alert_raised", "session:ses-1")]
    harness.submit(alerting.remove(harness.admin(), "alert", "alr_entropy", harness.now()))
    watchman.again()
    assert watchman.look() == [("alert_resolved", "session:ses-1")]
    assert received(harness)[-1]["reason"] == "rule_changed" and received(harness)[-1]["endpoint_ids"] == []
    assert watchman.look() == []


def test_while_muted_it_is_shown_and_told_to_nobody_s544(harness: Harness) -> None:
    """S544: and to whom it concerns when the mute ends, if it still fires."""
    add(harness, "gate_age", threshold=30.0)
    mute = alerting.mute(
        harness.admin(), "alert", "alr_gate_age", harness.now() + 5 * MINUTE_NS, harness.now()
    )
    harness.submit(mute)
    watchman = Watchman(harness)
    harness.send(new_message("ask", hitl=True))
    assert watchman.look() == []
    assert watchman.look(after_s=60) == [("alert_raised", "tenant")]
    assert (received(harness)[-1]["muted"], received(harness)[-1]["endpoint_ids"]) == (True, [])
    (row,) = harness.read(harness.store.alerts_open(HOME_TENANT, None, 10))
    assert row["is_told"] == 0
    assert watchman.look(after_s=300) == [("alert_raised", "tenant")]
    assert received(harness)[-1]["endpoint_ids"] == ["whe_one"]
    assert received(harness)[-1]["figures"] == {"gates": "1", "decisions": "0"}
    harness.submit(
        alerting.mute(harness.admin(), "alert", "alr_gate_age", harness.now() + MINUTE_NS, harness.now())
    )
    harness.sql("UPDATE holds SET state = 'released'")
    assert watchman.look() == [("alert_resolved", "tenant")]
    assert received(harness)[-1]["endpoint_ids"] == [], "its end is told to nobody either"


@pytest.mark.req(218, 219)
def test_silent_agents_are_told_one_by_one_and_as_a_count_s548(harness: Harness) -> None:
    """S548: evicted ones too, for an hour; not while the gateway was away; recovered ones are resolved."""
    for agent in ("a", "b", "c"):
        harness.send(new_message(agent, agent, agent_type="writer"))
        harness.submit(enrolment.record_heartbeat(harness.admin(), agent, None, {}, harness.now()))
    add(harness, "silence", threshold=60.0)
    scaling: dict[str, Any] = {"purpose": "scaling", "direction": "up", "amount": 2, "cooldown_s": 120}
    add(harness, "silent_agents", threshold=2.0, **scaling)
    started_ns = harness.wait(600 * SECOND)
    later = Watchman(harness, started_ns=started_ns + 3_600 * SECOND)
    assert not later.levels.knows(alert_rule("silence", threshold=5.0), started_ns)
    assert later.levels.knows(alert_rule("silence", threshold=5.0), started_ns + 5 * SECOND), "set back"
    young = Watchman(harness, started_ns=started_ns)
    assert young.look() == [], "it has not listened long enough to know"
    harness.submit(enrolment.record_heartbeat(harness.admin(), "c", None, {"status": "idle"}, harness.now()))
    assert young.look(after_s=TIMES.check_ns / SECOND - 1) == []
    harness.submit(
        enrolment.record_heartbeat(harness.admin(), "c", None, {"status": "active"}, harness.now())
    )
    assert young.look(after_s=31) == [
        ("alert_raised", "agent:a"),
        ("alert_raised", "agent:b"),
        ("scaling_triggered", "capability:writer"),
    ]
    body = received(harness, "scaling_triggered")[0]
    assert (body["direction"], body["amount"], body["value"]) == ("up", 2, "3")
    who = young.gateway_principal(HOME_TENANT)
    row = rows(harness, "agents", agent_id="a")[0]
    harness.submit(reaping.evict(who, SilentAgent(row["agent_no"], row["entity_id"], 0), harness.now()))
    harness.submit(enrolment.record_heartbeat(harness.admin(), "b", None, {}, harness.now()))
    harness.submit(enrolment.record_heartbeat(harness.admin(), "c", None, {"status": "idle"}, harness.now()))
    assert young.look(after_s=1) == [("alert_resolved", "agent:b")], "a is evicted, and silent still"
    anew = Watchman(harness, started_ns=harness.now())
    add(harness, "silence", number=2, threshold=1.0)
    harness.submit(
        enrolment.record_heartbeat(harness.admin(), "c", None, {"status": "active"}, harness.now())
    )
    assert anew.look() == [], "a restart is nobody's recovery"
    assert not any(move == "alert_resolved" for move, _ in anew.look(after_s=30)), "whoever else is known"
    assert ("alert_resolved", "agent:a") in young.look(after_s=3_600)


@pytest.mark.req(219)
def test_queues_and_circuits_trigger_scaling_again_after_each_cool_down_s548_s553(harness: Harness) -> None:
    """S548, S553: by what was addressed, else by whose it is; a trigger is not resolved by an event."""
    scaling: dict[str, Any] = {"purpose": "scaling", "direction": "up", "amount": 3, "cooldown_s": 60}
    add(harness, "queue_depth", threshold=3.0, **scaling)
    add(harness, "queue_depth", number=2, scope="tenant", threshold=4.0, cooldown_s=0)
    add(harness, "breaker")
    watchman = Watchman(harness)

    def send(recipient: str) -> None:
        identity = {"agent_id": "boss", "agent_type": "lead", "recipient": recipient}
        harness.send(decision_log(meta={"step_id": str(uuid.uuid4())}, identity=identity))

    harness.send(new_message("1", "w", agent_type="writer"))
    for recipient in ("type:nobody", "w", "type:writer"):
        send(recipient)
    assert watchman.look() == []
    send("w")
    assert watchman.look() == [
        ("scaling_triggered", "capability:writer"),
        ("alert_raised", "tenant"),
    ]
    assert watchman.look(after_s=59) == []
    assert watchman.look(after_s=1) == [("scaling_triggered", "capability:writer")]
    acked = [
        (row["sequence_number"], row["agent_no"]) for row in rows(harness, "deliveries", state="pending")
    ]
    harness.sql("UPDATE deliveries SET state = 'acked' WHERE state = 'pending'")
    assert len(acked) == 3
    harness.submit(breaker.force_state(harness.admin(), "writer", "open", harness.now()))
    assert watchman.look(after_s=90) == [("alert_resolved", "tenant"), ("alert_raised", "capability:writer")]
    harness.submit(breaker.force_state(harness.admin(), "writer", "closed", harness.now()))
    assert watchman.look() == [("alert_resolved", "capability:writer")]


@pytest.mark.req(219)
def test_money_that_burns_too_fast_is_told_by_whose_it_is_s548(harness: Harness) -> None:
    """S548: the average of five minutes, of the tenant and of each cluster."""
    for number in range(4):
        harness.send(
            decision_log(
                meta={"step_id": str(uuid.uuid4()), "session_id": "s", "cluster_id": "eu"},
                identity={"agent_id": f"a{number}"},
                state_delta={"tokens_consumed": 1, "cumulative_session_cost": 5.0, "added_to_memory": None},
            )
        )
    with Analyst(harness) as analyst:
        analyst.catch_up()
        add(harness, "burn_rate", threshold=3.0)
        add(harness, "burn_rate", number=2, scope="cluster", threshold=3.0)
        add(harness, "burn_rate", number=3, scope="agent", threshold=3.0)
        watchman = Watchman(harness, analyst.derived)
        assert sorted(watchman.look()) == [("alert_raised", "cluster:eu"), ("alert_raised", "tenant")]
        assert {body["value"] for body in received(harness)} == {"4"}
        assert sorted(watchman.look(after_s=600)) == [
            ("alert_resolved", "cluster:eu"),
            ("alert_resolved", "tenant"),
        ]


@pytest.mark.req(219)
def test_what_a_proof_does_not_hold_and_dead_letters_are_told_s549(harness: Harness) -> None:
    """S549: forks, broken chains, logs that are not signed or not in time; letters new and waiting."""
    add(harness, "chain", window_s=600)
    add(harness, "dead_letters")
    add(harness, "checkpoint_lag", threshold=30.0)
    watchman = Watchman(harness)
    tell(harness, "peer_fork_detected", origin="peer.example/log")
    tell(harness, "dead_lettered", kind="webhook", source_name="ours")
    assert watchman.look() == [("alert_raised", "log:peer.example/log"), ("alert_raised", "tenant")]
    assert watchman.look(after_s=31) == [("alert_raised", "tenant")], "nobody signs here"
    lag = received(harness)[-1]
    assert lag["condition"] == "checkpoint_lag" and int(lag["figures"]["unsigned"]) > 0
    other = Watchman(harness)
    other.refused[HOME_TENANT] = LogRefusal("rollback", "the record reaches less far than was signed")
    add(harness, "checkpoint_lag", number=2, threshold=86_400.0)
    assert other.look() == [("alert_raised", "tenant")], "whatever the figure is"
    assert "less far" in received(harness)[-1]["figures"]["refused"]


def test_tenants_have_their_own_rules_and_quiet_ones_are_left_alone_s558(harness: Harness) -> None:
    """S558: nobody is judged by another's rules; without rules or news nothing is read or written."""
    harness.create_tenant(OTHER_TENANT)
    add(harness)
    watchman = Watchman(harness)
    unread = RejectedBody(
        harness.admin(OTHER_TENANT), harness.now(), "x", None, "why", "sha256:" + "0" * 64, None
    )
    harness.submit(unread, tenant_id=OTHER_TENANT)
    assert watchman.look() == [] and not received(harness, tenant_id=OTHER_TENANT)
    asked: list[Any] = []
    real = harness.store.fetch

    async def fetch(tenant_id: str, *more: Any, **named: Any) -> Any:
        asked.append(more[0])
        return await real(tenant_id, *more, **named)

    watchman.look()
    harness.store.fetch = fetch
    head = harness.read(harness.store.head(HOME_TENANT))
    asked.clear()
    for _ in range(3):
        harness.read(watchman.alerts.look(harness.now()))
    assert len(asked) <= 3 and all(one is HEADS for one in asked), "the heads, and nothing of a tenant"
    assert harness.read(harness.store.head(HOME_TENANT)) == head
    figures = {one.name: one.value for one in watchman.alerts.measures()}
    assert figures["observatory_alert_rules"] == 1 and figures["observatory_alert_lag_events"] == 0

"""Alert rules and scaling triggers on both databases: rules, the trail by its cursor, levels, a race."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from observatory.errors import NotDurable
from observatory.features.alerting import commands as alerting
from observatory.features.alerting import commands_findings as alert_telling
from observatory.features.alerting import worker as daemon
from observatory.features.alerting.commands_findings import Found, judge
from observatory.features.alerting.types_rules import DEFAULTS
from observatory.features.refusals.commands import conclude
from observatory.features.registry import circuit_breaker as breaker
from observatory.features.registry import commands as enrolment
from observatory.features.registry import commands_eviction as reaping
from observatory.features.registry.stage import TIMES
from observatory.features.transparency.log_opening import Refusal
from observatory.pipeline import quotas
from observatory.pipeline.event_writer import notice
from observatory.pipeline.ports import Silent
from observatory.pipeline.quotas import Quotas
from observatory.pipeline.state import HOME_TENANT, Act, Breach, Verdict
from observatory.store.committed import HEADS
from tests.alert_samples import SECOND, alert_rule
from tests.contract.alerting import Watchman, add, change, told, violate
from tests.contract.analysis import Analyst
from tests.contract.conftest import OTHER_TENANT, House
from tests.contract.test_entropy import step
from tests.contract.test_relay import said
from tests.samples import decision_log

MINUTE_NS = 60 * SECOND


@pytest.fixture(autouse=True)
def at_every_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are read and cursors kept at each look: these tests move the house's clock only."""
    monkeypatch.setattr(daemon, "LEVEL_S", 0.0)
    monkeypatch.setattr(daemon, "KEEP_S", 0.0)


def rows(house: House, table: str, **where: Any) -> list[dict[str, Any]]:
    return house.read(house.store.rows(HOME_TENANT, table, **where))


def tell(house: House, event_type: str, **detail: Any) -> None:
    """An event of the house, as whoever writes it would."""
    now_ns = house.now()
    event = notice(HOME_TENANT, event_type, "swordfish", now_ns, None, detail)
    house.submit(Act(house.admin(), now_ns, lambda _: Verdict(200, None, [event])))


def test_every_change_of_a_rule_is_audited_with_before_and_after_s540(house: House) -> None:
    """S540: the same again changes nothing; a name means one rule of its purpose; the record keeps all."""
    row = add(house)
    assert change(house, row).code == 200 and len(told(house, "alert_rule_changed")) == 1
    after = change(house, row, threshold=7.5, scope="tenant").answer
    assert after["since_seq"] == house.read(house.store.head(HOME_TENANT))[0] > row["since_seq"]
    twin = alert_rule(rule_id="alr_twin", name=row["name"])
    (refused,) = house.submit(alerting.add(house.admin(), twin, house.now()))
    assert (refused.code, refused.answer.reason) == (409, "name_taken")
    trigger = alert_rule(
        "queue_depth", rule_id="scl_1", purpose="scaling", direction="up", amount=1, name=row["name"]
    )
    assert house.submit(alerting.add(house.admin(), trigger, house.now()))[0].code == 201
    muted = alerting.mute(house.admin(), "alert", row["rule_id"], house.now() + MINUTE_NS, house.now())
    assert house.submit(muted)[0].answer["since_seq"] == after["since_seq"], "a mute begins nothing anew"
    for purpose, code in (("scaling", 404), ("alert", 200), ("alert", 404)):
        act = alerting.remove(house.admin(), purpose, row["rule_id"], house.now())  # type: ignore[arg-type]
        assert house.submit(act)[0].code == code
    changes = told(house, "alert_rule_changed")
    assert [one["change"] for one in changes] == ["created", "changed", "created", "muted", "removed"]
    assert (changes[1]["before"]["threshold"], changes[1]["after"]["threshold"]) == ("1", "7.5")
    assert changes[3]["muted_until"] is not None and changes[4]["after"] is None


def test_a_tenant_has_so_many_rules_and_the_offered_set_fits_s540_s552(house: House) -> None:
    """S540, S552: defaults are made once, for what nobody watches yet."""
    add(house, "silence")
    (made,) = house.submit(alerting.add_defaults(house.admin(), ("whe_1",), house.now()))
    assert {row["condition"] for row in made.answer} == {one.condition for one in DEFAULTS} - {"silence"}
    assert all(alerting.rule_of(row).endpoint_ids == ("whe_1",) for row in made.answer)
    (again,) = house.submit(alerting.add_defaults(house.admin(), (), house.now()))
    assert (again.code, again.answer) == (200, [])
    rules = [alert_rule(rule_id=f"alr_{number}", name=f"n{number}") for number in range(alerting.MOST_RULES)]
    verdicts = house.submit(*(alerting.add(house.admin(), rule, house.now()) for rule in rules))
    assert sum(one.code == 201 for one in verdicts) == alerting.MOST_RULES - len(DEFAULTS)
    assert verdicts[-1].answer.reason == "too_many_rules"


@pytest.mark.req(219)
def test_events_are_told_once_with_what_a_person_needs_s545_s550(house: House) -> None:
    """S545, S550: raised at the threshold, resolved by the window; figures, link, endpoints; no payload."""
    violate(house, 3)
    rule = add(house, threshold=3.0, window_s=60)
    watchman = Watchman(house)
    violate(house, 2)
    assert watchman.look() == [], "what was before the rule does not count"
    violate(house)
    assert watchman.look() == [("alert_raised", "agent:writer")]
    violate(house, 5)
    assert watchman.look() == [], "de-duplicated"
    house.create_tenant(OTHER_TENANT)
    assert house.read(house.store.alerts_open(OTHER_TENANT, None, 10)) == []
    assert house.read(house.store.alert_standings(OTHER_TENANT, 0, 10)) == []
    (row,) = house.read(house.store.alerts_open(HOME_TENANT, None, 10))
    (body,) = told(house)
    assert (row["subject"], row["times"], row["raised_seq"]) == ("agent:writer", 1, body_seq(house))
    assert (body["rule_id"], body["value"], body["threshold"]) == (rule["rule_id"], "3", "3")
    assert body["link"] == "http://here/fleet?peek=agent:writer" and body["endpoint_ids"] == ["whe_one"]
    assert (body["window_s"], body["severity"], body["test"]) == (60, "error", False)
    event = house.trail_of()[body_seq(house) - 1]
    assert b"swordfish" not in event.record and b'"severity_number":17' in event.record
    assert watchman.look(after_s=61) == [("alert_resolved", "agent:writer")]
    assert told(house)[-1]["raised_sequence_number"] == row["raised_seq"]
    assert house.refuses("DELETE FROM alert_rules") and house.refuses("DELETE FROM alert_states")
    assert house.read(house.store.alerts_open(HOME_TENANT, None, 10)) == []


def body_seq(house: House) -> int:
    (found,) = [event for event in house.trail_of() if b'"event_type":"alert_raised"' in event.record]
    return found.sequence_number


def test_killed_between_any_two_looks_it_tells_the_same_s545(house: House) -> None:
    """S545: windows are filled again, nothing is told twice, what was written meanwhile is told late."""
    add(house, threshold=4.0, window_s=60, cooldown_s=300)
    found: list[tuple[str, str]] = []
    watchman = Watchman(house)
    for _ in range(4):
        violate(house)
        watchman.again()
        found += watchman.look()
    assert found == [("alert_raised", "agent:writer")], "counted over four processes"
    watchman.again()
    assert watchman.look() == []
    assert watchman.look(after_s=3_600) == [("alert_resolved", "agent:writer")]
    violate(house, 4, "reader")
    house.wait(7_200 * SECOND)  # two hours without any gateway: the window is long over
    watchman.again()
    assert watchman.look() == [("alert_raised", "agent:reader"), ("alert_resolved", "agent:reader")]
    watchman.again()
    assert watchman.look() == []


def test_what_could_not_be_kept_is_found_again_s545(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """S545: a full disk or a database away costs a look, no alert and no second one."""
    add(house, threshold=2.0, cooldown_s=300)
    watchman = Watchman(house)
    violate(house, 2)

    async def away(tenant_id: str, items: Any) -> list[Verdict]:
        raise NotDurable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(watchman, "submit", away)
        assert watchman.look() == [] and watchman.look() == []
    assert watchman.alerts.measures()[4].value == 2
    assert watchman.look() == [("alert_raised", "agent:writer")]
    assert watchman.look() == []


def test_many_events_are_read_in_pages_and_the_cursor_only_grows_s545(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S545: also when a look ends before the trail does."""
    monkeypatch.setattr(daemon, "PAGE", 4)
    monkeypatch.setattr(daemon, "PAGES", 2)
    monkeypatch.setattr(quotas, "_quotas", Quotas(refusals_in_full=100))
    add(house, threshold=20.0)
    violate(house, 20)
    watchman = Watchman(house)
    cursors, told_all = [], list[tuple[str, str]]()
    for _ in range(4):
        told_all += watchman.look()
        cursors.append(int(rows(house, "knobs", name=alert_telling.CURSOR)[0]["value"]))
    assert told_all == [("alert_raised", "agent:writer")] and cursors == sorted(cursors)
    late = judge(watchman.principal_of_house(HOME_TENANT), [], 3, house.now())
    house.submit(late)
    assert int(rows(house, "knobs", name=alert_telling.CURSOR)[0]["value"]) == cursors[-1]


def test_violations_that_are_only_counted_raise_the_alert_as_if_each_were_told_s1161(house: House) -> None:
    """S1161: ten are events of their own; the threshold lies beyond them."""
    add(house, threshold=30.0, scope="tenant")
    watchman = Watchman(house)
    violate(house, 40)
    assert watchman.look() == []
    house.wait(61 * SECOND)
    house.submit(conclude(house.admin(), "key_admin", "schema_violation/refused", house.now()))
    assert watchman.look() == [("alert_raised", "tenant")]


def test_a_second_evaluator_tells_nothing_the_first_has_told_s546(house: House) -> None:
    """S546: with or without the lease; a stale rule, a judged event and a standing alert are left alone."""
    row = add(house, cooldown_s=300)
    first, second = Watchman(house), Watchman(house)
    second.look()
    violate(house)
    assert first.look() == [("alert_raised", "agent:writer")]
    assert second.look() == []
    rule, who = alerting.rule_of(row), first.principal_of_house(HOME_TENANT)
    head, _ = house.read(house.store.head(HOME_TENANT))
    now_ns = house.now()
    late = [
        Found(rule, "agent:writer", "raise", 1, now_ns, now_ns, "", head + 1),
        Found(rule, "agent:reader", "raise", 1, now_ns, now_ns, "", row["since_seq"] + 1),
        Found(rule, "agent:reader", "resolve", 0, now_ns, now_ns, "", None),
    ]
    assert house.submit(judge(who, late, head, now_ns))[0].answer == []
    change(house, row, threshold=2.0)
    stale = Found(rule, "agent:other", "raise", 1, now_ns, now_ns, "", head + 9)
    assert house.submit(judge(who, [stale], 0, now_ns))[0].answer == []
    assert len(told(house)) == 1
    third = Watchman(house)
    third.alerts._leader.holder = "gtw_other"
    assert third.look() == [], "another holds the lease"


@pytest.mark.req(219)
def test_a_looping_session_is_told_and_resolved_when_it_goes_on_s547(house: House) -> None:
    """S547: by the session itself, long before its window ends; a removed rule resolves as well."""
    add(house, "entropy", window_s=3_600)
    watchman = Watchman(house)
    house.send(*(step() for _ in range(5)))
    assert watchman.look() == [("alert_raised", "session:ses-1")]
    assert watchman.look(after_s=30) == []
    house.send(*(step(f"Another way {number}") for number in range(5)))
    assert watchman.look() == [("alert_resolved", "session:ses-1")]
    house.send(*(step() for _ in range(5)))
    assert watchman.look() == [("alert_raised", "session:ses-1")]
    house.submit(alerting.remove(house.admin(), "alert", "alr_entropy", house.now()))
    watchman.again()
    assert watchman.look() == [("alert_resolved", "session:ses-1")]
    assert told(house)[-1]["reason"] == "rule_changed" and told(house)[-1]["endpoint_ids"] == []
    assert watchman.look() == []


def test_while_muted_it_is_shown_and_told_to_nobody_s544(house: House) -> None:
    """S544: and to whom it concerns when the mute ends, if it still fires."""
    add(house, "gate_age", threshold=30.0)
    mute = alerting.mute(house.admin(), "alert", "alr_gate_age", house.now() + 5 * MINUTE_NS, house.now())
    house.submit(mute)
    watchman = Watchman(house)
    house.send(said("ask", hitl=True))
    assert watchman.look() == []
    assert watchman.look(after_s=60) == [("alert_raised", "tenant")]
    assert (told(house)[-1]["muted"], told(house)[-1]["endpoint_ids"]) == (True, [])
    (row,) = house.read(house.store.alerts_open(HOME_TENANT, None, 10))
    assert row["is_told"] == 0
    assert watchman.look(after_s=300) == [("alert_raised", "tenant")]
    assert told(house)[-1]["endpoint_ids"] == ["whe_one"]
    assert told(house)[-1]["figures"] == {"gates": "1", "decisions": "0"}
    house.submit(alerting.mute(house.admin(), "alert", "alr_gate_age", house.now() + MINUTE_NS, house.now()))
    house.sql("UPDATE holds SET state = 'released'")
    assert watchman.look() == [("alert_resolved", "tenant")]
    assert told(house)[-1]["endpoint_ids"] == [], "its end is told to nobody either"


@pytest.mark.req(218, 219)
def test_silent_agents_are_told_one_by_one_and_as_a_count_s548(house: House) -> None:
    """S548: evicted ones too, for an hour; not while the gateway was away; recovered ones are resolved."""
    for agent in ("a", "b", "c"):
        house.send(said(agent, agent, agent_type="writer"))
        house.submit(enrolment.beat(house.admin(), agent, None, {}, house.now()))
    add(house, "silence", threshold=60.0)
    scaling: dict[str, Any] = {"purpose": "scaling", "direction": "up", "amount": 2, "cooldown_s": 120}
    add(house, "silent_agents", threshold=2.0, **scaling)
    started_ns = house.wait(600 * SECOND)
    later = Watchman(house, started_ns=started_ns + 3_600 * SECOND)
    assert not later.levels.knows(alert_rule("silence", threshold=5.0), started_ns)
    assert later.levels.knows(alert_rule("silence", threshold=5.0), started_ns + 5 * SECOND), "set back"
    young = Watchman(house, started_ns=started_ns)
    assert young.look() == [], "it has not listened long enough to know"
    house.submit(enrolment.beat(house.admin(), "c", None, {"status": "idle"}, house.now()))
    assert young.look(after_s=TIMES.check_ns / SECOND - 1) == []
    house.submit(enrolment.beat(house.admin(), "c", None, {"status": "active"}, house.now()))
    assert young.look(after_s=31) == [
        ("alert_raised", "agent:a"),
        ("alert_raised", "agent:b"),
        ("scaling_triggered", "capability:writer"),
    ]
    body = told(house, "scaling_triggered")[0]
    assert (body["direction"], body["amount"], body["value"]) == ("up", 2, "3")
    who = young.principal_of_house(HOME_TENANT)
    row = rows(house, "agents", agent_id="a")[0]
    house.submit(reaping.evict(who, Silent(row["agent_no"], row["entity_id"], 0), house.now()))
    house.submit(enrolment.beat(house.admin(), "b", None, {}, house.now()))
    house.submit(enrolment.beat(house.admin(), "c", None, {"status": "idle"}, house.now()))
    assert young.look(after_s=1) == [("alert_resolved", "agent:b")], "a is evicted, and silent still"
    anew = Watchman(house, started_ns=house.now())
    add(house, "silence", number=2, threshold=1.0)
    house.submit(enrolment.beat(house.admin(), "c", None, {"status": "active"}, house.now()))
    assert anew.look() == [], "a restart is nobody's recovery"
    assert not any(move == "alert_resolved" for move, _ in anew.look(after_s=30)), "whoever else is known"
    assert ("alert_resolved", "agent:a") in young.look(after_s=3_600)


@pytest.mark.req(219)
def test_queues_and_circuits_trigger_scaling_again_after_each_cool_down_s548_s553(house: House) -> None:
    """S548, S553: by what was addressed, else by whose it is; a trigger is not resolved by an event."""
    scaling: dict[str, Any] = {"purpose": "scaling", "direction": "up", "amount": 3, "cooldown_s": 60}
    add(house, "queue_depth", threshold=3.0, **scaling)
    add(house, "queue_depth", number=2, scope="tenant", threshold=4.0, cooldown_s=0)
    add(house, "breaker")
    watchman = Watchman(house)

    def send(recipient: str) -> None:
        identity = {"agent_id": "boss", "agent_type": "lead", "recipient": recipient}
        house.send(decision_log(meta={"step_id": str(uuid.uuid4())}, identity=identity))

    house.send(said("1", "w", agent_type="writer"))
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
    acked = [(row["sequence_number"], row["agent_no"]) for row in rows(house, "deliveries", state="pending")]
    house.sql("UPDATE deliveries SET state = 'acked' WHERE state = 'pending'")
    assert len(acked) == 3
    house.submit(breaker.force(house.admin(), "writer", "open", house.now()))
    assert watchman.look(after_s=90) == [("alert_resolved", "tenant"), ("alert_raised", "capability:writer")]
    house.submit(breaker.force(house.admin(), "writer", "closed", house.now()))
    assert watchman.look() == [("alert_resolved", "capability:writer")]


@pytest.mark.req(219)
def test_money_that_burns_too_fast_is_told_by_whose_it_is_s548(house: House) -> None:
    """S548: the average of five minutes, of the tenant and of each cluster."""
    for number in range(4):
        house.send(
            decision_log(
                meta={"step_id": str(uuid.uuid4()), "session_id": "s", "cluster_id": "eu"},
                identity={"agent_id": f"a{number}"},
                state_delta={"tokens_consumed": 1, "cumulative_session_cost": 5.0, "added_to_memory": None},
            )
        )
    with Analyst(house) as analyst:
        analyst.catch_up()
        add(house, "burn_rate", threshold=3.0)
        add(house, "burn_rate", number=2, scope="cluster", threshold=3.0)
        add(house, "burn_rate", number=3, scope="agent", threshold=3.0)
        watchman = Watchman(house, analyst.derived)
        assert sorted(watchman.look()) == [("alert_raised", "cluster:eu"), ("alert_raised", "tenant")]
        assert {body["value"] for body in told(house)} == {"4"}
        assert sorted(watchman.look(after_s=600)) == [
            ("alert_resolved", "cluster:eu"),
            ("alert_resolved", "tenant"),
        ]


@pytest.mark.req(219)
def test_what_a_proof_does_not_hold_and_dead_letters_are_told_s549(house: House) -> None:
    """S549: forks, broken chains, logs that are not signed or not in time; letters new and waiting."""
    add(house, "chain", window_s=600)
    add(house, "dead_letters")
    add(house, "checkpoint_lag", threshold=30.0)
    watchman = Watchman(house)
    tell(house, "peer_fork_detected", origin="peer.example/log")
    tell(house, "dead_lettered", kind="webhook", source_name="ours")
    assert watchman.look() == [("alert_raised", "log:peer.example/log"), ("alert_raised", "tenant")]
    assert watchman.look(after_s=31) == [("alert_raised", "tenant")], "nobody signs here"
    lag = told(house)[-1]
    assert lag["condition"] == "checkpoint_lag" and int(lag["figures"]["unsigned"]) > 0
    other = Watchman(house)
    other.refused[HOME_TENANT] = Refusal("rollback", "the record reaches less far than was signed")
    add(house, "checkpoint_lag", number=2, threshold=86_400.0)
    assert other.look() == [("alert_raised", "tenant")], "whatever the figure is"
    assert "less far" in told(house)[-1]["figures"]["refused"]


def test_tenants_have_their_own_rules_and_quiet_ones_are_left_alone_s558(house: House) -> None:
    """S558: nobody is judged by another's rules; without rules or news nothing is read or written."""
    house.create_tenant(OTHER_TENANT)
    add(house)
    watchman = Watchman(house)
    unread = Breach(house.admin(OTHER_TENANT), house.now(), "x", None, "why", "sha256:" + "0" * 64, None)
    house.submit(unread, tenant_id=OTHER_TENANT)
    assert watchman.look() == [] and not told(house, tenant_id=OTHER_TENANT)
    asked: list[Any] = []
    real = house.store.fetch

    async def fetch(tenant_id: str, *more: Any, **named: Any) -> Any:
        asked.append(more[0])
        return await real(tenant_id, *more, **named)

    watchman.look()
    house.store.fetch = fetch  # type: ignore[method-assign]
    head = house.read(house.store.head(HOME_TENANT))
    asked.clear()
    for _ in range(3):
        house.read(watchman.alerts.look(house.now()))
    assert len(asked) <= 3 and all(one is HEADS for one in asked), "the heads, and nothing of a tenant"
    assert house.read(house.store.head(HOME_TENANT)) == head
    figures = {one.name: one.value for one in watchman.alerts.measures()}
    assert figures["observatory_alert_rules"] == 1 and figures["observatory_alert_lag_events"] == 0

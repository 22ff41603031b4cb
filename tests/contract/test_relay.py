"""The relay over both databases: what is held stays held, what goes goes in order, each command once."""

from __future__ import annotations

import json
import random
import uuid
from typing import Any

import pytest

from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.relay import release
from observatory.features.relay.rewrite import with_ids_of
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.ports import MessageFilter
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult
from observatory.protocol.message import Message
from tests.contract.conftest import Harness
from tests.samples import decision_log

SESSION = str(uuid.UUID(int=0xABC, version=4))
AGENT = "worker-1"


def person(harness: Harness, name: str = "usr_ann") -> Principal:
    version = harness.admin().access_version
    return Principal(
        tenant_id=HOME_TENANT,
        role="operator",
        key_id=f"sys_{name}",
        user_id=name,
        access_version=version,
    )


def new_message(
    step: str, agent: str = AGENT, hitl: bool = False, parent: str | None = None, **identity: Any
) -> dict[str, Any]:
    body = decision_log()
    body["meta"] |= {
        "trace_id": SESSION,
        "session_id": SESSION,
        "step_id": step,
        "parent_step_id": parent,
    }
    body["identity"] |= {"agent_id": agent, **identity}
    body["control"] = {"hitl_required": hitl, "interrupt_signal": None, "is_terminal": False}
    return body


def act(harness: Harness, deed: Command) -> SubmissionResult:
    return harness.submit(deed)[0]


def events(harness: Harness, *kinds: str) -> list[dict[str, Any]]:
    found = [json.loads(event.record) for event in harness.trail_of()]
    return [event for event in found if not kinds or event["body"]["event_type"] in kinds]


def delivered(harness: Harness) -> list[str]:
    """Step ids in the order they were forwarded."""
    return [event["attributes"]["av.step.id"] for event in events(harness, "message_delivered")]


def states(harness: Harness) -> dict[str, str]:
    found = harness.read(harness.store.messages(HOME_TENANT, MessageFilter(), 1_000, False))
    return {message.step_id: message.state for message in found}


def pause(harness: Harness, agent: str = AGENT) -> SubmissionResult:
    return act(harness, interventions.pause(person(harness), SESSION, agent, None, harness.now()))


def unpause(harness: Harness, agent: str = AGENT) -> SubmissionResult:
    return act(harness, interventions.unpause(person(harness), SESSION, agent, None, harness.now()))


def approve(harness: Harness, step: str, who: str = "usr_ann", digest: str | None = None) -> SubmissionResult:
    deed = gates.approve(person(harness, who), SESSION, AGENT, step, digest, None, harness.now())
    return act(harness, deed)


@pytest.mark.req(187, 190, 195)
def test_a_pause_holds_all_and_unpausing_releases_in_arrival_order_s83(harness: Harness) -> None:
    harness.send(new_message("1"))
    assert pause(harness).code == 202
    answers = harness.send(new_message("2"), new_message("3"), new_message("other", agent="worker-2"))
    assert [verdict.answer.state for verdict in answers] == ["held", "held", "forwarded"]
    assert delivered(harness) == ["1", "other"]
    verdict = unpause(harness)
    assert (verdict.code, verdict.answer.released, verdict.answer.remaining) == (200, 2, 0)
    assert delivered(harness) == ["1", "other", "2", "3"]
    assert states(harness) == dict.fromkeys(("1", "2", "3", "other"), "forwarded")
    assert harness.send(new_message("4"))[0].answer.state == "forwarded"


def test_pausing_twice_says_so_and_writes_nothing_s83(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    before = len(harness.trail_of())
    verdict = pause(harness)
    assert (verdict.code, verdict.answer.status) == (200, "already_paused")
    assert len(harness.trail_of()) == before


@pytest.mark.parametrize(("session", "agent"), [("ses_none", AGENT), (SESSION, "nobody")])
def test_an_unknown_session_or_agent_is_answered_404(harness: Harness, session: str, agent: str) -> None:
    harness.send(new_message("1"))
    for deed in (
        interventions.pause(person(harness), session, agent, None, harness.now()),
        interventions.inject(person(harness), session, agent, "stop", harness.now()),
        gates.approve(person(harness), session, agent, "1", None, None, harness.now()),
    ):
        assert act(harness, deed).code == 404


@pytest.mark.req(155, 182, 242)
def test_a_gate_holds_its_message_and_its_descendants_and_nothing_else_s84(harness: Harness) -> None:
    answers = harness.send(
        new_message("ask", hitl=True),
        new_message("child", parent="ask"),
        new_message("grandchild", parent="child", agent="worker-2"),
        new_message("sibling"),
    )
    assert [verdict.answer.state for verdict in answers] == ["held", "held", "held", "forwarded"]
    (opened,) = events(harness, "gate_opened")
    assert opened["body"]["action_digest"].startswith("sha256:") and opened["body"]["quorum"] == 1
    verdict = approve(harness, "ask")
    assert (verdict.code, verdict.answer.state, verdict.answer.released) == (200, "forwarded", 3)
    assert delivered(harness) == ["sibling", "ask", "child", "grandchild"]
    assert approve(harness, "ask").answer.reason == "not_held", "an approval is used once"


@pytest.mark.req(183)
def test_a_rejected_message_and_what_hangs_on_it_is_never_forwarded_s85(harness: Harness) -> None:
    harness.send(new_message("ask", hitl=True), new_message("child", parent="ask"))
    deed = gates.reject_message(person(harness), SESSION, AGENT, "ask", None, "too risky", harness.now())
    assert (verdict := act(harness, deed)).code == 200 and verdict.answer.state == "rejected"
    assert delivered(harness) == []
    assert states(harness) == {"ask": "rejected", "child": "rejected"}
    assert [event["body"]["note"] for event in events(harness, "message_rejected")] == [
        "too risky",
        "its ancestor ask was rejected",
    ]
    received = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    verdicts = [json.loads(row["body"])["verdict"] for row in received if row["kind"] == "verdict"]
    assert verdicts == ["rejected"] * 2


def test_unpausing_leaves_gated_messages_held_s84(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    harness.send(new_message("2"), new_message("ask", hitl=True), new_message("3"))
    assert unpause(harness).answer.released == 2
    assert delivered(harness) == ["1", "2", "3"]
    assert states(harness)["ask"] == "held"


def test_an_approved_message_of_a_paused_agent_waits_for_its_place_s84(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    harness.send(new_message("2"), new_message("ask", hitl=True), new_message("3"))
    verdict = approve(harness, "ask")
    assert (verdict.code, verdict.answer.state) == (200, "held")
    assert delivered(harness) == ["1"]
    unpause(harness)
    assert delivered(harness) == ["1", "2", "ask", "3"]


def rewritten(harness: Harness, step: str, body: dict[str, Any]) -> Message:
    original = harness.read(harness.store.message(HOME_TENANT, f"{SESSION}/{step}"))
    assert original is not None and original.raw is not None
    found = intercept(with_ids_of(original.raw, body, original.step_id, original.session_id))
    assert isinstance(found, Message), found
    return found


@pytest.mark.req(189, 190, 194)
def test_a_rewrite_replaces_the_content_and_keeps_the_ids_s86(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    harness.send(new_message("2"))
    body = new_message("forged", agent="impostor")
    body["cognition"]["intent"] = "the mended intent"
    message = rewritten(harness, "2", body)
    deed = interventions.rewrite(person(harness), SESSION, AGENT, "2", message, harness.now())
    verdict = act(harness, deed)
    assert verdict.code == 200 and verdict.answer.before_hash != verdict.answer.after_hash
    unpause(harness)
    last = events(harness, "message_delivered")[-1]
    assert last["attributes"]["av.message.digest"] == verdict.answer.after_hash
    assert last["attributes"]["av.sender.agent_id"] == AGENT
    found = harness.read(harness.store.message(HOME_TENANT, f"{SESSION}/2"))
    assert found is not None and found.rewritten is not None
    shown = json.loads(found.rewritten)
    assert shown["cognition"]["intent"] == "the mended intent"
    assert (shown["identity"]["agent_id"], shown["meta"]["step_id"]) == (AGENT, "2")
    assert shown["control"]["interrupt_signal"] == "rewrite"
    did = [event["body"] for event in events(harness, "hitl_intervention")]
    assert [one["command"] for one in did] == ["pause", "rewrite", "unpause"]
    assert all(one["operator_id"] == "usr_ann" for one in did)


def test_a_rewrite_can_be_undone_until_release_s86(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    harness.send(new_message("2"))
    body = new_message("2")
    body["cognition"]["intent"] = "other"
    deed = interventions.rewrite(
        person(harness), SESSION, AGENT, "2", rewritten(harness, "2", body), harness.now()
    )
    done = act(harness, deed).answer

    def undo() -> SubmissionResult:
        (row,) = harness.read(
            harness.store.rows(HOME_TENANT, "interventions", intervention_id=done.intervention_id)
        )
        (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents", agent_id=AGENT))
        deed = reversal.undo(person(harness), row, SESSION, agent, harness.now())
        return deed if isinstance(deed, SubmissionResult) else act(harness, deed)

    verdict = undo()
    assert (verdict.code, verdict.answer.after_hash) == (200, done.before_hash)
    assert undo().answer.reason == "already_undone"
    unpause(harness)
    assert events(harness, "message_delivered")[-1]["attributes"]["av.message.digest"] == done.before_hash
    assert len(events(harness, "hitl_reversed")) == 1


@pytest.mark.req(191, 192)
def test_an_inject_can_be_withdrawn_until_it_is_given_s87(harness: Harness) -> None:
    harness.send(new_message("1"))
    done = act(
        harness, interventions.inject(person(harness), SESSION, AGENT, "look again", harness.now())
    ).answer
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "interventions"))
    (agent,) = harness.read(harness.store.rows(HOME_TENANT, "agents"))
    first, second = (reversal.undo(person(harness), row, SESSION, agent, harness.now()) for _ in range(2))
    assert isinstance(first, Command) and isinstance(second, Command)
    assert act(harness, first).answer.state == "withdrawn"
    assert act(harness, second).answer.reason == "already_undone"
    (received,) = harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
    assert (received["kind"], received["state"]) == ("inject", "withdrawn")
    assert done.delivery_id == f"dlv_{received['sequence_number']}-{received['agent_no']}"


def test_approval_is_of_the_digest_that_was_seen_and_never_of_ones_own_request_s88(harness: Harness) -> None:
    harness.send(new_message("ask", hitl=True))
    assert approve(harness, "ask", digest="sha256:" + "0" * 64).answer.reason == "stale_digest"
    own = harness.admin()  # whose key sent it
    deed = gates.approve(own, SESSION, AGENT, "ask", None, None, harness.now())
    assert act(harness, deed).answer.reason == "own_request"
    digest = events(harness, "gate_opened")[0]["body"]["action_digest"]
    assert approve(harness, "ask", digest=digest).code == 200


def quorum_of_two(harness: Harness) -> None:
    harness.sql("UPDATE holds SET quorum = 2")


def test_where_two_must_approve_two_different_people_do_s88(harness: Harness) -> None:
    harness.send(new_message("ask", hitl=True))
    quorum_of_two(harness)
    first = approve(harness, "ask", "usr_ann")
    assert (first.code, first.answer.state, first.answer.approvals) == (202, "held", ["usr_ann"])
    assert approve(harness, "ask", "usr_ann").answer.reason == "already_approved"
    assert delivered(harness) == []
    assert approve(harness, "ask", "usr_bob").answer.state == "forwarded"


def test_an_edit_voids_earlier_approvals_s88(harness: Harness) -> None:
    harness.send(new_message("ask", hitl=True))
    quorum_of_two(harness)
    approve(harness, "ask", "usr_ann")
    body = new_message("ask")
    body["action"]["tool_call"] = "something_harmless"
    message = rewritten(harness, "ask", body)
    deed = gates.edit(person(harness, "usr_bob"), SESSION, AGENT, "ask", None, message, None, harness.now())
    assert (verdict := act(harness, deed)).code == 202 and verdict.answer.approvals == ["usr_bob"]
    verdict = approve(harness, "ask", "usr_ann")
    assert verdict.answer.state == "forwarded" and verdict.answer.approvals == ["usr_bob", "usr_ann"]
    (received,) = [
        json.loads(row["body"])
        for row in harness.read(harness.store.rows(HOME_TENANT, "deliveries"))
        if row["kind"] == "verdict"
    ]
    assert (
        received["verdict"] == "edited" and received["content"]["action"]["tool_call"] == "something_harmless"
    )


@pytest.mark.parametrize(("policy", "state"), [("deny", "rejected"), ("approve", "forwarded")])
def test_a_gate_that_expires_follows_its_own_policy_s89(harness: Harness, policy: str, state: str) -> None:
    harness.send(new_message("ask", hitl=True))
    harness.sql(f"UPDATE holds SET deadline_ns = 1, on_expiry = '{policy}'")
    assert approve(harness, "ask").answer.reason == "expired"
    due: tuple[str, int]
    (due,) = harness.read(harness.store.gates_due(HOME_TENANT, harness.now(), 10))
    act(harness, gates.expire(person(harness, "sys_clock"), *due, harness.now()))
    assert states(harness) == {"ask": state}
    assert len(events(harness, "gate_expired")) == 1
    act(harness, gates.expire(person(harness, "sys_clock"), *due, harness.now()))
    assert len(events(harness, "gate_expired")) == 1, "a second clock finds nothing to do"


def test_a_repeat_of_a_held_message_is_answered_as_the_first_and_held_once(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    first, again = (harness.send(new_message("2"))[0].answer for _ in range(2))
    assert first == again and first.state == "held"
    unpause(harness)
    assert delivered(harness) == ["1", "2"]


def test_a_long_line_goes_in_several_transactions_and_in_order_s83(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.send(new_message("0"))
    pause(harness)
    numbers = [str(number) for number in range(1, 26)]
    harness.send(*(new_message(number) for number in numbers))
    monkeypatch.setattr(release, "MAX_RELEASED_AT_ONCE", 10)
    answer = unpause(harness).answer
    assert (answer.released, answer.remaining) == (10, 15)
    # Whoever speaks meanwhile stands behind those who wait.
    assert harness.send(new_message("26"))[0].answer.state == "held"
    while act(harness, release.drain(person(harness), SESSION, harness.now())).answer.released:
        pass
    assert delivered(harness) == ["0", *numbers, "26"]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_people_and_agents_do_order_is_kept_and_nothing_held_leaks(
    harness: Harness, seed: int
) -> None:
    """S83, S84, S85: a model of two agents and one operator, a batch at a time."""
    dice = random.Random(seed)
    agents = ["worker-1", "worker-2"]
    harness.send(*(new_message(f"{agent}-0", agent=agent) for agent in agents))
    paused: set[str] = set()
    fate: dict[str, str] = {}  # step -> waiting, gated, rejected
    sent: dict[str, list[str]] = {agent: [f"{agent}-0"] for agent in agents}
    count = 0
    for _ in range(25):
        agent, roll = dice.choice(agents), dice.random()
        if roll < 0.55:
            count += 1
            step, gated = f"{agent}-{count}", dice.random() < 0.3
            state = harness.send(new_message(step, agent=agent, hitl=gated))[0].answer.state
            assert state == ("held" if gated or agent in paused else "forwarded")
            sent[agent].append(step)
            fate[step] = "gated" if gated else "waiting" if agent in paused else "forwarded"
        elif roll < 0.7:
            pause(harness, agent)
            paused.add(agent)
        elif roll < 0.85:
            unpause(harness, agent)
            paused.discard(agent)
        elif open_gates := [step for step, how in fate.items() if how == "gated"]:
            step = dice.choice(open_gates)
            owner = step.rpartition("-")[0]
            answer = gates.approve if dice.random() < 0.6 else gates.reject_message
            verdict = act(harness, answer(person(harness), SESSION, owner, step, None, None, harness.now()))
            assert verdict.code == 200
            fate[step] = "approved" if answer is gates.approve else "rejected"
        for step in delivered(harness):
            owner = step.rpartition("-")[0]
            assert fate.get(step) not in ("gated", "rejected"), f"{step} leaked"
            assert step in sent[owner]
    for agent in agents:
        unpause(harness, agent)
    gone = delivered(harness)
    assert len(gone) == len(set(gone)), "nothing is delivered twice"
    expected = {step for steps in sent.values() for step in steps}
    expected -= {step for step, how in fate.items() if how in ("gated", "rejected")}
    assert set(gone) == expected, "nothing is lost"
    never_gated = [step for step in gone if fate.get(step, "") in ("", "waiting", "forwarded")]
    for agent in agents:
        mine = [step for step in never_gated if step.startswith(f"{agent}-")]
        assert mine == [step for step in sent[agent] if step in mine], "arrival order is kept"


def test_a_pause_is_confirmed_once_its_agent_knows_and_is_silent_s90(harness: Harness) -> None:
    harness.send(new_message("1"))
    pause(harness)
    harness.send(new_message("2"))

    def look() -> list[dict[str, Any]]:
        for row in harness.read(harness.store.pauses_acknowledged(HOME_TENANT, 10)):
            act(harness, reversal.confirm(harness.admin(), row, SESSION, row["entity_id"], harness.now()))
        return events(harness, "pause_confirmed")

    assert look() == [], "nobody has acknowledged it"
    harness.sql(f"UPDATE interventions SET acknowledged_ns = {harness.now()}")
    assert look() == [], "not long enough ago"
    harness.sql("UPDATE interventions SET acknowledged_ns = 1")
    assert look() == [], "it spoke a moment ago"
    harness.sql("UPDATE members SET arrived_ns = 1")
    assert len(look()) == 1
    assert len(look()) == 1, "once"
    (row,) = harness.read(harness.store.rows(HOME_TENANT, "interventions"))
    assert row["confirmed_ns"] is not None

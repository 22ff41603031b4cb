"""No tenant sees or touches another: through the store on both databases, and by PostgreSQL itself."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from observatory.features.access import commands as access
from observatory.features.alerting.types_rows import AlertingRows, PendingApprovals
from observatory.features.hooks.types_rows import HookRows
from observatory.features.inbox import commands as inbox
from observatory.features.instructions import commands as instructions
from observatory.features.policies import commands as rulemaking
from observatory.features.registry import commands as enrolment
from observatory.features.relay import commands as interventions
from observatory.features.schedule import commands as jobs
from observatory.features.schedule import commands_firing as firing
from observatory.features.schedule.types_rows import JobRows
from observatory.features.thoughts.types_rows import Thoughts
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.pipeline import dead_letters
from observatory.pipeline.ports import (
    AgentTraffic,
    Archive,
    Directory,
    EventFilter,
    Holds,
    Inbox,
    KillSwitchCoverage,
    KillSwitchReach,
    MessageFilter,
    PendingFilter,
    Store,
)
from observatory.pipeline.rows import KillSwitchAcknowledgements, KillSwitchCounts, RowWrite
from observatory.pipeline.state import HOME_TENANT, Command, Principal, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id, delivery_id
from observatory.protocol.otel import trace_id_of_session
from observatory.protocol.tenant_config import Match, PolicyRule
from observatory.store import tables
from tests.contract.conftest import OTHER_TENANT, Harness, writing
from tests.contract.thinking import Thinker
from tests.job_samples import SPEC
from tests.samples import decision_log, envelope

TENANT_TABLES = (*tables.OWNED, *tables.BIG)


@pytest.fixture
def two(harness: Harness) -> Harness:
    """Both tenants hold the same names: same agent, same session, same step ids."""
    harness.create_tenant(OTHER_TENANT)
    user = {"name": "ada", "display_name": "Ada", "role": "admin", "created_ns": 1}
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        row = user | {"tenant_id": tenant_id, "user_id": f"usr_{tenant_id}"}
        harness.submit(access.create_user(harness.admin(tenant_id), row, harness.now()), tenant_id=tenant_id)
    return harness


def reads(harness: Harness, tenant_id: str, names: list[str]) -> list[Any]:
    """Whatever any read method says to this tenant about ids of the other."""
    store = harness.store
    asked: list[Coroutine[Any, Any, Any]] = [store.message(tenant_id, name) for name in names]
    for name in names:
        asked.append(store.events(tenant_id, EventFilter(entity_id=name), 10, True))
        asked.append(store.events(tenant_id, EventFilter(trace_id=trace_id_of_session(name)), 10, True))
        asked.append(store.messages(tenant_id, MessageFilter(session_id=name), 10, True))
        asked.append(store.messages(tenant_id, MessageFilter(agent=name), 10, True))
        asked.append(store.rows(tenant_id, "sessions", session_id=name))
        asked.append(store.rows(tenant_id, "agents", agent_id=name))
        asked.append(store.rows(tenant_id, "users", user_id=name))
    return [harness.read(question) for question in asked]


def test_ids_of_another_tenant_are_invisible_through_every_read(two: Harness) -> None:
    body = decision_log(
        meta={"step_id": str(uuid.uuid4()), "session_id": "secret-session"},
        identity={"agent_id": "secret-agent"},
    )
    sent = envelope("text")
    first, second = two.send(body, sent, tenant_id=OTHER_TENANT)
    (agent,) = two.read(two.store.rows(OTHER_TENANT, "agents", agent_id="secret-agent"))
    names = [
        body["meta"]["step_id"],
        "secret-session",
        "secret-agent",
        agent["entity_id"],
        first.answer.message_id,
        sent["message_id"],
        second.answer.message_id,
        sent["sender"]["entity_id"],
        sent["recipient"]["entity_id"],
        f"usr_{OTHER_TENANT}",
    ]
    assert [answer for answer in reads(two, HOME_TENANT, names) if answer] == []
    assert any(reads(two, OTHER_TENANT, names)), "the owner does see them"
    assert two.read(two.store.head(HOME_TENANT))[0] == len(two.trail_of(HOME_TENANT)) == 2
    for table in set(tables.OWNED):
        seen = {row["tenant_id"] for row in two.read(two.store.rows(HOME_TENANT, table))}
        assert seen <= {HOME_TENANT}, table


LATER = 4_000_000_000_000_000_000  # beyond every deadline


class Scene:
    """A tenant with a bit of everything: told, read, paused, gated, stopped, parked. Names hold `word`."""

    def __init__(self, harness: Harness, tenant_id: str, word: str) -> None:
        self.harness, self.tenant_id, self.word = harness, tenant_id, word
        self.room, self.reader = f"room-{word}", f"reader-{word}"
        rule = PolicyRule(
            rule_id=f"pol_{word}",
            position=1,
            effect="hold",
            match=Match(sender=(f"gated-{word}",)),
            deadline_s=1,
        )
        self.do(rulemaking.create_rule(self.who, rule, True, harness.now()))
        self.do(enrolment.record_heartbeat(self.who, self.reader, None, {"status": word}, harness.now()))
        self.say("writer"), self.say("reader")
        self.parcel = self.say("writer", recipient=self.reader)
        self.read_by_reader("message")
        self.say("writer", recipient=self.reader)
        self.say("writer", recipient=f"type:none-{word}")
        entity_id = agent_entity_id(tenant_id, self.reader)
        self.do(instructions.issue(self.who, f"reader-{word}", word, "", [entity_id], harness.now()))
        self.do(interventions.pause(self.who, self.room, self.reader, word, harness.now()))
        self.read_by_reader("hold")
        self.say("gated"), self.say("reader")
        switch: dict[str, Any] = {"scope": "class", "target": f"stopped-{word}", "state": "engaged"}
        switch |= {"tenant_id": tenant_id, "kill_id": f"kil_{word}", "reason": word, "requested_by": word}
        switch |= {"created_ns": 1, "expires_ns": 1, "engaged_ns": 1, "updated_ns": 1}
        self.do(Command(self.who, harness.now(), writing(RowWrite("kill_switches", switch))))
        self.say("stopped", session_id=f"hall-{word}")
        thinker = Thinker(harness, f"usr_{word}", tenant_id=tenant_id)
        self.task, self.thinks_as = f"tsk_{word}", thinker.voice.name
        assert thinker.start(f"ses_{word}", self.task).code == 201
        assert thinker.close(f"ses_{word}", self.task).code == 200
        self.record = thinker.records(f"ses_{word}")[0]["record_id"]
        self.schedule()
        self.reach_out()

    def reach_out(self) -> None:
        """A delivery that waits, two calls of a hook, one of them without message, and a rule that fires."""
        word, mine = self.word, {"tenant_id": self.tenant_id}
        delivery: dict[str, Any] = {"delivery_id": f"dlv_{word}", "endpoint_id": f"whe_{word}"}
        delivery |= {"event_type": word, "state": "waiting", "attempts": 0, "tries": 0, "next_ns": 1}
        delivery |= {"event_seq": 1, "round_ns": 1, "created_ns": 1}
        call: dict[str, Any] = {"hook_id": f"whk_{word}", "at_ns": 1, "signature": "valid"}
        call |= {"calls": 1, "repeats": 0, "body_cut": 0}
        taken = call | {"call_id": f"whc_1{word}", "outcome": "taken", "body": None}
        bare = call | {"call_id": f"whc_2{word}", "outcome": "ignored", "body": word.encode()}
        state: dict[str, Any] = {"state_key": word, "rule_id": word, "subject": word, "value": word}
        state |= {"state": "firing", "link": word, "times": 1, "is_told": 1, "fired_ns": 1, "told_ns": 1}
        state |= {"raised_seq": 1, "cleared_seq": 0, "updated_ns": 1}
        rows: dict[str, list[dict[str, Any]]] = {
            "webhook_deliveries": [delivery],
            "hook_calls": [taken, bare],
            "alert_states": [state],
        }
        writes = [RowWrite(table, row | mine) for table, some in rows.items() for row in some]
        self.do(Command(self.who, self.harness.now(), writing(*writes)))

    def schedule(self) -> None:
        """A job that has fired and waits to be sent, and a letter that died."""
        word, harness = self.word, self.harness
        spec = msgspec.structs.replace(SPEC, name=word, target_name=f"nobody-{word}")
        self.do(jobs.create(self.who, spec, harness.now()))
        self.job = harness.read(harness.store.jobs_page(self.tenant_id, None, 1, None, None))[0]["job_id"]
        self.do(firing.run_now(self.who, self.job, harness.now()))

        def die(uow: UnitOfWork) -> SubmissionResult:
            event, letter = dead_letters.create_dead_letter(
                uow,
                kind="job",
                source_id=word,
                source_name=word,
                subject_id=word,
                reason=word,
                preview=word,
                now_ns=1,
            )
            return SubmissionResult(200, None, [event], [letter])

        self.do(Command(self.who, harness.now(), die))

    @property
    def who(self) -> Principal:
        return self.harness.admin(self.tenant_id)

    def do(self, act: Command) -> None:
        (verdict,) = self.harness.submit(act, tenant_id=self.tenant_id)
        assert verdict.code < 300, verdict

    def say(self, role: str, session_id: str | None = None, recipient: str | None = None) -> int:
        name, self.step = f"{role}-{self.word}", str(uuid.uuid4())
        body = decision_log(
            meta={"step_id": self.step, "session_id": session_id or self.room, "parent_step_id": None},
            identity={"agent_id": name, "agent_type": name, "recipient": recipient},
        )
        (verdict,) = self.harness.send(body, tenant_id=self.tenant_id)
        assert verdict.code == 202, verdict
        number: int = verdict.answer.sequence_number
        return number

    def read_by_reader(self, kind: str) -> None:
        """It acknowledges what waits for it of this kind."""
        where = PendingFilter(agent_no=self.number(), kind=kind)
        found = self.harness.read(self.harness.store.pending(self.tenant_id, where, 10))
        facts = {(one.sequence_number, one.agent_no): one for one in found}
        entity_id, ids = agent_entity_id(self.tenant_id, self.reader), list(map(delivery_id, facts))
        assert ids
        self.do(inbox.ack(self.who, entity_id, ids, facts, self.harness.now()))

    def number(self) -> int:
        (row,) = self.harness.read(self.harness.store.rows(self.tenant_id, "agents", agent_id=self.reader))
        found: int = row["agent_no"]
        return found


def questions(store: Store, tenant_id: str, scene: Scene) -> dict[str, Coroutine[Any, Any, Any]]:
    """Each read of the store that takes a tenant, asked by one about what another's scene is known by."""
    number, parcel = scene.number(), scene.parcel
    return {
        "events": store.events(tenant_id, EventFilter(), 100, True),
        "messages": store.messages(tenant_id, MessageFilter(), 100, True),
        "message": store.message(tenant_id, scene.step),
        "rows": store.rows(tenant_id, "deliveries"),
        "sessions_page": store.sessions_page(tenant_id, None, 100),
        "holds_page": store.holds_page(tenant_id, None, 100, False),
        "gates_due": store.gates_due(tenant_id, LATER, 100),
        "pauses_acknowledged": store.pauses_acknowledged(tenant_id, 100),
        "arrivals": store.arrivals(tenant_id, (0, 0), 100),
        "pending": store.pending(tenant_id, PendingFilter(agent_no=number), 100),
        "deliveries": store.deliveries(tenant_id, [(parcel, number)], True),
        "paused_sessions": store.paused_sessions(tenant_id, number),
        "instructed": store.instructed(tenant_id, number),
        "stops": store.stops(tenant_id),
        "reach": store.reach(tenant_id, agent_type=scene.reader),
        "acknowledgements": store.acknowledgements(tenant_id, parcel, 10, agent_type=scene.reader),
        "spelt": spellings(store, tenant_id, scene.reader),
        "waiting": store.waiting(tenant_id),
        "silent": store.silent(tenant_id, LATER, 100),
        "rooms": store.rooms(tenant_id, number),
        "backlog": store.backlog(tenant_id),
        "stranded": store.stranded(tenant_id, 0, f"type:none-{scene.word}", 100),
        "edges": store.edges(tenant_id, 0, 0),
        "latencies": store.latencies(tenant_id, 0, 100),
        **thoughts(store, tenant_id, scene),
        **scheduled(store, tenant_id, scene),
        **outside(store, tenant_id, scene),
    }


async def spellings(store: Store, tenant_id: str, agent_type: str) -> list[str]:
    return (await store.spelt(tenant_id, agent_type=agent_type))["agent_type"]


def outside(store: Store, tenant_id: str, scene: Scene) -> dict[str, Coroutine[Any, Any, Any]]:
    assert isinstance(store, WebhookRows) and isinstance(store, HookRows) and isinstance(store, AlertingRows)
    endpoint_id = f"whe_{scene.word}"
    return {
        "deliveries_waiting": store.deliveries_waiting(tenant_id),
        "deliveries_first": store.deliveries_first(tenant_id, endpoint_id, 100),
        "deliveries_old": store.deliveries_old(tenant_id, endpoint_id, LATER, 100),
        "deliveries_log": store.deliveries_log(tenant_id, None, 100),
        "deliveries_page": store.deliveries_page(tenant_id, endpoint_id, None, 100),
        "calls_page": store.calls_page(tenant_id, None, 100),
        "calls_taken": store.calls_taken(tenant_id, LATER, 100),
        "call_bodies": store.call_bodies(tenant_id, LATER, 100),
        "alert_standings": store.alert_standings(tenant_id, 0, 100),
        "alerts_open": store.alerts_open(tenant_id, None, 100),
        "quiet_agents": store.quiet_agents(tenant_id, LATER, 0, 100),
        "queues": store.queues(tenant_id),
        "unanswered": store.unanswered(tenant_id),
        "letters_waiting": store.letters_waiting(tenant_id),
    }


def scheduled(store: Store, tenant_id: str, scene: Scene) -> dict[str, Coroutine[Any, Any, Any]]:
    assert isinstance(store, JobRows)
    return {
        "earliest": store.earliest(tenant_id),
        "jobs_due": store.jobs_due(tenant_id, LATER, 100),
        "runs_due": store.runs_due(tenant_id, LATER, 100),
        "jobs_page": store.jobs_page(tenant_id, None, 100, None, None),
        "runs_page": store.runs_page(tenant_id, scene.job, None, 100),
        "jobs_firing": store.jobs_firing(tenant_id, LATER, 100),
        "jobs_made": store.jobs_made(tenant_id),
        "jobs_ahead": store.jobs_ahead(tenant_id, 0, 100),
        "runs_ahead": store.runs_ahead(tenant_id, 0, 100),
        "acknowledged": store.acknowledged(tenant_id, [scene.parcel]),
        "letters_page": store.letters_page(tenant_id, None, 100, None, None),
        "letters_dead": store.letters_dead(tenant_id, 100),
        "runs_counted": store.runs_counted(tenant_id, [scene.job], 0, LATER, LATER),
        "runs_recent": store.runs_recent(tenant_id, [scene.job], 10),
    }


def thoughts(store: Store, tenant_id: str, scene: Scene) -> dict[str, Coroutine[Any, Any, Any]]:
    assert isinstance(store, Thoughts)
    session_id = f"ses_{scene.word}"
    return {
        "thoughts": store.thoughts(tenant_id, session_id, 0, 100),
        "thought_session": store.thought_session(tenant_id, session_id),
        "thoughts_left": store.thoughts_left(tenant_id, 0, 100),
        "thought_sessions_page": store.thought_sessions_page(tenant_id, None, 100),
        "events_of_session": store.events_of_session(tenant_id, session_id),
        "sealed_before": store.sealed_before(tenant_id, session_id),
        "sealed_among": store.sealed_among(tenant_id, [session_id]),
        "records_known": store.records_known(tenant_id, [scene.record]),
        "task_home": store.task_home(tenant_id, scene.task, scene.thinks_as),
        "merkle_nodes": store.merkle_nodes(tenant_id, session_id, [(0, 0)]),
    }


def answers(harness: Harness, tenant_id: str, scene: Scene) -> dict[str, Any]:
    asked = questions(harness.store, tenant_id, scene)
    return {name: harness.read(question) for name, question in asked.items()}


NOTHING: tuple[Any, ...] = ([], {}, set(), None, 0, KillSwitchCoverage(), KillSwitchCounts(0, 0, 0), (0, []))
NOTHING += (PendingApprovals(0, None, 0, None), KillSwitchAcknowledgements(0, 0, 0, 0, []))


def test_every_read_of_the_store_keeps_to_its_tenant_where_numbers_are_the_same(harness: Harness) -> None:
    """Asked by an empty tenant about another's numbers: nothing. Then both have the same: each its own."""
    harness.create_tenant(OTHER_TENANT)
    theirs = Scene(harness, OTHER_TENANT, "secret")
    before = answers(harness, OTHER_TENANT, theirs)
    assert [name for name, answer in before.items() if answer in NOTHING] == []
    mine = answers(harness, HOME_TENANT, theirs)
    assert [event.sequence_number for event in mine.pop("events")] == [1], "the tenant itself was made"
    assert [name for name, answer in mine.items() if answer not in NOTHING] == []
    ours = Scene(harness, HOME_TENANT, "plain")
    assert ours.number() == theirs.number() and ours.parcel == theirs.parcel
    assert answers(harness, OTHER_TENANT, theirs) == before
    for name, answer in answers(harness, HOME_TENANT, ours).items():
        assert "secret" not in repr(answer) and OTHER_TENANT not in repr(answer), name
        assert isinstance(answer, list) is isinstance(before[name], list), name
        assert not isinstance(answer, list) or len(answer) == len(before[name]), name


def test_every_read_of_the_store_that_takes_a_tenant_is_among_them_s792(harness: Harness) -> None:
    """S792: a new one without a line in the table is red."""
    harness.create_tenant(OTHER_TENANT)
    asked = questions(harness.store, HOME_TENANT, Scene(harness, OTHER_TENANT, "secret"))
    for question in asked.values():
        question.close()
    protocols: tuple[type, ...] = (
        Archive,
        Directory,
        Holds,
        Inbox,
        KillSwitchReach,
        AgentTraffic,
        Thoughts,
        JobRows,
    )
    protocols += (WebhookRows, HookRows, AlertingRows)
    reads = {
        name
        for protocol in protocols
        for name, method in vars(protocol).items()
        if inspect.isfunction(method) and "tenant_id" in inspect.signature(method).parameters
    }
    assert reads - {"head"} == set(asked)


def test_the_same_names_in_two_tenants_are_two_things(two: Harness) -> None:
    body = decision_log(meta={"step_id": str(uuid.uuid4()), "session_id": "same"})
    (mine,) = two.send(body)
    (theirs,) = two.send({**body, "action": {**body["action"], "status": "failure"}}, tenant_id=OTHER_TENANT)
    assert (mine.code, theirs.code) == (202, 202), "no conflict across tenants"
    here, there = (
        two.read(two.store.message(t, body["meta"]["step_id"])) for t in (HOME_TENANT, OTHER_TENANT)
    )
    assert here is not None and there is not None and here.raw != there.raw
    for tenant_id in (HOME_TENANT, OTHER_TENANT):
        assert len(two.read(two.store.messages(tenant_id, MessageFilter(session_id="same"), 10, True))) == 1
        assert (
            len(two.read(two.store.messages(tenant_id, MessageFilter(agent="researcher-alpha-9"), 10, True)))
            == 1
        )

"""Ruling 26 as pure acts over a memory made by hand: tokens, states, scopes, and who is told."""

import json
from typing import Any

import pytest

from observatory.features.kill_switch import commands as kill_switch
from observatory.ledger.chain import ChainHead
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.pipeline import PipelineBatch
from observatory.pipeline.rows import AgentRow, TenantRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    IncomingMessage,
    Principal,
    ReadSet,
    Submission,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
)
from observatory.protocol.credentials import digest
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import KillScope
from observatory.stages import WRITE_PATH
from tests.samples import decision_log, envelope

TENANT = "tnt_default"
NOW = 1_800_000_000_000_000_000
SECOND = 1_000_000_000
ADMIN = Principal(tenant_id=TENANT, role="admin", key_id="sys_test", user_id="usr_1")
SERVICE = ServiceInfo("observatory", "0", "test")
FLEET = (("a1", "writer", "north"), ("a2", "writer", "south"), ("a3", "reader", "north"))
ONE, TWO, NEXT = digest("one"), digest("two"), digest("next")


class Scene:
    """A tenant of three agents, its clock in hand."""

    def __init__(self) -> None:
        agents = {
            f"agt_{name}": AgentRow(
                agent_no=number, entity_id=f"agt_{name}", agent_id=name, agent_type=kind, cluster_id=cluster
            )
            for number, (name, kind, cluster) in enumerate(FLEET, 1)
        }
        tenant = TenantRow(tenant_id=TENANT, tenant_no=1, agents=3)
        self.memory = BatchState(tenant, ChainHead.genesis(), TenantConfig(), agents=agents)
        self.changes = TransactionChanges()
        self.now = NOW

    def act(self, act: Command) -> SubmissionResult:
        event_writer = EventWriter(SERVICE, self.memory, self.changes, self.now)
        verdict = act.decide(event_writer)
        for event in verdict.events:
            event_writer.append(event)
        return verdict

    def arm(self, scope: KillScope = "global", target: str = "", kill_id: str = "kil_1") -> SubmissionResult:
        return self.act(kill_switch.arm(ADMIN, kill_id, scope, target, "drill", ONE, self.now))

    def confirm(self, token: bytes, following: bytes = TWO, kill_id: str = "kil_1") -> SubmissionResult:
        return self.act(kill_switch.confirm(ADMIN, kill_id, token, following, (), self.now))

    def engage(self, scope: KillScope = "global", target: str = "", kill_id: str = "kil_1") -> None:
        assert self.arm(scope, target, kill_id).code == 202
        assert self.confirm(ONE, kill_id=kill_id).code == 202
        assert self.confirm(TWO, kill_id=kill_id).answer["state"] == "engaged"

    def release(self, kill_id: str = "kil_1") -> SubmissionResult:
        return self.act(kill_switch.release(ADMIN, kill_id, "drill over", 7, (), self.now))

    @property
    def states(self) -> dict[str, str]:
        return {one.kill_id: one.state for one in self.memory.tenant_config.kill_switches}

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(row.record) for row in self.changes.audit]

    @property
    def received(self) -> list[tuple[int, str]]:
        return [(row.agent_no, row.kind) for row in self.changes.deliveries]


def test_two_confirmations_in_order_engage_and_nothing_less_s160() -> None:
    """S160: until the second one the rulebook knows of nothing."""
    scene = Scene()
    assert (scene.arm().code, scene.states) == (202, {})
    first = scene.confirm(ONE)
    assert (first.code, first.answer["state"], scene.states) == (202, "confirmed", {})
    version = scene.memory.tenant.rulebook_version
    second = scene.confirm(TWO)
    assert (second.code, second.answer["state"]) == (200, "engaged")
    assert scene.states == {"kil_1": "engaged"}
    assert scene.memory.tenant.rulebook_version == version + 1
    received = [
        (event["body"]["event_type"], event["body"]["stage"], event["severity_text"])
        for event in scene.events
    ]
    assert received == [
        ("kill_switch_requested", "armed", "WARN"),
        ("kill_switch_requested", "confirmed", "WARN"),
        ("kill_switch_engaged", "engaged", "FATAL"),
    ]


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize("token", [NEXT, b"", digest("")])
def test_a_wrong_token_confirms_nothing_and_is_told_of_s161(token: bytes, confirmed: bool) -> None:
    """S161: and it spoils nothing: the right one still works."""
    scene = Scene()
    scene.arm()
    if confirmed:
        scene.confirm(ONE)
    verdict = scene.confirm(token)
    assert (verdict.code, verdict.answer.reason) == (403, "wrong_token")
    assert scene.events[-1]["body"]["event_type"] == "permission_denied"
    assert scene.confirm(TWO if confirmed else ONE).code in (200, 202)


def test_a_token_works_once_s161() -> None:
    """S161: the first token is no second one, and after engaging none is."""
    scene = Scene()
    scene.arm()
    scene.confirm(ONE)
    assert scene.confirm(ONE).code == 403
    assert scene.confirm(TWO).code == 200
    assert (scene.confirm(TWO).code, scene.confirm(ONE).code) == (409, 409)
    assert len(scene.states) == 1


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_token_lives_two_minutes_s161(confirmed: bool) -> None:
    """S161: then the switch is lapsed, whatever is presented."""
    scene = Scene()
    scene.arm()
    if confirmed:
        scene.now += 119 * SECOND
        scene.confirm(ONE)
    row = scene.memory.rows["kill_switches"]["kil_1"]
    scene.now += 120 * SECOND - 1
    assert kill_switch.state_of(row, scene.now) == ("confirmed" if confirmed else "armed")
    scene.now += 1
    assert kill_switch.state_of(row, scene.now) == "lapsed"
    verdict = scene.confirm(TWO if confirmed else ONE)
    assert (verdict.code, verdict.answer.reason, scene.states) == (409, "lapsed", {})
    assert scene.release().answer.reason == "not_engaged"


def test_an_unknown_switch_is_not_found() -> None:
    scene = Scene()
    assert (scene.confirm(ONE).code, scene.release().code) == (404, 404)


SCOPES: list[tuple[KillScope, str, list[int]]] = [
    ("global", "", [1, 2, 3]),
    ("cluster", "north", [1, 3]),
    ("class", "writer", [1, 2]),
    ("class", "nobody", []),
]


@pytest.mark.parametrize(("scope", "target", "numbers"), SCOPES)
def test_every_agent_in_scope_is_told_to_stop_and_to_start_s165(
    scope: KillScope, target: str, numbers: list[int]
) -> None:
    """S165, S164."""
    scene = Scene()
    scene.engage(scope, target)
    assert scene.received == [(number, "stop") for number in numbers]
    body = json.loads(scene.changes.deliveries[0].body or "") if numbers else None
    if body is not None:
        assert body == {"kill_id": "kil_1", "scope": scope, "target": target, "reason": "drill"}
    scene.changes.deliveries.clear()
    assert (scene.release().code, scene.states) == (202, {"kil_1": "releasing"})
    assert scene.received == [(number, "start") for number in numbers]


def test_who_is_stopped_by_another_switch_is_not_told_to_start_s165() -> None:
    """S165, S164: several may be engaged at once."""
    scene = Scene()
    scene.engage("cluster", "north")
    scene.engage("class", "writer", "kil_2")
    assert scene.states == {"kil_1": "engaged", "kil_2": "engaged"}
    scene.changes.deliveries.clear()
    scene.release("kil_1")
    assert scene.received == [(3, "start")]
    assert scene.states == {"kil_1": "releasing", "kil_2": "engaged"}


def test_a_release_is_told_of_stage_by_stage_s166() -> None:
    """S166: and only once each: a stage of what is released already is refused."""
    scene = Scene()
    scene.engage()
    assert scene.act(kill_switch.finish(ADMIN, "kil_1", 0, NOW)).code == 409
    scene.release()
    assert scene.release().code == 409
    assert scene.act(kill_switch.record_stage(ADMIN, "kil_1", 5, 2, NOW)).code == 200
    assert scene.act(kill_switch.finish(ADMIN, "kil_1", 0, NOW)).code == 200
    assert scene.act(kill_switch.record_stage(ADMIN, "kil_1", 1, 0, NOW)).code == 409
    assert scene.states == {}
    bodies = [
        event["body"] for event in scene.events if event["body"]["event_type"] == "kill_switch_released"
    ]
    assert [
        (body["stage"], body.get("held"), body.get("released"), body.get("remaining")) for body in bodies
    ] == [
        ("releasing", 7, None, None),
        ("stage", None, 5, 2),
        ("released", None, None, None),
    ]
    assert scene.confirm(TWO).answer.reason == "conflict"


def test_no_token_and_no_hash_of_one_is_in_the_record_s160() -> None:
    """S160: only the row holds the hash, and after engaging not even that."""
    scene = Scene()
    scene.engage()
    record = b"".join(row.record for row in scene.changes.audit)
    for secret in (ONE, TWO):
        assert secret.hex().encode() not in record and secret not in record
    assert scene.memory.rows["kill_switches"]["kil_1"]["token_hash"] is None


class Held:
    """A transaction over one memory in hand."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def load(self, tenant_id: str, read_set: ReadSet, known: BatchState | None) -> BatchState:
        return self.scene.memory

    def read_more(self, memory: BatchState, read_set: ReadSet) -> None:
        return None

    def save(self, memory: BatchState, changes: TransactionChanges) -> None:
        return None


def arrival(body: dict[str, Any]) -> IncomingMessage:
    message = intercept(json.dumps(body).encode())
    assert isinstance(message, Message)
    return IncomingMessage(message, ADMIN, NOW, 100)


def states(scene: Scene, *items: Submission) -> list[str]:
    verdicts, _ = PipelineBatch(WRITE_PATH, SERVICE, TENANT, items, NOW).run(Held(scene), None)
    return [
        verdict.answer.state if hasattr(verdict.answer, "state") else verdict.answer["state"]
        for verdict in verdicts
    ]


def log(agent: str, kind: str, cluster: str, session: str = "s") -> IncomingMessage:
    identity = {"agent_id": f"agt_{agent}", "agent_type": kind}
    body = decision_log(meta={"cluster_id": cluster, "session_id": session}, identity=identity)
    body["meta"]["parent_step_id"] = None
    return arrival(body)


def test_the_very_next_message_of_the_same_batch_is_held_s162() -> None:
    """S162: engaged and released within one batch, with messages in between."""
    scene = Scene()
    scene.arm()
    scene.confirm(ONE)
    before, after = log("a1", "writer", "north", "one"), log("a1", "writer", "north", "two")
    freed = log("a2", "writer", "south", "three")
    engage = kill_switch.confirm(ADMIN, "kil_1", TWO, NEXT, (), NOW)
    release = kill_switch.release(ADMIN, "kil_1", "over", 1, (), NOW)
    assert states(scene, before, engage, after, release, freed) == [
        *("forwarded", "engaged", "held", "releasing", "forwarded"),
    ]


@pytest.mark.parametrize(
    ("scope", "target", "held"),
    [
        ("global", "", ["held", "held", "held"]),
        ("cluster", "north", ["held", "forwarded", "held"]),
        ("class", "writer", ["held", "held", "forwarded"]),
    ],
)
def test_only_what_is_in_scope_is_held_s164(scope: KillScope, target: str, held: list[str]) -> None:
    """S164: by the cluster and type the agent is known by."""
    scene = Scene()
    scene.engage(scope, target)
    sent = [log(name, kind, cluster, name) for name, kind, cluster in FLEET]
    assert states(scene, *sent) == held


def test_an_agent_cannot_leave_the_scope_by_calling_itself_something_else_s164() -> None:
    """S164: what a held message says of its sender does not count for the next one either."""
    scene = Scene()
    scene.engage("class", "writer")
    sent = [log("a1", "reader", "north", session) for session in ("one", "two", "three")]
    assert states(scene, *sent) == ["held"] * 3


def test_an_agent_met_first_while_its_class_is_stopped_is_held_s164() -> None:
    """S164: its own words are all there is to know of it."""
    scene = Scene()
    scene.engage("class", "writer")
    assert states(scene, log("new", "writer", "west"), log("other", "reader", "west")) == [
        "held",
        "forwarded",
    ]


@pytest.mark.parametrize("kind", ["heartbeat", "decision_request", "system_event", "decision_response"])
def test_essential_traffic_passes_s163(kind: str) -> None:
    """S163."""
    scene = Scene()
    scene.engage()
    sender = {"entity_id": "agt_a1", "entity_type": "agent", "hub_address": None}
    scene.memory.rows["decisions"] = {}
    verdicts, _ = PipelineBatch(
        WRITE_PATH, SERVICE, TENANT, [arrival(envelope(kind, sender=sender))], NOW
    ).run(Held(scene), None)
    assert getattr(verdicts[0].answer, "state", None) != "held"
    text = arrival(envelope("text", sender=sender))
    assert states(scene, text) == ["held"]

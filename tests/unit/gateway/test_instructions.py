"""Instructions as pure acts: versions only grow, all of the class are told, the record holds no text."""

import hashlib
import json
from typing import Any

from observatory.features.instructions import commands as instructions
from observatory.ledger.chain import ChainHead
from observatory.pipeline.event_writer import EventWriter
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.rows import AgentRow, TenantRow
from observatory.pipeline.state import (
    BatchState,
    Command,
    Principal,
    SubmissionResult,
    TenantConfig,
    TransactionChanges,
)

TENANT = "tnt_default"
NOW = 1_800_000_000_000_000_000
ADMIN = Principal(tenant_id=TENANT, role="admin", key_id="sys_test", user_id="usr_1")


class Scene:
    """Two writers, an evicted one, and a reader that can write too."""

    def __init__(self) -> None:
        agents = [
            AgentRow(agent_no=1, entity_id="agt_1", agent_id="a1", agent_type="writer"),
            AgentRow(agent_no=2, entity_id="agt_2", agent_id="a2", agent_type="writer", cluster_id="far"),
            AgentRow(agent_no=3, entity_id="agt_3", agent_id="a3", agent_type="writer", evicted_ns=1),
            AgentRow(
                agent_no=4, entity_id="agt_4", agent_id="a4", agent_type="reader", capabilities='["writer"]'
            ),
        ]
        fleet = {agent.entity_id: agent for agent in agents}
        self.memory = BatchState(
            TenantRow(tenant_id=TENANT, tenant_no=1), ChainHead.genesis(), TenantConfig(), agents=fleet
        )
        self.changes = TransactionChanges()

    def act(self, act: Command) -> SubmissionResult:
        return act.decide(
            EventWriter(ServiceInfo("observatory", "0", "test"), self.memory, self.changes, NOW)
        )

    def issue(self, text: str, agent_type: str = "writer") -> SubmissionResult:
        return self.act(instructions.issue(ADMIN, agent_type, text, "why", (), NOW))

    def roll_back(self, version: int) -> SubmissionResult:
        return self.act(instructions.roll_back(ADMIN, "writer", version, (), NOW))

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(row.record)["body"] for row in self.changes.audit]


def test_each_issue_is_a_new_version_and_a_roll_back_too_s168() -> None:
    """S168: within one batch as well; what is in force cannot be rolled back to."""
    scene = Scene()
    assert [scene.issue(text).answer["version"] for text in ("be kind", "be terse")] == [1, 2]
    verdict = scene.roll_back(1)
    assert (verdict.code, verdict.answer["version"], verdict.answer["text"]) == (201, 3, "be kind")
    assert (scene.roll_back(3).code, scene.roll_back(9).code) == (409, 404)
    assert scene.memory.tenant_config.instructions == {"writer": 3}
    assert scene.memory.tenant.rulebook_version == 3
    assert [write.values["version"] for write in scene.changes.writes] == [1, 2, 3]
    assert scene.issue("read", "reader").answer["version"] == 1


def test_the_record_holds_the_hash_of_the_text_and_never_the_text_s168() -> None:
    """S168."""
    scene = Scene()
    scene.issue("a very secret prompt")
    scene.issue("other")
    scene.roll_back(1)
    wanted = "sha256:" + hashlib.sha256(b"a very secret prompt").hexdigest()
    assert [body["text_hash"] == wanted for body in scene.bodies] == [True, False, True]
    assert [body["rolled_back_to"] for body in scene.bodies] == [None, None, 1]
    assert {body["event_type"] for body in scene.bodies} == {"instruction_issued"}
    assert not [row for row in scene.changes.audit if b"secret" in row.record]


def test_every_agent_of_the_class_is_told_whatever_its_cluster_s169() -> None:
    """S169: an evicted one is told when it connects; a capability of that name is not the class."""
    scene = Scene()
    assert scene.issue("be kind").answer["told"] == 2
    assert [(row.agent_no, row.kind) for row in scene.changes.deliveries] == [
        (1, "instruction"),
        (2, "instruction"),
    ]
    body = json.loads(scene.changes.deliveries[0].body or "")
    assert body == {"agent_type": "writer", "version": 1, "text": "be kind", "note": "why"}
    assert scene.issue("nobody yet", "painter").answer["told"] == 0


def test_the_act_asks_for_every_agent_of_the_class() -> None:
    act = instructions.roll_back(ADMIN, "writer", 1, ("agt_1", "agt_9"), NOW)
    assert act.read_set.agents == {"agt_1", "agt_9"}
    assert act.read_set.addresses == {"type:writer"}
    assert act.read_set.rows == {"instructions": {"writer"}}

"""Dry run of policy rules: what they would have denied and held in the archive's last minutes.

It changes nothing. The newest messages are read first, at most a bounded number, and the answer says if there
were more. Agents count with the type and cluster they have now; session membership is ignored.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from observatory.features.registry.queries_routing import read_routing_config
from observatory.http.app_state import AppState
from observatory.ledger.chain import ChainHead
from observatory.pipeline import policy
from observatory.pipeline.agents import addresses_of
from observatory.pipeline.interceptor import MessageLimits, intercept
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredMessage
from observatory.pipeline.rows import AgentRow, TenantRow
from observatory.pipeline.state import BatchState
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.tenant_config import Effect, PolicyRule, is_essential

# At most this many messages and bytes, read in pages; and how many are returned.
LOOKED_AT, LOOKED_BYTES, PAGE = 20_000, 64 << 20, 200
AGENTS_SHOWN, EXAMPLES_SHOWN = 100, 20
# Archived messages were accepted when they came in; a limit lowered since must not hide them.
_ANY_SIZE = MessageLimits(message_bytes=1 << 40)


class TriedPolicy(msgspec.Struct, kw_only=True):
    rule_id: str
    effect: Effect
    messages: int


class StoppedAgent(msgspec.Struct, kw_only=True):
    """`sent`: how many of its messages a rule could stop at all."""

    agent_id: str
    sent: int = 0
    denied: int = 0
    held: int = 0


class StoppedMessage(msgspec.Struct, kw_only=True):
    message_id: str
    sequence_number: int
    rule_id: str
    effect: Effect
    agent_id: str
    recipient: str | None
    message_type: str
    tool: str | None


class DryRunAnswer(msgspec.Struct, kw_only=True):
    """`capped`: there were more messages than the bound; these are the newest.

    `stoppable` excludes essential traffic; `agents` is how many agents sent something stoppable.
    """

    minutes: int
    since: str
    looked_at: int
    capped: bool
    unreadable: int
    stoppable: int
    agents: int
    denied: int
    held: int
    by_rule: list[TriedPolicy]
    by_agent: list[StoppedAgent]
    examples: list[StoppedMessage]


async def dry_run(app: AppState, tenant_id: str, rules: list[PolicyRule], minutes: int) -> DryRunAnswer:
    """By these rules alone: the rules in force and the default are ignored."""
    since_ns = app.clock() - minutes * 60_000_000_000
    trial = DryRunCounter(rules, await _registry(app, tenant_id))
    after, before = await _last_before(app, tenant_id, since_ns), None
    while not trial.is_capped:
        where = MessageFilter(after=after, before=before)
        found = await app.store.messages(tenant_id, where, PAGE, newest_first=True)
        trial.look(found)
        if len(found) < PAGE:
            break
        before = found[-1].sequence_number
    return trial.result(minutes, from_ns(since_ns))


class DryRunCounter:
    """Counts what the rules would have done."""

    def __init__(self, rules: list[PolicyRule], memory: BatchState) -> None:
        memory.tenant_config = msgspec.structs.replace(memory.tenant_config, policies=tuple(rules))
        self._rules, self._memory = rules, memory
        self._by_rule: Counter[str] = Counter()
        self._by_agent: dict[str, StoppedAgent] = {}  # all agents that sent something stoppable
        self._examples: list[StoppedMessage] = []
        self._looked_at = self._bytes = self._unreadable = 0
        self.is_capped = False

    def look(self, found: list[StoredMessage]) -> None:
        for stored in found:
            if self._looked_at >= LOOKED_AT or self._bytes > LOOKED_BYTES:
                self.is_capped = True
                return
            self._looked_at += 1
            self._bytes += len(stored.raw or b"")
            message = intercept(stored.raw, _ANY_SIZE) if stored.raw is not None else None
            if isinstance(message, Message):
                self._judge(stored, message)
            else:  # shredded by order
                self._unreadable += 1

    def _judge(self, stored: StoredMessage, message: Message) -> None:
        if message.sender_type == "user":  # rules apply to messages of agents only
            return
        memory = self._memory
        agent = None
        if message.sender_type == "agent":
            agent = memory.agents.get(agent_entity_id(memory.tenant.tenant_id, message.sender_id))
        if is_essential(message.message_type, message.recipient_type):
            return
        name = agent.agent_id if agent is not None else message.sender_id
        stopped = self._by_agent.setdefault(name, StoppedAgent(agent_id=name))
        stopped.sent += 1
        rule = policy.rule_under_default(message, agent, memory, None)
        if rule is None:
            return
        self._by_rule[rule.rule_id] += 1
        if rule.effect == "deny":
            stopped.denied += 1
        else:
            stopped.held += 1
        if len(self._examples) < EXAMPLES_SHOWN:
            self._examples.append(
                StoppedMessage(
                    message_id=stored.message_id,
                    sequence_number=stored.sequence_number,
                    rule_id=rule.rule_id,
                    effect=rule.effect,
                    agent_id=name,
                    recipient=message.recipient,
                    message_type=message.message_type,
                    tool=message.tool,
                )
            )

    def result(self, minutes: int, since: str) -> DryRunAnswer:
        speakers = self._by_agent.values()
        stopped = [one for one in speakers if one.denied or one.held]
        agents = sorted(stopped, key=lambda one: -(one.denied + one.held))
        return DryRunAnswer(
            minutes=minutes,
            since=since,
            looked_at=self._looked_at,
            capped=self.is_capped,
            unreadable=self._unreadable,
            stoppable=sum(one.sent for one in speakers),
            agents=len(speakers),
            denied=sum(one.denied for one in agents),
            held=sum(one.held for one in agents),
            by_rule=[
                TriedPolicy(rule_id=rule.rule_id, effect=rule.effect, messages=self._by_rule[rule.rule_id])
                for rule in self._rules
            ],
            by_agent=agents[:AGENTS_SHOWN],
            examples=self._examples,
        )


async def _registry(app: AppState, tenant_id: str) -> BatchState:
    """The agents as they are now, with their types and clusters."""
    tenant = TenantRow(tenant_id=tenant_id, tenant_no=0)
    memory = BatchState(tenant, ChainHead.genesis(), await read_routing_config(app, tenant_id))
    for row in await app.store.rows(tenant_id, "agents"):
        agent = memory.agents[row["entity_id"]] = AgentRow(
            agent_no=row["agent_no"],
            entity_id=row["entity_id"],
            agent_id=row["agent_id"],
            agent_type=row["agent_type"],
            cluster_id=row["cluster_id"],
            capabilities=row["capabilities"],
        )
        for address in addresses_of(agent, memory.tenant_config):
            memory.fleet.setdefault(address, []).append(agent.entity_id)
    return memory


async def _last_before(app: AppState, tenant_id: str, since_ns: int) -> int:
    """The last number assigned before that time, by bisection: numbers rise with the gateway's clock.

    Not by an event's own time: a message carries its sender's time, which may be years off.
    """
    low, high = 0, (await app.store.head(tenant_id))[0]
    while low < high:
        middle = (low + high + 1) // 2
        where = EventFilter(after=middle - 1, before=middle + 1)
        (event,) = await app.store.events(tenant_id, where, 1, newest_first=True)
        observed = msgspec.json.decode(event.record)["observed_timestamp"]
        low, high = (middle, high) if to_ns(observed) < since_ns else (low, middle - 1)
    return low

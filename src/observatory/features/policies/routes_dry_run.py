"""A dry run: what rules would have denied and held of the archive's last minutes. It changes nothing.

The newest messages are looked at first; of a very busy time only so many, and the answer says so. Agents
count with the type and cluster they have now; who is in a session now is not asked.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from observatory.features.policies import stage as policy
from observatory.features.registry.routes import routing_book
from observatory.features.registry.stage import addresses_of
from observatory.http.app_state import House
from observatory.ledger.chain import Head
from observatory.pipeline.interceptor import Limits, intercept
from observatory.pipeline.ports import EventFilter, MessageFilter, StoredMessage
from observatory.pipeline.rows import Agent, Tenant
from observatory.pipeline.state import Memory
from observatory.protocol.clock import from_ns, to_ns
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.message import Message
from observatory.protocol.rulebook import Effect, PolicyRule, is_essential

# So many messages and bytes at most, read in pages, and so many are shown.
LOOKED_AT, LOOKED_BYTES, PAGE = 20_000, 64 << 20, 200
AGENTS_SHOWN, EXAMPLES_SHOWN = 100, 20
# The archive was judged when it came in; a limit lowered since does not hide it.
_ANY_SIZE = Limits(message_bytes=1 << 40)


class TriedPolicy(msgspec.Struct, kw_only=True):
    rule_id: str
    effect: Effect
    messages: int


class StoppedAgent(msgspec.Struct, kw_only=True):
    """`sent`: of its messages, how many a rule could stop at all."""

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
    """`capped`: there was more in that time than is looked at; these are the newest.

    `stoppable` leaves out what no rule can stop; `agents` is how many sent something of it.
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


async def dry_run(house: House, tenant_id: str, rules: list[PolicyRule], minutes: int) -> DryRunAnswer:
    """By these rules alone: those in force, and the default, are left aside."""
    since_ns = house.clock() - minutes * 60_000_000_000
    trial = Trial(rules, await _registry(house, tenant_id))
    after, before = await _last_before(house, tenant_id, since_ns), None
    while not trial.is_capped:
        where = MessageFilter(after=after, before=before)
        found = await house.store.messages(tenant_id, where, PAGE, newest_first=True)
        trial.look(found)
        if len(found) < PAGE:
            break
        before = found[-1].sequence_number
    return trial.result(minutes, from_ns(since_ns))


class Trial:
    """Counts what the rules would have done."""

    def __init__(self, rules: list[PolicyRule], memory: Memory) -> None:
        memory.rulebook = msgspec.structs.replace(memory.rulebook, policies=tuple(rules))
        self._rules, self._memory = rules, memory
        self._by_rule: Counter[str] = Counter()
        self._by_agent: dict[str, StoppedAgent] = {}  # all who sent what could be stopped
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
        if message.sender_type == "user":  # rules are for what agents say
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
        rule = policy.tried(message, agent, memory, None)
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


async def _registry(house: House, tenant_id: str) -> Memory:
    """The agents as they are now, for their types and clusters."""
    tenant = Tenant(tenant_id=tenant_id, tenant_no=0)
    memory = Memory(tenant, Head.genesis(), await routing_book(house, tenant_id))
    for row in await house.store.rows(tenant_id, "agents"):
        agent = memory.agents[row["entity_id"]] = Agent(
            agent_no=row["agent_no"],
            entity_id=row["entity_id"],
            agent_id=row["agent_id"],
            agent_type=row["agent_type"],
            cluster_id=row["cluster_id"],
            capabilities=row["capabilities"],
        )
        for address in addresses_of(agent, memory.rulebook):
            memory.fleet.setdefault(address, []).append(agent.entity_id)
    return memory


async def _last_before(house: House, tenant_id: str, since_ns: int) -> int:
    """The last number the gateway gave before that time, by halving: numbers rise with its clock.

    Not by an event's own time: that of a message is its sender's, who may be years off.
    """
    low, high = 0, (await house.store.head(tenant_id))[0]
    while low < high:
        middle = (low + high + 1) // 2
        where = EventFilter(after=middle - 1, before=middle + 1)
        (event,) = await house.store.events(tenant_id, where, 1, newest_first=True)
        observed = msgspec.json.decode(event.record)["observed_timestamp"]
        low, high = (middle, high) if to_ns(observed) < since_ns else (low, middle - 1)
    return low

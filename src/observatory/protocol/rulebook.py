"""What operators rule for a tenant: policies, budgets, routes, kill-switches, instructions, detectors.

Law: plain data, read whole into the tenant's rulebook and applied under its chain-head lock. `deny` wins
over `hold`, `hold` over `allow` (ruling 31). A kill-switch that is `armed` rules nothing yet; `engaged`
and `releasing` hold what is in its scope (ruling 26).
"""

from typing import Annotated, Literal

from msgspec import Meta as Rule
from msgspec import Struct

from observatory.protocol.rules import Name

Effect = Literal["allow", "deny", "hold"]
Expiry = Literal["deny", "approve"]
BudgetScope = Literal["tenant", "cluster", "session", "agent"]
Period = Literal["none", "daily", "monthly"]
KillScope = Literal["global", "cluster", "class", "agent"]
KillState = Literal["armed", "confirmed", "engaged", "releasing", "released", "lapsed"]

# What passes an engaged kill-switch and no policy can deny: heartbeats, people's answers, the house itself.
ESSENTIAL = frozenset({"heartbeat", "decision_request", "decision_response", "system_event"})


def is_essential(message_type: str, recipient_type: str | None) -> bool:
    """A request counts as one to a person only when it is: to another agent it is talk like any other."""
    if message_type == "decision_request":
        return recipient_type in ("user", "system")
    return message_type in ESSENTIAL


Words = Annotated[tuple[Name, ...], Rule(max_length=100)]
# An empty list would match everything, as one that is left out does: who sends it means something else.
MatchWords = Annotated[tuple[Name, ...], Rule(min_length=1, max_length=100)]
# In a rule's `tool`: the message names no tool. A tool that is called so is not meant.
NO_TOOL = "(none)"


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which messages a rule is about; what is left out matches everything, a list matches any of its words.

    `sender` and `recipient` are an agent's id, `type:<agent_type>` or `cluster:<id>`, a recipient also
    `session:<id>`; `cluster` is the sender's. `*` at the end of a word matches any rest; the `tool` `(none)`
    matches a message without a tool. A key that is misspelt is refused: left out, it would match everything.
    """

    sender: MatchWords = ()
    recipient: MatchWords = ()
    message_type: MatchWords = ()
    tool: MatchWords = ()
    cluster: MatchWords = ()


class PolicyRule(Struct, frozen=True, kw_only=True):
    rule_id: str
    position: int
    effect: Effect
    match: Match
    # Of a hold: how many people must approve, until when, and what happens then.
    quorum: Annotated[int, Rule(ge=1, le=10)] = 1
    deadline_s: Annotated[int, Rule(ge=1, le=31_536_000)] | None = None
    on_expiry: Expiry = "deny"
    note: str = ""
    enabled: bool = True  # off it keeps its place and rules nothing


class Budget(Struct, frozen=True, kw_only=True):
    """A cap on spending. `target` names the cluster, session or agent; `*` gives each one its own."""

    budget_id: str
    scope: BudgetScope
    target: str
    soft: float | None
    hard: float | None
    period: Period = "none"


class Route(Struct, frozen=True, kw_only=True):
    """How work for a capability is shared out: target (`cluster:<id>` or an agent's id) → weight."""

    capability: str
    weights: dict[str, float]


class KillSwitch(Struct, frozen=True, kw_only=True):
    kill_id: str
    scope: KillScope
    target: str
    state: KillState
    entity_id: str | None = None  # of the agent its scope is


class RoutingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is asked for work that is addressed to a capability or a cluster (S1145)."""

    capabilities: Annotated[
        Literal["self", "granted"],
        Rule(description="`self`: whoever says it can do it; `granted`: whom an operator gave it to"),
    ] = "self"


class DecisionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far an agent may name what the gateway decides for it at a deadline."""

    auto_risk: Annotated[
        Literal["none", "low", "medium", "high", "critical"],
        Rule(description="The highest risk of an option taken at a deadline; `none`: no option is"),
    ] = "low"
    auto_needs_default: Annotated[
        bool, Rule(description="Whether that option must be the one marked as default")
    ] = True
    min_deadline_s: Annotated[
        int, Rule(ge=1, le=86_400, description="A deadline is at least so far ahead")
    ] = 60


class LoopOverride(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is otherwise for one agent, or for a type of agents; what is left out is as for all."""

    on: bool | None = None
    rounds: Annotated[int, Rule(ge=3, le=20)] | None = None
    cycle_rounds: Annotated[int, Rule(ge=3, le=5)] | None = None
    polling_tools: Words = ()  # besides those of all


class LoopSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The second loop detector (ruling 17), read at run time."""

    on: bool = True
    rounds: Annotated[int, Rule(ge=3, le=20, description="Times one step comes before it is a loop")] = 5
    cycle_rounds: Annotated[int, Rule(ge=3, le=5, description="Whole rounds of a cycle of 2 to 4 steps")] = 4
    likeness_pct: Annotated[int, Rule(ge=20, le=100, description="From here on two texts mean the same")] = 50
    calm_steps: Annotated[int, Rule(ge=1, le=20, description="Steps out of the pattern that end a loop")] = 3
    # Tools that may be called again and again; `*` at the end of a word matches any rest.
    polling_tools: Words = ("sleep", "wait", "wait_*")
    # By agent id, or `type:<agent_type>`.
    agents: dict[Name, LoopOverride] = {}

    def for_agent(self, agent_id: str, agent_type: str | None) -> "LoopSettings":
        """With what is otherwise for this agent put in; its own wins over its type's."""
        if not self.agents:
            return self
        found = self
        for name in (f"type:{agent_type}", agent_id):
            other = self.agents.get(name)
            if other is not None:
                found = LoopSettings(
                    on=found.on if other.on is None else other.on,
                    rounds=other.rounds or found.rounds,
                    cycle_rounds=other.cycle_rounds or found.cycle_rounds,
                    likeness_pct=found.likeness_pct,
                    calm_steps=found.calm_steps,
                    polling_tools=found.polling_tools + other.polling_tools,
                )
        return found


Injection = Literal[
    "instruction_override",
    "forged_turn",
    "prompt_extraction",
    "persona",
    "hidden_text",
    "concealment",
    "exfiltration",
    "encoded",
]


class InjectionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The finder of known prompt injections (ADR-044), read at run time."""

    on: bool = True
    off: Annotated[tuple[Injection, ...], Rule(max_length=8, description="Patterns that are left alone")] = ()


Share = Annotated[float, Rule(ge=0.0, le=1.0)]


class DetectorSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the detectors go by, read with every message (rulings 14 to 17); the defaults are the seed's."""

    window: Annotated[int, Rule(ge=2, le=50, description="Steps of a session the ratio is of")] = 5
    n_min: Annotated[int, Rule(ge=1, le=50, description="Fewer steps are no pattern")] = 3
    loop_below: Annotated[Share, Rule(description="A score below it is LOOP")] = 0.25
    warning_up_to: Annotated[Share, Rule(description="A score from there up to it is WARNING")] = 0.5
    discrepancy_gap: Annotated[Share, Rule(description="Reported and computed may differ by that")] = 0.4
    stuck_s: Annotated[
        int, Rule(ge=1, le=31_536_000, description="Silent or pending for longer is stuck")
    ] = 600
    loops: LoopSettings = LoopSettings()
    injections: InjectionSettings = InjectionSettings()

    def severity(self, score: float, steps: int) -> Literal["normal", "warning", "loop"]:
        if steps < self.n_min or score > self.warning_up_to:
            return "normal"
        return "loop" if score < self.loop_below else "warning"

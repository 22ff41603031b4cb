"""A tenant's configuration by operators: policies, budgets, routes, kill switches, detectors.

Law: plain data, read completely and applied under the tenant's chain-head lock. `deny` wins over `hold`,
`hold` over `allow` (ruling 31). A kill switch that is `armed` stops nothing yet; `engaged` and `releasing`
ones hold what is in their scope (ruling 26).
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

# Types that pass an engaged kill switch and no policy can deny: heartbeats, people's answers, system events.
ESSENTIAL = frozenset({"heartbeat", "decision_request", "decision_response", "system_event"})


def is_essential(message_type: str, recipient_type: str | None) -> bool:
    """A decision request is essential only when sent to a person; to another agent it is an ordinary
    message."""
    if message_type == "decision_request":
        return recipient_type in ("user", "system")
    return message_type in ESSENTIAL


NameList = Annotated[tuple[Name, ...], Rule(max_length=100)]
# An empty list would match everything, like an omitted one; it is refused as a likely mistake.
MatchNames = Annotated[tuple[Name, ...], Rule(min_length=1, max_length=100)]
# In a rule's `tool`: the message names no tool. It does not match a tool of this name.
NO_TOOL = "(none)"


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The messages a rule applies to; an omitted field matches everything, a list matches any of its values.

    `sender` and `recipient` are an agent's id, `type:<agent_type>` or `cluster:<id>`, a recipient also
    `session:<id>`; `cluster` is the sender's. A trailing `*` matches any rest; the `tool` `(none)` matches a
    message without a tool. A misspelt key is refused: ignoring it would match everything.
    """

    sender: MatchNames = ()
    recipient: MatchNames = ()
    message_type: MatchNames = ()
    tool: MatchNames = ()
    cluster: MatchNames = ()


class PolicyRule(Struct, frozen=True, kw_only=True):
    rule_id: str
    position: int
    effect: Effect
    match: Match
    # For `hold`: the number of required approvals, the deadline, and the result when it expires.
    quorum: Annotated[int, Rule(ge=1, le=10)] = 1
    deadline_s: Annotated[int, Rule(ge=1, le=31_536_000)] | None = None
    on_expiry: Expiry = "deny"
    note: str = ""
    enabled: bool = True  # a disabled rule keeps its position and has no effect


class Budget(Struct, frozen=True, kw_only=True):
    """A cap on spending. `target` names the cluster, session or agent; `*` is a separate cap for each."""

    budget_id: str
    scope: BudgetScope
    target: str
    soft: float | None
    hard: float | None
    period: Period = "none"


class Route(Struct, frozen=True, kw_only=True):
    """The traffic split for a capability: target (`cluster:<id>` or an agent's id) → weight."""

    capability: str
    weights: dict[str, float]


class KillSwitch(Struct, frozen=True, kw_only=True):
    kill_id: str
    scope: KillScope
    target: str
    state: KillState
    entity_id: str | None = None  # entity id, if its scope is one agent


class RoutingSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which agents receive work addressed to a capability or a cluster (S1145)."""

    capabilities: Annotated[
        Literal["self", "granted"],
        Rule(
            description="`self`: agents that declare the capability; `granted`: agents an operator granted it"
        ),
    ] = "self"


class DecisionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits on the option an agent may name for the gateway to choose at a deadline."""

    auto_risk: Annotated[
        Literal["none", "low", "medium", "high", "critical"],
        Rule(description="Highest risk of an option chosen at a deadline; `none`: no option is chosen"),
    ] = "low"
    auto_needs_default: Annotated[
        bool, Rule(description="Whether that option must be the one marked as default")
    ] = True
    min_deadline_s: Annotated[
        int, Rule(ge=1, le=86_400, description="Minimum time until a deadline, in seconds")
    ] = 60


class LoopOverride(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Overrides for one agent or a type of agents; omitted fields use the general setting."""

    on: bool | None = None
    rounds: Annotated[int, Rule(ge=3, le=20)] | None = None
    cycle_rounds: Annotated[int, Rule(ge=3, le=5)] | None = None
    polling_tools: NameList = ()  # in addition to the general ones


class LoopSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The second loop detector (ruling 17), read at run time."""

    on: bool = True
    rounds: Annotated[int, Rule(ge=3, le=20, description="Repetitions of one step that make a loop")] = 5
    cycle_rounds: Annotated[
        int, Rule(ge=3, le=5, description="Complete rounds of a cycle of 2 to 4 steps")
    ] = 4
    likeness_pct: Annotated[
        int, Rule(ge=20, le=100, description="Similarity from which two texts count as the same")
    ] = 50
    calm_steps: Annotated[int, Rule(ge=1, le=20, description="Steps outside the pattern that end a loop")] = 3
    # Tools that may be called repeatedly; a trailing `*` matches any rest.
    polling_tools: NameList = ("sleep", "wait", "wait_*")
    # By agent id, or `type:<agent_type>`.
    agents: dict[Name, LoopOverride] = {}

    def for_agent(self, agent_id: str, agent_type: str | None) -> "LoopSettings":
        """The settings with the overrides for this agent; its own win over its type's."""
        if not self.agents:
            return self
        settings = self
        for name in (f"type:{agent_type}", agent_id):
            other = self.agents.get(name)
            if other is not None:
                settings = LoopSettings(
                    on=settings.on if other.on is None else other.on,
                    rounds=other.rounds or settings.rounds,
                    cycle_rounds=other.cycle_rounds or settings.cycle_rounds,
                    likeness_pct=settings.likeness_pct,
                    calm_steps=settings.calm_steps,
                    polling_tools=settings.polling_tools + other.polling_tools,
                )
        return settings


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
    """The detector of known prompt injections (ADR-044), read at run time."""

    on: bool = True
    off: Annotated[
        tuple[Injection, ...], Rule(max_length=8, description="Patterns that are not reported")
    ] = ()


Share = Annotated[float, Rule(ge=0.0, le=1.0)]


class DetectorSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the detectors, read with every message (rulings 14 to 17); the defaults are the seed's."""

    window: Annotated[int, Rule(ge=2, le=50, description="Steps of a session the ratio is computed over")] = 5
    n_min: Annotated[int, Rule(ge=1, le=50, description="Minimum number of steps for a pattern")] = 3
    loop_below: Annotated[Share, Rule(description="A score below it is LOOP")] = 0.25
    warning_up_to: Annotated[Share, Rule(description="A score from there up to it is WARNING")] = 0.5
    discrepancy_gap: Annotated[
        Share, Rule(description="Allowed difference between reported and computed score")
    ] = 0.4
    stuck_s: Annotated[
        int, Rule(ge=1, le=31_536_000, description="Silent or pending for longer counts as stuck")
    ] = 600
    loops: LoopSettings = LoopSettings()
    injections: InjectionSettings = InjectionSettings()

    def severity(self, score: float, steps: int) -> Literal["normal", "warning", "loop"]:
        if steps < self.n_min or score > self.warning_up_to:
            return "normal"
        return "loop" if score < self.loop_below else "warning"

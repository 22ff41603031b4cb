"""What operators rule for a tenant: policies, budgets, routes, kill-switches, instructions.

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
KillScope = Literal["global", "cluster", "class"]
KillState = Literal["armed", "confirmed", "engaged", "releasing", "released", "lapsed"]

# What passes an engaged kill-switch and no policy can deny: heartbeats, people's answers, the house itself.
ESSENTIAL = frozenset({"heartbeat", "decision_request", "decision_response", "system_event"})


def is_essential(message_type: str, recipient_type: str | None) -> bool:
    """A request counts as one to a person only when it is: to another agent it is talk like any other."""
    if message_type == "decision_request":
        return recipient_type in ("user", "system")
    return message_type in ESSENTIAL


Words = Annotated[tuple[Name, ...], Rule(max_length=100)]


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which messages a rule is about; what is left out matches everything, a list matches any of its words.

    `sender` and `recipient` are an agent's id, `type:<agent_type>` or `cluster:<id>`, a recipient also
    `session:<id>`; `cluster` is the sender's. `*` at the end of a word matches any rest. A key that is
    misspelt is refused: left out, it would match everything.
    """

    sender: Words = ()
    recipient: Words = ()
    message_type: Words = ()
    tool: Words = ()
    cluster: Words = ()


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

"""Words of alert rules and scaling triggers: what can be watched, by what measure, and a rule itself.

Law: both are one kind of rule, judged by one evaluator; `purpose` says what comes of it, an alert that is
raised and resolved, or a trigger that suggests more or fewer agents. A condition is looked for in events of
the record, counted in a window, or it is a level that stands now. What cannot be watched so is refused with
one sentence, before it is kept.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple, get_args

import msgspec

Purpose = Literal["alert", "scaling"]
Condition = Literal[
    "entropy",
    "injection",
    "violations",
    "security",
    "budget",
    "burn_rate",
    "silence",
    "silent_agents",
    "queue_depth",
    "breaker",
    "dead_letters",
    "dead_letters_waiting",
    "gate_age",
    "chain",
    "checkpoint_lag",
    "certificate",
]
Scope = Literal["tenant", "cluster", "capability", "agent", "session", "budget", "log", "certificate"]
Compare = Literal["above", "below"]
AlertSeverity = Literal["info", "warning", "error", "critical"]
Direction = Literal["up", "down"]
CONDITIONS: Final[tuple[Condition, ...]] = get_args(Condition)
PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)

LONGEST_S: Final = 86_400
MOST_COUNTED: Final = 10_000  # events of one subject that are counted in a window
LARGEST: Final = 1e12
MOST_ENDPOINTS: Final = 16
MOST_AMOUNT: Final = 1_000


class Kind(NamedTuple):
    """A condition: its measure, whose it can be (the first by default), and where its events come from."""

    text: str
    unit: str
    scopes: tuple[Scope, ...]
    threshold: float
    severity: AlertSeverity
    events: tuple[str, ...] = ()
    window_s: int = 300

    @property
    def is_level(self) -> bool:
        return not self.events


KINDS: Final[dict[Condition, Kind]] = {
    "entropy": Kind(
        "a session goes in circles, by either detector",
        "alarms",
        ("session", "agent", "tenant"),
        1,
        "critical",
        ("entropy_alert", "loop_detected"),
        3_600,
    ),
    "injection": Kind(
        "a text that reaches agents has words of known prompt injections",
        "findings",
        ("session", "agent", "tenant"),
        1,
        "warning",
        ("injection_suspected",),
        3_600,
    ),
    "violations": Kind(
        "messages break the schema", "messages", ("agent", "tenant"), 5, "error", ("schema_violation",)
    ),
    "security": Kind(
        "somebody spoke in another's name, or as what they are not",
        "events",
        ("tenant",),
        1,
        "critical",
        ("security_violation",),
    ),
    "budget": Kind(
        "a soft or a hard cap was reached",
        "messages",
        ("budget", "tenant"),
        1,
        "error",
        ("budget_warning", "budget_exceeded"),
        3_600,
    ),
    "burn_rate": Kind(
        "money spent a minute, averaged over the last five",
        "a minute",
        ("tenant", "cluster", "session", "agent"),
        1,
        "warning",
    ),
    "silence": Kind("an agent missed its heartbeats, for so long", "s", ("agent",), 60, "warning"),
    "silent_agents": Kind(
        "agents that missed a heartbeat or were evicted lately",
        "agents",
        ("capability", "cluster", "tenant"),
        1,
        "warning",
    ),
    "queue_depth": Kind(
        "messages that were sent to somebody and not acknowledged",
        "messages",
        ("capability", "cluster", "tenant"),
        50,
        "warning",
    ),
    "breaker": Kind(
        "the circuit of a capability is not closed (1) or closed (0)", "", ("capability",), 1, "error"
    ),
    "dead_letters": Kind(
        "what could not be delivered or run was given up",
        "letters",
        ("tenant",),
        1,
        "error",
        ("dead_lettered",),
        3_600,
    ),
    "dead_letters_waiting": Kind("dead letters that wait for a person", "letters", ("tenant",), 10, "error"),
    "gate_age": Kind(
        "the oldest gate or decision has waited for an answer so long", "s", ("tenant",), 300, "warning"
    ),
    "chain": Kind(
        "a proof does not hold: a broken chain, a peer's fork, an accepted rollback",
        "events",
        ("log",),
        1,
        "critical",
        ("chain_broken", "peer_fork_detected", "rollback_accepted"),
        LONGEST_S,
    ),
    "checkpoint_lag": Kind(
        "events have waited to be signed so long, or the log is not signed at all",
        "s",
        ("tenant",),
        30,
        "critical",
    ),
    "certificate": Kind(
        "a certificate in use ends soon or could not be replaced (1), or has ended (2)",
        "",
        ("certificate",),
        1,
        "error",
    ),
}
# What suggests more or fewer agents.
SCALABLE: Final[tuple[Condition, ...]] = ("queue_depth", "silent_agents", "breaker", "burn_rate")

# What can be too little as well.
LOW: Final[tuple[Condition, ...]] = ("queue_depth", "burn_rate")


class AlertRule(msgspec.Struct, frozen=True, kw_only=True):
    """As it is judged. `target` narrows it to one of its scope; without one each is a subject of its own."""

    rule_id: str
    purpose: Purpose
    name: str
    condition: Condition
    scope: Scope
    target: str | None
    compare: Compare
    threshold: float
    window_s: int
    for_s: int
    cooldown_s: int
    severity: AlertSeverity
    direction: Direction | None
    amount: int | None
    endpoint_ids: tuple[str, ...]
    enabled: bool
    muted_until_ns: int
    since_seq: int  # events up to this number do not count: they were before the rule, or its last change

    def is_muted(self, now_ns: int) -> bool:
        return self.muted_until_ns > now_ns

    def breaches(self, value: float) -> bool:
        return value >= self.threshold if self.compare == "above" else value <= self.threshold


def problem_of(rule: AlertRule) -> str | None:
    """Why this cannot be watched; None when it can."""
    kind = KINDS[rule.condition]
    if rule.scope not in kind.scopes:
        return f"{rule.condition} is watched for {_either(kind.scopes)}"
    if rule.target is not None and rule.scope == "tenant":
        return "a rule for the whole tenant has no target"
    if not math.isfinite(rule.threshold) or not 0 <= rule.threshold <= LARGEST:
        return f"threshold is a number from 0 to {LARGEST:.0f}"
    if kind.is_level:
        return _problem_of_low(rule) or _problem_of_purpose(rule)
    if rule.compare == "below":
        return f"{rule.condition} counts events: it can be above its threshold, not below"
    if rule.for_s:
        return f"{rule.condition} counts events in its window_s; leave for_s out"
    if not 1 <= rule.threshold <= MOST_COUNTED or rule.threshold != int(rule.threshold):
        return f"the threshold of {rule.condition} is a whole number from 1 to {MOST_COUNTED}"
    return _problem_of_purpose(rule)


def _problem_of_low(rule: AlertRule) -> str | None:
    if rule.compare == "above":
        # Whoever was above it once would be for ever: what has no reading is nought.
        if rule.threshold == 0 and rule.scope != "tenant":
            return f"a threshold of 0 holds for each {rule.scope} for ever; give a greater one"
        return None
    if rule.condition not in LOW:
        return f"below is for {_either(LOW)}"
    if rule.target is None and rule.scope != "tenant":
        return f"below needs a target: what has nothing to do is in no list of each {rule.scope}"
    return None


def _problem_of_purpose(rule: AlertRule) -> str | None:
    if rule.purpose == "alert":
        if rule.direction is not None or rule.amount is not None:
            return "an alert suggests no direction and no amount; make a scaling trigger"
        return None
    if rule.condition not in SCALABLE:
        return f"a scaling trigger watches {_either(SCALABLE)}"
    if rule.direction is None or rule.amount is None:
        return "a scaling trigger has a direction, up or down, and an amount of agents"
    if rule.cooldown_s < 1:
        return "a scaling trigger is told again after each cool-down: cooldown_s is at least 1"
    return None


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def plain(value: float) -> str:
    """Decimal text: events hold no floats."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


class Default(NamedTuple):
    """A rule that is offered to who has none."""

    name: str
    condition: Condition
    threshold: float
    for_s: int = 0


# Quiet on a healthy mesh; every one shows in the windows, whoever else is told.
DEFAULTS: Final = (
    Default("Agent goes in circles", "entropy", 1),
    Default("Prompt injection suspected", "injection", 1),
    Default("Messages break the schema", "violations", 5),
    Default("A cap was reached", "budget", 1),
    Default("Agent is silent", "silence", 60),
    Default("Given up as dead letter", "dead_letters", 1),
    Default("A person is waited for", "gate_age", 300),
    Default("A proof does not hold", "chain", 1),
    Default("The log is not signed in time", "checkpoint_lag", 30, 10),
    Default("A certificate ends soon", "certificate", 1),
    Default("A certificate has ended", "certificate", 2),
)

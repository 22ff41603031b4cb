"""Alert rules and scaling triggers: the conditions, their units and scopes, and the rule type.

Both are one kind of rule, evaluated by one evaluator; `purpose` says what it produces: an alert that is
raised and resolved, or a trigger that suggests more or fewer agents. A condition either counts events of the
record in a window, or reads a current level. An invalid rule is refused with one message before it is stored.
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
MAX_COUNTED: Final = 10_000  # events of one subject that are counted in a window
LARGEST: Final = 1e12
MAX_ENDPOINTS: Final = 16
MAX_AMOUNT: Final = 1_000


class ConditionSpec(NamedTuple):
    """A condition: its unit, its scopes (the first is the default), and the events it counts."""

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


KINDS: Final[dict[Condition, ConditionSpec]] = {
    "entropy": ConditionSpec(
        "a session is looping, by either detector",
        "alerts",
        ("session", "agent", "tenant"),
        1,
        "critical",
        ("entropy_alert", "loop_detected"),
        3_600,
    ),
    "injection": ConditionSpec(
        "text sent to agents matches a known prompt injection",
        "findings",
        ("session", "agent", "tenant"),
        1,
        "warning",
        ("injection_suspected",),
        3_600,
    ),
    "violations": ConditionSpec(
        "messages violate the schema", "messages", ("agent", "tenant"), 5, "error", ("schema_violation",)
    ),
    "security": ConditionSpec(
        "a sender impersonated another identity or role",
        "events",
        ("tenant",),
        1,
        "critical",
        ("security_violation",),
    ),
    "budget": ConditionSpec(
        "a soft or a hard cap was reached",
        "messages",
        ("budget", "tenant"),
        1,
        "error",
        ("budget_warning", "budget_exceeded"),
        3_600,
    ),
    "burn_rate": ConditionSpec(
        "spend per minute, averaged over the last five",
        "per minute",
        ("tenant", "cluster", "session", "agent"),
        1,
        "warning",
    ),
    "silence": ConditionSpec("seconds since an agent's last heartbeat", "s", ("agent",), 60, "warning"),
    "silent_agents": ConditionSpec(
        "agents that missed a heartbeat or were recently evicted",
        "agents",
        ("capability", "cluster", "tenant"),
        1,
        "warning",
    ),
    "queue_depth": ConditionSpec(
        "messages sent and not acknowledged",
        "messages",
        ("capability", "cluster", "tenant"),
        50,
        "warning",
    ),
    "breaker": ConditionSpec(
        "the circuit of a capability is not closed (1) or closed (0)", "", ("capability",), 1, "error"
    ),
    "dead_letters": ConditionSpec(
        "messages or runs that became dead letters",
        "letters",
        ("tenant",),
        1,
        "error",
        ("dead_lettered",),
        3_600,
    ),
    "dead_letters_waiting": ConditionSpec(
        "dead letters waiting for a person", "letters", ("tenant",), 10, "error"
    ),
    "gate_age": ConditionSpec(
        "age of the oldest gate or decision waiting for an answer", "s", ("tenant",), 300, "warning"
    ),
    "chain": ConditionSpec(
        "verification failed: a broken chain, a peer's fork, an accepted rollback",
        "events",
        ("log",),
        1,
        "critical",
        ("chain_broken", "peer_fork_detected", "rollback_accepted"),
        LONGEST_S,
    ),
    "checkpoint_lag": ConditionSpec(
        "how long events have waited to be signed, or the log is not signed at all",
        "s",
        ("tenant",),
        30,
        "critical",
    ),
    "certificate": ConditionSpec(
        "a certificate in use expires soon or could not be replaced (1), or has expired (2)",
        "",
        ("certificate",),
        1,
        "error",
    ),
}
# Conditions that scaling triggers may use.
SCALABLE: Final[tuple[Condition, ...]] = ("queue_depth", "silent_agents", "breaker", "burn_rate")

# Conditions that can also be below a threshold.
LOW: Final[tuple[Condition, ...]] = ("queue_depth", "burn_rate")


class AlertRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is evaluated. `target` narrows it to one member of its scope; without one, each member is
    a subject."""

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
    since_seq: int  # events up to this number are before the rule or its last change, and do not count

    def is_muted(self, now_ns: int) -> bool:
        return self.muted_until_ns > now_ns

    def breaches(self, value: float) -> bool:
        return value >= self.threshold if self.compare == "above" else value <= self.threshold


def problem_of(rule: AlertRule) -> str | None:
    """Why this rule is invalid; None when it is valid."""
    kind = KINDS[rule.condition]
    if rule.scope not in kind.scopes:
        return f"{rule.condition} has scope {_either(kind.scopes)}"
    if rule.target is not None and rule.scope == "tenant":
        return "a rule with scope tenant has no target"
    if not math.isfinite(rule.threshold) or not 0 <= rule.threshold <= LARGEST:
        return f"threshold must be a number from 0 to {LARGEST:.0f}"
    if kind.is_level:
        return _problem_of_low(rule) or _problem_of_purpose(rule)
    if rule.compare == "below":
        return f"{rule.condition} counts events: compare must be above"
    if rule.for_s:
        return f"{rule.condition} counts events in its window_s; omit for_s"
    if not 1 <= rule.threshold <= MAX_COUNTED or rule.threshold != int(rule.threshold):
        return f"the threshold of {rule.condition} must be a whole number from 1 to {MAX_COUNTED}"
    return _problem_of_purpose(rule)


def _problem_of_low(rule: AlertRule) -> str | None:
    if rule.compare == "above":
        # A subject above it once would stay so forever: no reading means zero.
        if rule.threshold == 0 and rule.scope != "tenant":
            return f"a threshold of 0 always holds for each {rule.scope}; use a greater one"
        return None
    if rule.condition not in LOW:
        return f"compare below is only for {_either(LOW)}"
    if rule.target is None and rule.scope != "tenant":
        return f"compare below needs a target: an idle {rule.scope} appears in no list"
    return None


def _problem_of_purpose(rule: AlertRule) -> str | None:
    if rule.purpose == "alert":
        if rule.direction is not None or rule.amount is not None:
            return "an alert rule has no direction and no amount; create a scaling trigger"
        return None
    if rule.condition not in SCALABLE:
        return f"a scaling trigger watches {_either(SCALABLE)}"
    if rule.direction is None or rule.amount is None:
        return "a scaling trigger needs a direction, up or down, and a number of agents"
    if rule.cooldown_s < 1:
        return "a scaling trigger is raised again after each cooldown: cooldown_s must be at least 1"
    return None


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def decimal_text(value: float) -> str:
    """Decimal text: events hold no floats."""
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


class DefaultRule(NamedTuple):
    """A recommended rule."""

    name: str
    condition: Condition
    threshold: float
    for_s: int = 0
    former_name: str = ""  # rules created under it are still recognized as this one


# Quiet on a healthy mesh; alerts of all of them are shown in the UI, whether or not endpoints are notified.
DEFAULTS: Final = (
    DefaultRule("Agent is looping", "entropy", 1, former_name="Agent goes in circles"),
    DefaultRule("Prompt injection suspected", "injection", 1),
    DefaultRule("Schema violations", "violations", 5, former_name="Messages break the schema"),
    DefaultRule("Budget cap reached", "budget", 1, former_name="A cap was reached"),
    DefaultRule("Agent is silent", "silence", 60),
    DefaultRule("Dead letter", "dead_letters", 1, former_name="Given up as dead letter"),
    DefaultRule("Approval waiting", "gate_age", 300, former_name="A person is waited for"),
    DefaultRule("Verification failed", "chain", 1, former_name="A proof does not hold"),
    DefaultRule("Log signing is late", "checkpoint_lag", 30, 10, former_name="The log is not signed in time"),
    DefaultRule("Certificate expires soon", "certificate", 1, former_name="A certificate ends soon"),
    DefaultRule("Certificate expired", "certificate", 2, former_name="A certificate has ended"),
)

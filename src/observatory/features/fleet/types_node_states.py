"""Node states: the rules of the map, in one place (ruling 40).

Pure, over what is known of an agent. The first matching rule gives the state; its number, a sentence and a
mark go with it, because colour is never the only sign. Liveness comes from heartbeats alone (ruling 27): an
agent that never sent a heartbeat is neither dead nor alive, it is active or idle by what it sends.

    1 dead              evicted                      6 blocked   paused by a person
    2 dead              silent past one interval     7 blocked   a message of it is held
    3 alert_entropy     it is looping                8 blocked   its session's entropy is a WARNING
    4 schema_violation  its last message broke it    9 active    it sent something within 30 s
    5 blocked           a kill switch stops it      10 idle      none of these
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from observatory.protocol.clock import from_ns

NodeState = Literal["idle", "active", "alert_entropy", "schema_violation", "dead", "blocked"]
COLOURS: dict[NodeState, str] = {
    "idle": "#6b7280",
    "active": "#3b82f6",
    "alert_entropy": "#ef4444",
    "schema_violation": "#f97316",
    "dead": "#374151",
    "blocked": "#f59e0b",
}
# A mark and a shape for each, so that the map reads without colour.
MARKS: dict[NodeState, str] = {
    "idle": "·",
    "active": "▸",
    "alert_entropy": "⟲",
    "schema_violation": "!",
    "dead": "×",
    "blocked": "‖",
}
SHAPES: dict[NodeState, str] = {
    "idle": "circle",
    "active": "disc",
    "alert_entropy": "octagon",
    "schema_violation": "triangle",
    "dead": "cross",
    "blocked": "square",
}
FLASHING: Final = frozenset({"alert_entropy"})
# Most urgent first: the state that represents a group of agents.
WORST: tuple[NodeState, ...] = ("alert_entropy", "schema_violation", "blocked", "dead", "active", "idle")
SECOND: Final = 1_000_000_000
ACTIVE_NS = 30 * SECOND


class LoopAlarm(NamedTuple):
    """An open alarm of a detector in which this agent is the one that is looping."""

    severity: str  # loop or warning
    session_id: str
    detector: str
    since_ns: int | None = None
    entropy: float | None = None


class Halt(NamedTuple):
    """Why the messages of an agent are not delivered."""

    cause: str  # kill, pause or hold
    detail: str  # the switch's scope, or the session
    since_ns: int
    messages: int = 1


class AgentFacts(NamedTuple):
    """The input of the rules."""

    liveness: str = "unknown"
    last_seen_ns: int = 0  # its last message
    violation_ns: int | None = None  # cleared by its next valid message
    alarms: tuple[LoopAlarm, ...] = ()
    halts: tuple[Halt, ...] = ()
    heartbeat_ns: int | None = None
    evicted_ns: int | None = None


class JudgedState(NamedTuple):
    state: NodeState
    rule: int
    reason: str


def judge(facts: AgentFacts, now_ns: int, violation_window_s: int) -> JudgedState:
    """The first matching rule."""
    if facts.liveness == "evicted":
        return JudgedState("dead", 1, f"evicted {_ago(facts.evicted_ns, now_ns)}")
    if facts.liveness == "zombie":
        return JudgedState("dead", 2, f"silent: its last heartbeat was {_ago(facts.heartbeat_ns, now_ns)}")
    for alarm in facts.alarms:
        if alarm.severity == "loop":
            return JudgedState("alert_entropy", 3, f"is looping in session {alarm.session_id}")
    if in_violation(facts.violation_ns, now_ns, violation_window_s):
        return JudgedState("schema_violation", 4, "its last message broke the schema")
    for rule, cause in ((5, "kill"), (6, "pause"), (7, "hold")):
        for halt in facts.halts:
            if halt.cause == cause:
                return JudgedState("blocked", rule, describe_halt(halt))
    for alarm in facts.alarms:
        if alarm.severity == "warning":
            return JudgedState("blocked", 8, f"its steps repeat in session {alarm.session_id} (warning)")
    if facts.last_seen_ns and now_ns - facts.last_seen_ns < ACTIVE_NS:
        return JudgedState("active", 9, f"sent a message {_ago(facts.last_seen_ns, now_ns)}")
    if not facts.last_seen_ns:
        return JudgedState("idle", 10, "has sent nothing yet")
    return JudgedState("idle", 10, f"sent nothing for {_span(now_ns - facts.last_seen_ns)}")


def describe_halt(halt: Halt) -> str:
    if halt.cause == "kill":
        return f"stopped by the kill switch on {halt.detail}"
    if halt.cause == "pause":
        return f"paused in session {halt.detail}" if halt.detail else "paused everywhere"
    count = halt.messages
    return f"{count} {'message is' if count == 1 else 'messages are'} held ({halt.detail})"


def in_violation(violation_ns: int | None, now_ns: int, window_s: int) -> bool:
    return violation_ns is not None and now_ns - violation_ns < window_s * SECOND


def judge_replay(
    violations: int, alerts: int, messages: int, evicted_ns: int | None, end_ns: int
) -> JudgedState:
    """From a minute's counters alone, which do not record who was paused, held or silent."""
    if evicted_ns is not None and evicted_ns < end_ns:
        return JudgedState("dead", 1, f"evicted at {from_ns(evicted_ns)}")
    if alerts:
        return JudgedState("alert_entropy", 3, "an alarm was raised in this minute")
    if violations:
        noun = "message" if violations == 1 else "messages"
        return JudgedState("schema_violation", 4, f"{violations} {noun} broke the schema in this minute")
    if messages:
        return JudgedState(
            "active", 9, f"sent {messages} {'message' if messages == 1 else 'messages'} in this minute"
        )
    return JudgedState("idle", 10, "sent nothing in this minute")


def node_state(
    last_seen_ns: int,
    violation_ns: int | None,
    now_ns: int,
    violation_window_s: int,
    severity: str = "normal",
) -> NodeState:
    """The state alone; `severity` is the worst of the alarms this agent is in."""
    alarms = () if severity == "normal" else (LoopAlarm(severity, "", ""),)
    facts = AgentFacts(last_seen_ns=last_seen_ns, violation_ns=violation_ns, alarms=alarms)
    return judge(facts, now_ns, violation_window_s).state


def worst_state(states: dict[NodeState, int]) -> NodeState:
    """The most urgent state that occurs in these counts; idle when there are none."""
    return next((state for state in WORST if states.get(state)), "idle")


def _ago(then_ns: int | None, now_ns: int) -> str:
    return "before this gateway started" if then_ns is None else f"{_span(now_ns - then_ns)} ago"


def _span(ns: int) -> str:
    seconds = max(0, ns // SECOND)
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600} h"

"""The entropy stage: how much a session repeats itself (seed 001, rulings 14 to 16).

Law: the score is unique / n over the last `window` tuples (intent, tool, status) of a session. Below 0.25 is
LOOP, from there to 0.50, both included, WARNING, above normal; fewer than three steps are no pattern. Only
logs with cognition are scored; what is held or refused counts like the rest once it is archived. An alert is
chained on entering LOOP, counted while it lasts and closed by `entropy_recovered` on leaving it; a WARNING
tells nobody and stands in nobody's way. The trail holds a hash of the intent, never its text.

The window is text on the session's row, so a restart or another gateway goes on where this one was: first
`<number of the last agent>`, with `!` and the numbers of agents whose own figure is off; then a line a step,
oldest first: hash of the intent, status, tool.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from observatory.pipeline.event_draft import of_message
from observatory.pipeline.message_context import Passage
from observatory.pipeline.rows import Session
from observatory.pipeline.state import Desk, Draft, Memory, Verdict
from observatory.protocol.rulebook import DetectorSettings

# Longer names are told of by their hash.
LONGEST_TOOL = 64
# So many agents whose figure is off are remembered in a session; of more the oldest is told of anew.
MOST_OFF = 64


def intent_hash(intent: str) -> str:
    """Stable between processes and releases: windows and events hold it."""
    return blake2b(intent.encode(), digest_size=8).hexdigest()


def last_agent(window: str | None) -> int:
    """Number of the agent whose step was scored last; 0 when there is none."""
    head = (window or "").partition("\n")[0].partition("!")[0]
    return int(head) if head else 0


def check(passage: Passage, memory: Memory, now_ns: int) -> Verdict | None:
    """The stage: the score of this message. What it does to the session waits until it is archived."""
    log = passage.message.log
    if log is None or log.cognition is None:
        return None
    session, action = passage.session, log.action
    assert session is not None  # placement is an earlier stage
    tool = action.tool_call or ""
    if len(tool) > LONGEST_TOOL or not tool.isprintable():
        tool = "#" + intent_hash(tool)
    known = session.window
    if known is None:
        known = (session.entropy_window or "").split("\n")
    # A list of its own: should this message be refused before it is archived, the session's stays as it is.
    steps = [*known, f"{intent_hash(log.cognition.intent)}\t{action.status}\t{tool}"]
    size = memory.rulebook.detectors.window
    if len(steps) > size + 1:
        del steps[1:-size]
    passage.window = steps
    # The first line is none of the steps and never like one.
    passage.entropy = (len(set(steps)) - 1) / (len(steps) - 1)
    return None


def follow(passage: Passage, desk: Desk, number: int) -> None:
    """Once the message has its number and its event: what the session is now, and whom that concerns."""
    session, score, steps, log = passage.session, passage.entropy, passage.window, passage.message.log
    assert session is not None and score is not None and log is not None and log.cognition is not None
    rules = desk.memory.rulebook.detectors
    severity = rules.severity(score, len(steps) - 1)
    steps[0] = _head(passage, desk, number, rules, steps[0].partition("!")[2], log.cognition.entropy_score)
    session.entropy, session.entropy_window, session.window = score, "\n".join(steps), steps
    if severity == "loop":
        if session.alert_seq is None:
            session.alert_count = _most(steps[1:])[1]
            session.alert_seq = desk.append(_alert(passage, rules, number, desk.now_ns))
        else:
            session.alert_count += 1
    elif session.alert_seq is not None:
        desk.append(_recovery(passage, session, severity, number, desk.now_ns))
        session.alert_seq, session.alert_count = None, 0
    session.severity = severity


def _head(
    passage: Passage, desk: Desk, number: int, rules: DetectorSettings, off: str, reported: float | None
) -> str:
    """The window's first line; tells once when an agent's own figure is off, anew only after it was right.

    Right is half the gap or less. An agent that always sends the same figure would otherwise double the
    trail. As with the severity, too few steps say nothing.
    """
    name = str(passage.agent.agent_no) if passage.agent is not None else "0"
    score = passage.entropy
    if reported is not None and score is not None and len(passage.window) > rules.n_min:
        gap = reported - score if reported > score else score - reported
        is_off = gap > rules.discrepancy_gap and round(gap, 9) > rules.discrepancy_gap
        if is_off or (off and gap * 2 <= rules.discrepancy_gap):
            off = _noted(passage, desk, number, reported, off, name, is_off)
    return f"{name}!{off}" if off else name


def _noted(
    passage: Passage, desk: Desk, number: int, reported: float, off: str, name: str, is_off: bool
) -> str:
    known = off.split(",") if off else []
    if is_off == (name in known):
        return off
    if not is_off:
        return ",".join(one for one in known if one != name)
    score = passage.entropy or 0.0
    detail = _about(passage, number) | {
        "entropy_score": decimal(score),
        "reported_entropy_score": decimal(reported),
        "gap": decimal(abs(reported - score)),
    }
    summary = f"{passage.message.sender_id} reports another entropy than was computed"
    desk.append(_draft(passage, "entropy_discrepancy", summary, detail, desk.now_ns))
    return ",".join([*known, name][-MOST_OFF:])


def decimal(score: float) -> str:
    """Events hold no floats (ruling 34)."""
    return f"{score:.6f}".rstrip("0").rstrip(".")


def plain(value: Any) -> Any:
    """Whatever holds numbers, as events may hold it."""
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def _most(steps: list[str]) -> tuple[str, int]:
    """The tuple that comes most often, the newest of equals, and how often."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step] = counts.get(step, 0) + 1
    most = max(counts.values())
    return next(step for step in reversed(steps) if counts[step] == most), most


def _about(passage: Passage, number: int) -> dict[str, Any]:
    session = passage.session
    assert session is not None
    return {
        "session_id": session.session_id,
        "agent_id": passage.message.sender_id,
        "step_id": passage.step_id,
        "message_sequence_number": number,
    }


def _alert(passage: Passage, rules: DetectorSettings, number: int, now_ns: int) -> Draft:
    pattern, count = _most(passage.window[1:])
    intent, status, tool = pattern.split("\t")
    detail = _about(passage, number) | {
        "entropy_score": decimal(passage.entropy or 0.0),
        "window_size": len(passage.window) - 1,
        "repeated_pattern": {"intent_hash": intent, "tool_call": tool or None, "action_status": status},
        "occurrence_count": count,
        "detector": "ratio",
        "loop_below": decimal(rules.loop_below),
    }
    summary = f"{passage.message.sender_id} goes in circles: {tool or 'no tool'} {status}, {count} times"
    return _draft(passage, "entropy_alert", summary, detail, now_ns)


def _recovery(passage: Passage, session: Session, severity: str, number: int, now_ns: int) -> Draft:
    detail = _about(passage, number) | {
        "entropy_score": decimal(passage.entropy or 0.0),
        "window_size": len(passage.window) - 1,
        "severity": severity,
        "alert_sequence_number": session.alert_seq,
        "occurrence_count": session.alert_count,
        "detector": "ratio",
    }
    return _draft(passage, "entropy_recovered", "the session repeats itself no more", detail, now_ns)


def _draft(passage: Passage, event_type: str, summary: str, detail: dict[str, Any], now_ns: int) -> Draft:
    return of_message(passage, event_type, summary, detail, now_ns, message_id=passage.message_id)

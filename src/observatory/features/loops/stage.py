"""The entropy stage: how much a session repeats itself (seed 001, rulings 14 to 16).

Law: the score is unique / n over the last `window` tuples (intent, tool, status) of a session. Below 0.25 is
LOOP, from there to 0.50, both included, WARNING, above normal; fewer than three steps are no pattern. Only
logs with cognition are scored; held or refused messages count like the rest once they are archived. An alert
is chained on entering LOOP, counted while it lasts and closed by `entropy_recovered` on leaving it; a WARNING
notifies no one and blocks nothing. The trail has a hash of the intent, never its text.

The window is text on the session's row, so that a restart or another gateway continues it: first
`<number of the last agent>`, with `!` and the numbers of agents whose reported score is off; then a line for
each step, oldest first: hash of the intent, status, tool.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from observatory.pipeline.event_draft import of_message
from observatory.pipeline.message_context import MessageContext
from observatory.pipeline.rows import SessionRow
from observatory.pipeline.state import BatchState, EventDraft, SubmissionResult, UnitOfWork
from observatory.pipeline.tenant_settings import decimal
from observatory.protocol.tenant_config import DetectorSettings

# Longer names are replaced by their hash.
LONGEST_TOOL = 64
# Agents with a wrong reported score remembered in a session; beyond that the oldest is reported again.
MAX_OFF = 64


def intent_hash(intent: str) -> str:
    """Stable between processes and releases: windows and events contain it."""
    return blake2b(intent.encode(), digest_size=8).hexdigest()


def check(ctx: MessageContext, memory: BatchState, now_ns: int) -> SubmissionResult | None:
    """The stage: the score of this message. Its effect on the session waits until it is archived."""
    log = ctx.message.log
    if log is None or log.cognition is None:
        return None
    session, action = ctx.session, log.action
    assert session is not None  # placement is an earlier stage
    tool = action.tool_call or ""
    if len(tool) > LONGEST_TOOL or not tool.isprintable():
        tool = "#" + intent_hash(tool)
    known = session.window
    if known is None:
        known = (session.entropy_window or "").split("\n")
    # A new list: if this message is refused before it is archived, the session's list must not change.
    steps = [*known, f"{intent_hash(log.cognition.intent)}\t{action.status}\t{tool}"]
    size = memory.tenant_config.detectors.window
    if len(steps) > size + 1:
        del steps[1:-size]
    ctx.window = steps
    # The first line is not a step and never equals one.
    ctx.entropy = (len(set(steps)) - 1) / (len(steps) - 1)
    return None


def follow(ctx: MessageContext, uow: UnitOfWork, number: int) -> None:
    """Once the message has its number and its event: what the session is now, and whom that concerns."""
    if ctx.entropy is None:
        return
    session, score, steps, log = ctx.session, ctx.entropy, ctx.window, ctx.message.log
    assert session is not None and score is not None and log is not None and log.cognition is not None
    rules = uow.memory.tenant_config.detectors
    severity = rules.severity(score, len(steps) - 1)
    steps[0] = _head(ctx, uow, number, rules, steps[0].partition("!")[2], log.cognition.entropy_score)
    session.entropy, session.entropy_window, session.window = score, "\n".join(steps), steps
    if severity == "loop":
        if session.alert_seq is None:
            session.alert_count = _most_frequent(steps[1:])[1]
            session.alert_seq = uow.append(_alert(ctx, rules, number, uow.now_ns))
        else:
            session.alert_count += 1
    elif session.alert_seq is not None:
        uow.append(_recovery(ctx, session, severity, number, uow.now_ns))
        session.alert_seq, session.alert_count = None, 0
    session.severity = severity


def _head(
    ctx: MessageContext,
    uow: UnitOfWork,
    number: int,
    rules: DetectorSettings,
    off: str,
    reported: float | None,
) -> str:
    """The window's first line. Reports once when an agent's own score is off, again only after it was right.

    Right is half the gap or less. An agent that always sends the same score would otherwise double the
    trail. As with the severity, too few steps are ignored.
    """
    name = str(ctx.agent.agent_no) if ctx.agent is not None else "0"
    score = ctx.entropy
    if reported is not None and score is not None and len(ctx.window) > rules.n_min:
        gap = reported - score if reported > score else score - reported
        is_off = gap > rules.discrepancy_gap and round(gap, 9) > rules.discrepancy_gap
        if is_off or (off and gap * 2 <= rules.discrepancy_gap):
            off = _report_discrepancy(ctx, uow, number, reported, off, name, is_off)
    return f"{name}!{off}" if off else name


def _report_discrepancy(
    ctx: MessageContext, uow: UnitOfWork, number: int, reported: float, off: str, name: str, is_off: bool
) -> str:
    known = off.split(",") if off else []
    if is_off == (name in known):
        return off
    if not is_off:
        return ",".join(one for one in known if one != name)
    score = ctx.entropy or 0.0
    detail = _about(ctx, number) | {
        "entropy_score": decimal(score),
        "reported_entropy_score": decimal(reported),
        "gap": decimal(abs(reported - score)),
    }
    summary = f"{ctx.message.sender_id} reports an entropy score that differs from the computed one"
    uow.append(_draft(ctx, "entropy_discrepancy", summary, detail, uow.now_ns))
    return ",".join([*known, name][-MAX_OFF:])


def _most_frequent(steps: list[str]) -> tuple[str, int]:
    """The most frequent tuple, the newest of equals, and its count."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step] = counts.get(step, 0) + 1
    most = max(counts.values())
    return next(step for step in reversed(steps) if counts[step] == most), most


def _about(ctx: MessageContext, number: int) -> dict[str, Any]:
    session = ctx.session
    assert session is not None
    return {
        "session_id": session.session_id,
        "agent_id": ctx.message.sender_id,
        "step_id": ctx.step_id,
        "message_sequence_number": number,
    }


def _alert(ctx: MessageContext, rules: DetectorSettings, number: int, now_ns: int) -> EventDraft:
    pattern, count = _most_frequent(ctx.window[1:])
    intent, status, tool = pattern.split("\t")
    detail = _about(ctx, number) | {
        "entropy_score": decimal(ctx.entropy or 0.0),
        "window_size": len(ctx.window) - 1,
        "repeated_pattern": {"intent_hash": intent, "tool_call": tool or None, "action_status": status},
        "occurrence_count": count,
        "detector": "ratio",
        "loop_below": decimal(rules.loop_below),
    }
    times = f"{count} {'time' if count == 1 else 'times'}"
    summary = f"{ctx.message.sender_id} is looping: {tool or 'no tool'} {status}, {times}"
    return _draft(ctx, "entropy_alert", summary, detail, now_ns)


def _recovery(
    ctx: MessageContext, session: SessionRow, severity: str, number: int, now_ns: int
) -> EventDraft:
    detail = _about(ctx, number) | {
        "entropy_score": decimal(ctx.entropy or 0.0),
        "window_size": len(ctx.window) - 1,
        "severity": severity,
        "alert_sequence_number": session.alert_seq,
        "occurrence_count": session.alert_count,
        "detector": "ratio",
    }
    return _draft(ctx, "entropy_recovered", "the session no longer repeats itself", detail, now_ns)


def _draft(
    ctx: MessageContext, event_type: str, summary: str, detail: dict[str, Any], now_ns: int
) -> EventDraft:
    return of_message(ctx, event_type, summary, detail, now_ns, message_id=ctx.message_id)

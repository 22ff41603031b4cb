"""Compares two sessions step by step: where they diverge, and the difference in outcome, cost and memory.

Pure, over steps in sequence order (rules S216–S218). A pair is `same` when role, tool, input, intent and
status agree, else `changed` with what differs; a step without a counterpart is `left_only` or `right_only`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from observatory.derived.seen import FoldMessage
from observatory.features.compare.align import StepFeatures, align
from observatory.features.graph.types_costs import step_costs
from observatory.features.graph.types_labels import INTENT, is_terminal, outcome_of, title_of
from observatory.features.graph.types_step_details import duration_of, memory_of, output_of

Row = dict[str, Any]
FACTS = 100  # shown per kind; all are counted
_word = re.compile(r"\w+").findall


def compare(left: Sequence[FoldMessage], right: Sequence[FoldMessage]) -> Row:
    known: dict[tuple[Any, ...], int] = {}  # fingerprints as small numbers: they are compared often
    alignment = align([_mark(seen, known) for seen in left], [_mark(seen, known) for seen in right])
    cost_left, cost_right = step_costs(left).cost, step_costs(right).cost
    steps = [
        _pair(
            None if i is None else left[i],
            None if j is None else right[j],
            0.0 if i is None else cost_left[left[i].seq],
            0.0 if j is None else cost_right[right[j].seq],
        )
        for i, j in alignment.pairs
    ]
    first_change = next((place for place, step in enumerate(steps) if step["change"] != "same"), None)
    one, other = _total(left, cost_left), _total(right, cost_right)
    return {
        "left": one,
        "right": other,
        "delta": {name: _minus(other[name], one[name]) for name in ("steps", "failures", "agents_count")}
        | {name: _minus(other[name], one[name]) for name in ("cost", "tokens", "duration_ms")}
        | {"outcome": None if one["outcome"] == other["outcome"] else [one["outcome"], other["outcome"]]},
        "memory": _memory(left, right),
        "first_divergence": None if first_change is None else {"index": first_change, **steps[first_change]},
        "counts": {
            change: sum(1 for step in steps if step["change"] == change)
            for change in ("same", "changed", "left_only", "right_only")
        },
        "alignment": {"exact": alignment.exact, "band": alignment.band},
        "steps": steps,
    }


def _mark(seen: FoldMessage, known: dict[tuple[Any, ...], int]) -> StepFeatures:
    tool, status = outcome_of(seen)
    intent = _intent(seen) or ""
    deed = tool or seen.message_type
    words = frozenset(_word(intent[:1_000].lower()))
    role = seen.agent_type or seen.message_type
    print_ = (role, deed, _plain(intent), _input(seen), status)
    return StepFeatures(known.setdefault(print_, len(known)), role, deed, words)


def _intent(seen: FoldMessage) -> str | None:
    if seen.log is not None:
        return seen.log.cognition.intent if seen.log.cognition is not None else None
    return None if seen.envelope is None else title_of(seen.envelope)


def _input(seen: FoldMessage) -> str | None:
    return seen.log.action.tool_input if seen.log is not None else None


def _plain(text: str | None) -> str:
    return " ".join((text or "").lower().split())


def _pair(left: FoldMessage | None, right: FoldMessage | None, cost_left: float, cost_right: float) -> Row:
    delta: Row = {"cost_delta": round(cost_right - cost_left, 9)}
    if left is None or right is None:
        change = "left_only" if right is None else "right_only"
        return {"change": change, "left": _side(left), "right": _side(right), "differs": [], **delta}
    differs = [name for name, one, other in _facets(left, right) if one != other]
    decisive = {"agent_type", "tool", "input", "intent", "status"}
    change = "changed" if decisive & set(differs) else "same"
    times = duration_of(left), duration_of(right)
    if times[0] is not None and times[1] is not None:
        delta["duration_delta_ms"] = times[1] - times[0]
    return {"change": change, "left": _side(left), "right": _side(right), "differs": differs, **delta}


def _facets(left: FoldMessage, right: FoldMessage) -> list[tuple[str, Any, Any]]:
    (tool, status), (other_tool, other_status) = outcome_of(left), outcome_of(right)
    return [
        ("agent_type", left.agent_type, right.agent_type),
        ("tool", tool, other_tool),
        ("input", _input(left), _input(right)),
        ("intent", _plain(_intent(left)), _plain(_intent(right))),
        ("status", status, other_status),
        ("output", output_of(left), output_of(right)),
        ("memory", memory_of(left), memory_of(right)),
        ("state", left.state, right.state),
    ]


def _side(seen: FoldMessage | None) -> Row | None:
    if seen is None:
        return None
    tool, status = outcome_of(seen)
    return {
        "id": seen.name,
        "sequence_number": seen.seq,
        "agent_id": seen.agent_id,
        "tool": tool,
        "status": status,
        "intent": (_intent(seen) or "")[:INTENT],
    }


def _total(steps: Sequence[FoldMessage], costs: dict[int, float]) -> Row:
    outcomes = [outcome_of(seen)[1] for seen in steps]
    ended = any(is_terminal(seen) for seen in steps)
    logs = [status for seen, status in zip(steps, outcomes, strict=True) if seen.log is not None]
    deltas = [seen.log.state_delta for seen in steps if seen.log is not None]
    return {
        "steps": len(steps),
        "outcome": ("ended:" if ended else "open:") + (logs[-1] if logs and logs[-1] else "unknown"),
        "failures": sum(1 for status in outcomes if status == "failure"),
        "agents_count": len({seen.agent_id for seen in steps}),
        "cost": round(sum(costs.values()), 9),
        "tokens": sum(delta.tokens_consumed or 0 for delta in deltas if delta is not None),
        "duration_ms": (steps[-1].at_ns - steps[0].at_ns) // 1_000_000 if steps else 0,
    }


def _minus(right: float, left: float) -> float:
    return round(right - left, 9)


def _memory(left: Sequence[FoldMessage], right: Sequence[FoldMessage]) -> Row:
    """Facts by their text: those only one side learned, and how many both did."""
    left_facts = dict.fromkeys(fact for seen in left for fact in memory_of(seen))
    right_facts = dict.fromkeys(fact for seen in right for fact in memory_of(seen))
    only_left = [fact for fact in left_facts if fact not in right_facts]
    only_right = [fact for fact in right_facts if fact not in left_facts]
    return {
        "both": len(left_facts) - len(only_left),
        "left_only_count": len(only_left),
        "right_only_count": len(only_right),
        "left_only": [fact[:INTENT] for fact in only_left[:FACTS]],
        "right_only": [fact[:INTENT] for fact in only_right[:FACTS]],
    }

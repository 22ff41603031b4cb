"""The state machine of a rule: ok → pending → firing → ok. Pure; time is passed in.

Invariants: one state per rule and subject. A breach fires once it has lasted `for_s` and the subject's last
notification is `cooldown_s` old; until then it is pending, and forgotten if it ends. A firing alert is raised
once until it is resolved; a scaling trigger is raised again after each cooldown, because each asks for one
more step. What began while the rule was muted is raised when the mute ends, if it still fires. A clock that
was set back blocks nothing: a time in the future counts as no time.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import Literal, NamedTuple

from observatory.features.alerting.types_rules import MAX_COUNTED, AlertRule

SECOND = 1_000_000_000
FEW = 100  # events per subject that are always counted; beyond that, at most twice the threshold
AHEAD_NS = 60 * SECOND  # events written during a poll may be slightly ahead of it
State = Literal["ok", "pending", "firing"]
Move = Literal["raise", "resolve"]


class AlertState(NamedTuple):
    """`since_ns`: when this breach began; `last_raised_ns`: when it was last raised; 0 for never."""

    state: State = "ok"
    since_ns: int = 0
    last_raised_ns: int = 0
    is_notified: bool = True  # False: raised while muted, so no notification was sent


def next_state(
    rule: AlertRule, before: AlertState, is_breach: bool, at_ns: int
) -> tuple[AlertState, Move | None]:
    """The state after this reading, and the transition to record."""
    if not is_breach:
        move: Move | None = "resolve" if before.state == "firing" else None
        return before._replace(state="ok", since_ns=0, is_notified=True), move
    if before.state == "firing":
        cooled = rule.purpose == "scaling" and not _is_within(before.last_raised_ns, rule.cooldown_s, at_ns)
        is_unsent = not before.is_notified and not rule.is_muted(at_ns)
        return (_raised(rule, before, at_ns), "raise") if cooled or is_unsent else (before, None)
    since_ns = before.since_ns if before.state == "pending" and before.since_ns <= at_ns else at_ns
    now = before._replace(state="pending", since_ns=since_ns)
    if at_ns - since_ns < rule.for_s * SECOND or _is_within(before.last_raised_ns, rule.cooldown_s, at_ns):
        return now, None
    return _raised(rule, now, at_ns), "raise"


def _is_within(since_ns: int, seconds: int, at_ns: int) -> bool:
    return since_ns > 0 and 0 <= at_ns - since_ns < seconds * SECOND


def _raised(rule: AlertRule, before: AlertState, at_ns: int) -> AlertState:
    return before._replace(state="firing", last_raised_ns=at_ns, is_notified=not rule.is_muted(at_ns))


class Window:
    """Times of the newest events of one subject; only as many as can matter are kept."""

    __slots__ = ("_times",)

    def __init__(self, threshold: float = MAX_COUNTED) -> None:
        self._times: deque[int] = deque(maxlen=min(MAX_COUNTED, max(FEW, 2 * int(threshold))))

    def add(self, at_ns: int, times: int = 1) -> None:
        self._times.extend(repeat(at_ns, min(times, self._times.maxlen or times)))

    def count(self, at_ns: int, window_s: int) -> int:
        """How many lie in the window that ends now; others are dropped, also those of a clock set back."""
        times, first = self._times, at_ns - window_s * SECOND
        while times and not first < times[0] <= at_ns + AHEAD_NS:
            times.popleft()
        return len(times)

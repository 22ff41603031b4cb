"""What a rule makes of a value over time: ok → pending → firing → ok again. Pure; time is handed in.

Laws: one standing for each rule and subject. A breach is told when it has lasted `for_s` and the last word on
this subject is `cooldown_s` old; until then it is pending, and forgotten if it ends. What fires is told once,
until it is resolved; a scaling trigger is told again after each cool-down, because it asks for one more step.
What began while the rule was muted is told when the mute ends, if it still fires. A clock that was set back
holds nothing up: a time in the future counts as no time.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import Literal, NamedTuple

from observatory.features.alerting.types_rules import MOST_COUNTED, AlertRule

SECOND = 1_000_000_000
FEW = 100  # events of a subject that are counted in any case; beyond twice the threshold none need be
AHEAD_NS = 60 * SECOND  # what was written while a look is under way lies a little ahead of it
State = Literal["ok", "pending", "firing"]
Move = Literal["raise", "resolve"]


class Standing(NamedTuple):
    """`since_ns`: when this breach began; `told_ns`: when something was last raised; 0 for never."""

    state: State = "ok"
    since_ns: int = 0
    told_ns: int = 0
    is_told: bool = True  # False: it was raised while muted, so nobody outside knows


def step(rule: AlertRule, was: Standing, is_breach: bool, at_ns: int) -> tuple[Standing, Move | None]:
    """How it stands now, and what is to be told of it."""
    if not is_breach:
        move: Move | None = "resolve" if was.state == "firing" else None
        return was._replace(state="ok", since_ns=0, is_told=True), move
    if was.state == "firing":
        cooled = rule.purpose == "scaling" and not _is_within(was.told_ns, rule.cooldown_s, at_ns)
        unheard = not was.is_told and not rule.is_muted(at_ns)
        return (_raised(rule, was, at_ns), "raise") if cooled or unheard else (was, None)
    since_ns = was.since_ns if was.state == "pending" and was.since_ns <= at_ns else at_ns
    now = was._replace(state="pending", since_ns=since_ns)
    if at_ns - since_ns < rule.for_s * SECOND or _is_within(was.told_ns, rule.cooldown_s, at_ns):
        return now, None
    return _raised(rule, now, at_ns), "raise"


def _is_within(since_ns: int, seconds: int, at_ns: int) -> bool:
    return since_ns > 0 and 0 <= at_ns - since_ns < seconds * SECOND


def _raised(rule: AlertRule, was: Standing, at_ns: int) -> Standing:
    return was._replace(state="firing", told_ns=at_ns, is_told=not rule.is_muted(at_ns))


class Window:
    """Times of the newest events of one subject; so many as can matter are kept."""

    __slots__ = ("_times",)

    def __init__(self, threshold: float = MOST_COUNTED) -> None:
        self._times: deque[int] = deque(maxlen=min(MOST_COUNTED, max(FEW, 2 * int(threshold))))

    def add(self, at_ns: int, times: int = 1) -> None:
        self._times.extend(repeat(at_ns, min(times, self._times.maxlen or times)))

    def count(self, at_ns: int, window_s: int) -> int:
        """How many lie in the window that ends now; others are forgotten, those of a clock set back too."""
        times, first = self._times, at_ns - window_s * SECOND
        while times and not first < times[0] <= at_ns + AHEAD_NS:
            times.popleft()
        return len(times)

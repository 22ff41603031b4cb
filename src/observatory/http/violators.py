"""Keys that send nothing but schema violations are not read for a while (S1162).

Counted in memory, by each gateway for itself: what the record keeps of refusals is bounded without it. A line
is a message, by whichever endpoint it came; one that is valid, or that is refused for another reason than its
form, resets the count.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from observatory.errors import OnlyViolations
from observatory.pipeline.state import SubmissionResult

MAX_VIOLATIONS: Final = 1_000
REST_S: Final = 60.0
MAX_KEYS: Final = 4_096  # beyond it the key longest without a violation is dropped and counted from zero
BROKEN: Final = frozenset({400, 413, 422})
UNDECIDED: Final = frozenset({429, 500, 503})  # nothing is known about the line


class Violators:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: OrderedDict[str, int] = OrderedDict()
        self._until: dict[str, float] = {}

    def admit(self, key_id: str) -> None:
        """Raises OnlyViolations while this key is blocked."""
        until = self._until.get(key_id)
        if until is None:
            return
        left = until - self._clock()
        if left > 0:
            detail = (
                f"the last {MAX_VIOLATIONS} messages of this key all broke the schema; nothing of it is read "
                "now. Fix the sender: the answers to the earlier ones name every fault"
            )
            raise OnlyViolations(math.ceil(left), detail)
        del self._until[key_id]

    def note(self, key_id: str, verdicts: Sequence[SubmissionResult]) -> None:
        """Count the verdicts of this key's lines, in their order. Only those at the end matter."""
        broken = 0
        for verdict in reversed(verdicts):
            if verdict.code in BROKEN:
                broken += 1
            elif verdict.code not in UNDECIDED:
                self._lines.pop(key_id, None)
                break
        if broken:
            self._add(key_id, broken)

    def _add(self, key_id: str, broken: int) -> None:
        lines = self._lines[key_id] = self._lines.pop(key_id, 0) + broken
        if lines >= MAX_VIOLATIONS:
            self._until[key_id] = self._clock() + REST_S
        if len(self._lines) > MAX_KEYS:
            oldest, _ = self._lines.popitem(last=False)
            self._until.pop(oldest, None)

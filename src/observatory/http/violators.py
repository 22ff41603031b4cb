"""Keys that send nothing but violations are read no more for a while (S1162).

Counted in memory, by each gateway for itself: what the record keeps of refusals is bounded without it. A line
is a message, by whichever endpoint it came; one that holds, or that is refused for another reason than its
form, ends the count.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from observatory.errors import OnlyViolations
from observatory.pipeline.state import Verdict

LINES: Final = 1_000
REST_S: Final = 60.0
KEPT: Final = 4_096  # keys; beyond it the one that was longest without a violation begins again
BROKEN: Final = frozenset({400, 413, 422})
UNDECIDED: Final = frozenset({429, 500, 503})  # nothing was found out about the line


class Violators:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: OrderedDict[str, int] = OrderedDict()
        self._until: dict[str, float] = {}

    def admit(self, key_id: str) -> None:
        """Raises OnlyViolations while this key rests."""
        until = self._until.get(key_id)
        if until is None:
            return
        left = until - self._clock()
        if left > 0:
            detail = (
                f"the last {LINES} messages of this key all broke the schema; nothing of it is read now. "
                "Mend what sends them: the answers to the earlier ones name every fault"
            )
            raise OnlyViolations(math.ceil(left), detail)
        del self._until[key_id]

    def note(self, key_id: str, verdicts: Sequence[Verdict]) -> None:
        """What became of lines of this key, in their order. Only those at the end matter."""
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
        if lines >= LINES:
            self._until[key_id] = self._clock() + REST_S
        if len(self._lines) > KEPT:
            oldest, _ = self._lines.popitem(last=False)
            self._until.pop(oldest, None)

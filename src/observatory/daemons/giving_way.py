"""When the analyst rests: it and the gateway share a machine's cores.

Law: while what comes in can be folded nearly as fast, nobody rests: what people see is late by a second or
two. When twice as much comes in as can be folded and it is far behind already, the chase is lost for as long
as that lasts, and whoever commits needs the cores more: it rests longer than it works, and catches up when
less comes. A backlog alone, as after an import, is no reason to rest.
"""

from __future__ import annotations

FAR = 5_000  # messages
TOO_MUCH = 2.0  # times what is folded in the same time
RESTS = 3.0  # times as long as it worked
LONGEST_S = 4.0


class GivingWay:
    """Told after each round of work how far the record and the folding have come, over all tenants it has."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._head = self._cursor = 0

    def rest_s(self, now: float, worked_s: float, head: int, cursor: int) -> float:
        """How long to rest; `worked_s` is what this round took, `now` its end."""
        last, came, folded = self._at, head - self._head, cursor - self._cursor
        self._at, self._head, self._cursor = now, head, cursor
        if last is None or head - cursor <= FAR or folded <= 0 or worked_s <= 0:
            return 0.0
        comes, folds = came / max(now - last, worked_s), folded / worked_s
        return min(LONGEST_S, RESTS * worked_s) if comes > TOO_MUCH * folds else 0.0

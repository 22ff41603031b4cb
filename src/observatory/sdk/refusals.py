"""How often a refusal is told to the log: the first in full, its repeats as a count.

Law: an agent at a cap or before a deny rule is refused at every step; its log says so once, then at every
100th or once a minute, whichever comes first, and at the end. Two refusals are the same when the same rule,
cap or faults refused them, whatever the figures in their sentences.
"""

import logging
from collections.abc import Hashable
from typing import Final

from observatory.sdk.errors import Rejected

log = logging.getLogger("observatory.sdk")
EVERY_N: Final = 100
EVERY_S: Final = 60.0
MOST_KINDS: Final = 100  # remembered; one that was forgotten is told in full again


class Refusals:
    """Of one outbox; used by its sender, and once more when it closes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[Hashable, _Kind] = {}

    def note(self, rejected: Rejected, now: float) -> None:
        kind = self._kinds.get(key := _key(rejected))
        if kind is None:
            log.warning("%s: %s", self._name, rejected)
            self._kinds[key] = _Kind(rejected, now)
            if len(self._kinds) > MOST_KINDS:
                self._tell(self._kinds.pop(next(iter(self._kinds))), now)
            return
        kind.latest, kind.untold = rejected, kind.untold + 1
        if kind.untold >= EVERY_N or now - kind.told_at >= EVERY_S:
            self._tell(kind, now)

    def tell_rest(self, now: float) -> None:
        """What was counted and not yet told."""
        for kind in list(self._kinds.values()):
            self._tell(kind, now)

    def _tell(self, kind: "_Kind", now: float) -> None:
        if kind.untold:
            log.warning("%s: %d more like it, the latest: %s", self._name, kind.untold, kind.latest)
        kind.untold, kind.told_at = 0, now


class _Kind:
    __slots__ = ("latest", "told_at", "untold")

    def __init__(self, rejected: Rejected, now: float) -> None:
        self.latest = rejected
        self.told_at = now
        self.untold = 0


def _key(rejected: Rejected) -> Hashable:
    answer = rejected.answer
    faults = tuple((fault.path, fault.problem) for fault in answer.faults)
    return answer.code, answer.reason, answer.cap, answer.rule_id, faults

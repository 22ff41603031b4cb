"""Logs refusals: the first in full, repeats as a count.

Rule: an agent at a cap or blocked by a deny rule is refused at every step; it is logged once, then at every
100th or once a minute, whichever comes first, and at the end. Two refusals are the same when the same rule,
cap or faults refused them, whatever figures their messages contain.
"""

import logging
from collections.abc import Hashable
from typing import Final

from observatory.sdk.errors import Rejected

log = logging.getLogger("observatory.sdk")
EVERY_N: Final = 100
EVERY_S: Final = 60.0
MAX_KINDS: Final = 100  # remembered; a forgotten one is logged in full again


class RefusalLog:
    """Belongs to one outbox; used by its sender thread and once more on close."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[Hashable, _Kind] = {}

    def note(self, rejected: Rejected, now: float) -> None:
        kind = self._kinds.get(key := _key(rejected))
        if kind is None:
            log.warning("%s: %s", self._name, rejected)
            self._kinds[key] = _Kind(rejected, now)
            if len(self._kinds) > MAX_KINDS:
                self._log_repeats(self._kinds.pop(next(iter(self._kinds))), now)
            return
        kind.latest, kind.unlogged = rejected, kind.unlogged + 1
        if kind.unlogged >= EVERY_N or now - kind.logged_at >= EVERY_S:
            self._log_repeats(kind, now)

    def log_rest(self, now: float) -> None:
        """Log what was counted but not logged yet."""
        for kind in list(self._kinds.values()):
            self._log_repeats(kind, now)

    def _log_repeats(self, kind: "_Kind", now: float) -> None:
        if kind.unlogged:
            log.warning("%s: %d more like it, the latest: %s", self._name, kind.unlogged, kind.latest)
        kind.unlogged, kind.logged_at = 0, now


class _Kind:
    __slots__ = ("latest", "logged_at", "unlogged")

    def __init__(self, rejected: Rejected, now: float) -> None:
        self.latest = rejected
        self.logged_at = now
        self.unlogged = 0


def _key(rejected: Rejected) -> Hashable:
    answer = rejected.answer
    faults = tuple((fault.path, fault.problem) for fault in answer.faults)
    return answer.code, answer.reason, answer.cap, answer.rule_id, faults

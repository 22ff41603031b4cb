"""The rule evaluator of one tenant: turns events and levels into findings. Pure; the worker feeds it.

Invariants: an event counts once for a rule, and only if it is newer than the rule and than the last resolve
of its subject. It is judged at its own time, so one written while no evaluator ran still fires. Subjects are
plain names. A rule has at most `MAX_OPEN` open subjects: further ones are ignored until one is resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from observatory.features.alerting.commands_findings import AlertFinding, Reason, alert_state_of
from observatory.features.alerting.state import SECOND, AlertState, Window, next_state
from observatory.features.alerting.types_readings import LevelReading, LevelReadings
from observatory.features.alerting.types_rules import KINDS, AlertRule
from observatory.protocol.clock import to_ns
from observatory.protocol.events import REFUSALS_COUNTED, SEVERITY

MAX_OPEN = 500
MAX_SUBJECTS = 10_000  # of a tenant, whose events are counted; the oldest is dropped
Key = tuple[str, str]  # rule id, subject
Row = dict[str, Any]
# Members of the causing event that the alert includes.
EVENT_FIGURES = (
    "event_type",
    "agent_id",
    "session_id",
    "occurrence_count",
    "detector",
    "budget_id",
    "spent",
    "kind",
)
# The page to link, if the subject has no page of its own.
PAGES = {
    "gate_age": "/inbox",
    "dead_letters": "/scheduler",
    "dead_letters_waiting": "/scheduler",
    "security": "/god-mode",
    "queue_depth": "/registry",
    "breaker": "/registry",
    "chain": "/forensics",
    "checkpoint_lag": "/forensics",
    "budget": "/forensics",
    "burn_rate": "/forensics",
    "certificate": "/fleet?panel=certificates",
}


NONE = LevelReading(0)


def subject_of(rule: AlertRule, body: Mapping[str, Any]) -> str | None:
    """The subject of this event for that rule; None when the rule does not watch it."""
    if rule.scope == "tenant":
        return "tenant"
    if rule.scope == "budget":
        name = f"{body.get('scope')}:{body.get('whose')}"
    elif rule.scope == "log":
        session_id = body.get("session_id")
        name = str(body.get("origin") or (f"thoughts/{session_id}" if session_id else "own"))
    else:
        name = str(body.get(f"{rule.scope}_id") or "unknown")
    return f"{rule.scope}:{name}" if rule.target in (None, name) else None


def link_of(base: str, rule: AlertRule, subject: str) -> str:
    """The page that shows what the alert is about."""
    kind, _, name = subject.partition(":")
    if kind == "session":
        return f"{base}/sessions/{quote(name, safe='')}"
    if kind == "agent":
        return f"{base}/fleet?peek=agent:{quote(name, safe='')}"
    if kind in ("capability", "cluster"):
        return f"{base}/registry"
    return base + PAGES.get(rule.condition, "/fleet")


class RuleEvaluator:
    """One tenant's rules, the state of each subject, and the findings to record."""

    def __init__(self, base: str, cursor: int = 0) -> None:
        self._base, self.cursor = base, cursor
        self.rules: dict[str, AlertRule] = {}
        self._by_event: dict[str, list[AlertRule]] = {}
        self.standings: dict[Key, AlertState] = {}
        self._cleared: dict[Key, int] = {}
        self._raised: dict[Key, int] = {}
        self._windows: dict[Key, Window] = {}
        self.found: list[AlertFinding] = []

    def restore(self, rows: Iterable[Row]) -> None:
        """The states from the stored rows; call before `obey`."""
        for row in rows:
            key = row["rule_id"], row["subject"]
            self.standings[key] = alert_state_of(row)
            self._cleared[key] = row["cleared_seq"]
            self._raised[key] = row["raised_seq"]

    def obey(self, rules: Iterable[AlertRule], gone: Mapping[str, AlertRule], now_ns: int) -> None:
        """Use these rules from now on. `gone`: removed rules by id, for what they still have open."""
        before, self.rules = self.rules, {rule.rule_id: rule for rule in rules if rule.enabled}
        for key, state in list(self.standings.items()):
            rule = self.rules.get(key[0])
            was = before.get(key[0]) or gone.get(key[0]) or rule
            changed = rule is None or self._raised.get(key, rule.since_seq) < rule.since_seq
            if changed and state.state == "firing" and was is not None:
                self._resolve(was, key, state, now_ns, "rule_changed")
            elif rule is None:
                self.standings.pop(key)
            elif changed:  # it starts over; only its last raise time is remembered, as the commands do
                self.standings[key] = AlertState(last_raised_ns=state.last_raised_ns)
                self._raised[key] = rule.since_seq
        for key in list(self._windows):
            now, then = self.rules.get(key[0]), before.get(key[0])
            if now is None or (then is not None and then.since_seq != now.since_seq):
                del self._windows[key]
        self._by_event = {}
        for rule in self.rules.values():
            for name in KINDS[rule.condition].events:
                self._by_event.setdefault(name, []).append(rule)

    def _resolve(self, rule: AlertRule, key: Key, was: AlertState, at_ns: int, reason: Reason) -> None:
        link = link_of(self._base, rule, key[1])
        self.found.append(
            AlertFinding(rule, key[1], "resolve", 0, at_ns, was.since_ns, link, None, {}, reason)
        )
        self.standings[key] = was._replace(state="ok", since_ns=0)
        self._forget(key)

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the events that the rules count."""
        return tuple(sorted({*self._by_event, REFUSALS_COUNTED})) if self._by_event else ()

    @property
    def severity_min(self) -> int:
        """The lowest severity of those events."""
        return min((SEVERITY[name] for name in self._by_event), default=0)

    @property
    def longest_s(self) -> int:
        rules = (rule for rules in self._by_event.values() for rule in rules)
        return max((rule.window_s for rule in rules), default=0)

    @property
    def is_calm(self) -> bool:
        """Whether nothing is pending or firing."""
        return not self._windows and all(one.state == "ok" for one in self.standings.values())

    @property
    def firing(self) -> int:
        return sum(one.state == "firing" for one in self.standings.values())

    def hear(self, number: int, event: Mapping[str, Any], is_new: bool = True) -> None:
        """Process one event of the trail. One that was judged before only refills the windows."""
        body = event["body"]
        if is_new:
            self.cursor = number
        # Refusals that are only counted weigh the same as individual ones.
        is_count = body["event_type"] == REFUSALS_COUNTED
        times = body["count"] if is_count else 1
        for rule in self._by_event.get(body["refused"] if is_count else body["event_type"], ()):
            subject = subject_of(rule, body)
            if subject is None:
                continue
            key = (rule.rule_id, subject)
            if number <= max(rule.since_seq, self._cleared.get(key, 0)):
                continue
            at_ns = to_ns(event["observed_timestamp"])
            window = self._window(key, rule.threshold)
            window.add(at_ns, times)
            if is_new:
                count = window.count(at_ns, rule.window_s)
                self._step(rule, subject, LevelReading(count), at_ns, number, _figures(body))

    def _window(self, key: Key, threshold: float) -> Window:
        found = self._windows.get(key)
        if found is None:
            found = self._windows[key] = Window(threshold)
            if len(self._windows) > MAX_SUBJECTS:
                del self._windows[next(iter(self._windows))]
        return found

    def tick(self, now_ns: int, calm: frozenset[str] = frozenset()) -> None:
        """Time has passed: windows have moved on. `calm`: subjects known to have recovered."""
        for key, window in list(self._windows.items()):
            rule = self.rules[key[0]]
            is_over = rule.condition == "entropy" and key[1] in calm
            count = 0 if is_over else window.count(now_ns, rule.window_s)
            if count == 0:
                self._windows.pop(key, None)
            self._step(rule, key[1], LevelReading(count), now_ns)
        for key, state in list(self.standings.items()):
            level_rule = self.rules.get(key[0])
            if level_rule is None or KINDS[level_rule.condition].is_level or key in self._windows:
                continue
            if state.state != "ok":
                self._step(level_rule, key[1], NONE, now_ns)

    def level(self, rule: AlertRule, readings: LevelReadings, now_ns: int) -> None:
        """Evaluate one rule against the current levels of all its subjects."""
        if rule.scope == "tenant":
            subjects = {"tenant"}
        elif rule.target is not None:
            subjects = {f"{rule.scope}:{rule.target}"}
        else:
            subjects = {*readings, *self.troubled(rule)}
        for subject in sorted(subjects):
            self._step(rule, subject, readings.get(subject, NONE), now_ns)

    def troubled(self, rule: AlertRule) -> list[str]:
        """Subjects of this rule that are pending or firing."""
        own = ((key, one) for key, one in self.standings.items() if key[0] == rule.rule_id)
        return [key[1] for key, one in own if one.state != "ok"]

    def prune(self, now_ns: int) -> None:
        """Forget subjects that are OK and cooled down: their stored row has the rest."""
        for key, one in list(self.standings.items()):
            rule = self.rules.get(key[0])
            cooldown_ns = 0 if rule is None else rule.cooldown_s * SECOND
            if one.state == "ok" and one.last_raised_ns + cooldown_ns <= now_ns:
                del self.standings[key]
                self._raised.pop(key, None)
                if self._cleared.get(key, 0) <= self.cursor:
                    self._cleared.pop(key, None)

    def _step(
        self,
        rule: AlertRule,
        subject: str,
        reading: LevelReading,
        at_ns: int,
        by_seq: int | None = None,
        figures: Mapping[str, str] | None = None,
    ) -> None:
        key = (rule.rule_id, subject)
        was = self.standings.get(key, AlertState())
        now, move = next_state(rule, was, reading.certain or rule.breaches(reading.value), at_ns)
        if move == "raise" and was.state != "firing" and self._open(rule) >= MAX_OPEN:
            return
        if now != was:
            self.standings[key] = now
        if move is None:
            return
        event_figures = reading.figures if figures is None else figures
        link = link_of(self._base, rule, subject)
        since_ns = was.since_ns if move == "resolve" else now.since_ns
        self.found.append(
            AlertFinding(rule, subject, move, reading.value, at_ns, since_ns, link, by_seq, event_figures)
        )
        if move == "resolve":
            self._forget(key)
        else:
            self._raised[key] = max(self._raised.get(key, 0), rule.since_seq)

    def _forget(self, key: Key) -> None:
        """What was counted before a resolve no longer counts."""
        self._windows.pop(key, None)
        self._cleared[key] = self.cursor

    def _open(self, rule: AlertRule) -> int:
        return sum(key[0] == rule.rule_id and one.state == "firing" for key, one in self.standings.items())

    def taken(self) -> list[AlertFinding]:
        """The findings so far; the list is cleared."""
        found, self.found = self.found, []
        return found


def _figures(body: Mapping[str, Any]) -> dict[str, str]:
    """Members of the causing event: names and numbers, no free text."""
    return {name: str(body[name])[:256] for name in EVENT_FIGURES if body.get(name) is not None}

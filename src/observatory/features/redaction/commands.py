"""How redaction rules are made and ended, and how long payloads are kept: acts of an admin (S440, S454).

Law: every change is a new version of the tenant's book and an event that names it. A rule that cannot mean
what it says, or could make the corridor wait, is refused with a sentence. The event holds the hash of a
pattern, never the pattern: somebody may have written the very secret there.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.features.redaction.patterns import BadPattern, cost_of
from observatory.features.redaction.places import is_kept
from observatory.features.redaction.redaction import EFFORT, steps_of
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.redaction import (
    KINDS,
    MAX_RULES,
    PAST,
    RedactionBook,
    RedactionRule,
    Retention,
    RuleType,
)

NAME: Final = "redaction"
RETENTION: Final = "retention"
# With all patterns of a tenant this much text of a message is looked through at least.
LEAST_TEXT: Final = 10_000
_WORD: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_STEP: Final = re.compile(r"\*|[A-Za-z0-9_-]{1,64}")
OURS: Final = frozenset({"unread", "many", *KINDS})


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is asked for."""

    type: RuleType
    name: str
    pattern: str | None = None
    path: str | None = None
    note: str = ""


def problem_of(wish: Wish) -> str | None:
    """Why it cannot be a rule, in one sentence; None when it can."""
    if wish.type == "builtin":
        if wish.name not in KINDS:
            return f"name: there is no such kind; there are {', '.join(KINDS)}"
        return "a builtin rule has neither pattern nor path" if wish.pattern or wish.path else None
    if not _WORD.fullmatch(wish.name) or wish.name in OURS:
        return "name: small letters, digits, _ . or -, up to 32, and none of our own kinds"
    if wish.type == "pattern":
        if wish.pattern is None or wish.path is not None:
            return "a pattern rule has a pattern and no path"
        try:
            cost_of(wish.pattern)
        except BadPattern as error:
            return f"pattern: {error}"
        return None
    if wish.path is None or wish.pattern is not None:
        return "a field rule has a path and no pattern"
    steps = steps_of(wish.path)
    if len(steps) > 16 or not all(_STEP.fullmatch(step) for step in steps):
        return "path: up to 16 names with a dot between, * for any of them, e.g. payload.options.*.label"
    if is_kept(steps) or set(steps) == {"*"}:
        return "path: ids, times, senders and words of the contract are what the record is kept by"
    return None


def add(who: Principal, wish: Wish, rule_id: str, secret: str, now_ns: int) -> Act:
    """`secret` becomes the tenant's if it has none yet."""

    def decide(desk: Desk) -> Verdict:
        problem = problem_of(wish)
        if problem is not None:
            return Verdict(422, Refused(reason="bad_rule", detail=problem))
        book = desk.memory.rulebook.redaction or RedactionBook(version=0, secret=secret)
        rules = book.in_force
        if len(rules) >= MAX_RULES:
            return Verdict(
                409, Refused(reason="too_many_rules", detail=f"a tenant has at most {MAX_RULES} rules")
            )
        asked = (wish.type, wish.name, wish.pattern, wish.path)
        if any((rule.type, rule.name, rule.pattern, rule.path) == asked for rule in rules):
            return Verdict(409, Refused(reason="exists", detail="this very rule is in force already"))
        patterns = [*(rule.pattern for rule in rules), wish.pattern]
        costs = [cost_of(pattern) for pattern in patterns if pattern is not None]
        if sum(costs) * LEAST_TEXT > EFFORT:
            detail = "with this pattern too little of a long message could be looked through; make it simpler"
            return Verdict(409, Refused(reason="too_costly", detail=detail))
        rule = RedactionRule(
            rule_id=rule_id,
            since=book.version + 1,
            created_ns=desk.now_ns,
            created_by=who.entity_id,
            **msgspec.structs.asdict(wish),
        )
        return _change(desk, who, book, (*book.rules, rule), rule, "added", 201)

    return Act(who, now_ns, decide)


def remove(who: Principal, rule_id: str, now_ns: int) -> Act:
    def decide(desk: Desk) -> Verdict:
        book = desk.memory.rulebook.redaction
        found = [rule for rule in book.in_force if rule.rule_id == rule_id] if book is not None else []
        if book is None or not found:
            return Verdict(404, Refused(reason="not_found", detail="no rule of this tenant has that id"))
        ended = msgspec.structs.replace(found[0], until=book.version + 1, ended_ns=desk.now_ns)
        rules = tuple(ended if rule.rule_id == rule_id else rule for rule in book.rules)
        return _change(desk, who, book, rules, ended, "removed", 200)

    return Act(who, now_ns, decide)


def _change(
    desk: Desk,
    who: Principal,
    book: RedactionBook,
    rules: tuple[RedactionRule, ...],
    about: RedactionRule,
    change: str,
    code: int,
) -> Verdict:
    version = book.version + 1
    # What no version within reach knew is forgotten: the book stays small.
    kept = tuple(rule for rule in rules if rule.until is None or rule.until > version - PAST)
    after = RedactionBook(version=version, secret=book.secret, rules=kept)
    memory = desk.memory
    memory.rulebook = msgspec.structs.replace(memory.rulebook, redaction=after)
    memory.tenant.rulebook_version += 1
    told: dict[str, Any] = {
        "setting": NAME,
        "change": change,
        "version": version,
        "rule_id": about.rule_id,
        "rule_type": about.type,
        "rule_name": about.name,
        "path": about.path,
        "pattern_hash": _hash(about.pattern),
    }
    summary = f"redaction rule {about.rule_id} {change}, version {version}"
    event = notice(who.tenant_id, "setting_changed", summary, desk.now_ns, who, told)
    answer = {"rule_id": about.rule_id, "version": version}
    return Verdict(code, answer, [event], [_knob(desk, who, NAME, after)])


def _hash(text: str | None) -> str | None:
    return None if text is None else "sha256:" + sha256(text.encode()).hexdigest()


def _knob(desk: Desk, who: Principal, name: str, value: msgspec.Struct) -> Write:
    values = {
        "tenant_id": who.tenant_id,
        "name": name,
        "value": msgspec.json.encode(value).decode(),
        "updated_ns": desk.now_ns,
        "updated_by": who.entity_id,
    }
    return Write("knobs", values, key=("tenant_id", "name"))


def keep_for(who: Principal, days: int | None, now_ns: int, thoughts: bool = False) -> Act:
    """From now on payloads older than so many days are shredded by the clock; None: nothing is.

    Thoughts are what a seal is made over, and go only if that is said too.
    """
    wish = Retention(days=days, thoughts=thoughts and days is not None)

    def decide(desk: Desk) -> Verdict:
        row = desk.memory.rows.get("knobs", {}).get(RETENTION)
        before = Retention() if row is None else msgspec.json.decode(row["value"], type=Retention)
        if before == wish:
            return Verdict(200, {"changed": False})
        told = {"setting": RETENTION, "before": before.days, "after": days, "thoughts": wish.thoughts}
        what = "payloads and thoughts are" if wish.thoughts else "payloads are"
        summary = f"{what} kept for ever" if days is None else f"{what} kept for {days} days"
        event = notice(who.tenant_id, "setting_changed", summary, desk.now_ns, who, told)
        return Verdict(200, {"changed": True}, [event], [_knob(desk, who, RETENTION, wish)])

    wants = Wants()
    wants.row("knobs", RETENTION)
    return Act(who, now_ns, decide, wants)

"""Admin commands for redaction rules and retention (S440, S454).

Law: every change is a new version of the tenant's rules and an event that names it. A rule that cannot have
its meaning, or could stall the pipeline, is refused with a sentence. The event has the hash of a pattern,
never the pattern, which might contain the very secret.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import msgspec

from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.redaction.patterns import BadPattern, cost_of
from observatory.pipeline.redaction.places import is_protected
from observatory.pipeline.redaction.redactor import EFFORT, steps_of
from observatory.pipeline.rows import RowWrite
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.redaction import (
    KINDS,
    MAX_PAST_VERSIONS,
    MAX_RULES,
    RedactionRule,
    RedactionRules,
    Retention,
    RuleType,
)
from observatory.protocol.responses import Refused

NAME: Final = "redaction"
RETENTION: Final = "retention"
# With all patterns of a tenant at least this much text of a message must be searchable.
LEAST_TEXT: Final = 10_000
_WORD: Final = re.compile(r"[a-z][a-z0-9_.-]{0,31}")
_STEP: Final = re.compile(r"\*|[A-Za-z0-9_-]{1,64}")
RESERVED_NAMES: Final = frozenset({"unread", "many", *KINDS})


class RedactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A requested rule."""

    type: RuleType
    name: str
    pattern: str | None = None
    path: str | None = None
    note: str = ""


def problem_of(request: RedactionRequest) -> str | None:
    """Why it cannot be a rule, in one sentence; None if it can."""
    if request.type == "builtin":
        if request.name not in KINDS:
            return f"name: unknown kind; known kinds: {', '.join(KINDS)}"
        return "a builtin rule has neither pattern nor path" if request.pattern or request.path else None
    if not _WORD.fullmatch(request.name) or request.name in RESERVED_NAMES:
        return "name: lower-case letters, digits, _ . or -, up to 32, and not a built-in kind"
    if request.type == "pattern":
        if request.pattern is None or request.path is not None:
            return "a pattern rule has a pattern and no path"
        try:
            cost_of(request.pattern)
        except BadPattern as error:
            return f"pattern: {error}"
        return None
    if request.path is None or request.pattern is not None:
        return "a field rule has a path and no pattern"
    steps = steps_of(request.path)
    if len(steps) > 16 or not all(_STEP.fullmatch(step) for step in steps):
        return "path: up to 16 names separated by dots, * for any of them, e.g. payload.options.*.label"
    if is_protected(steps) or set(steps) == {"*"}:
        return "path: ids, times, senders and enumerated values are never redacted"
    return None


def add(principal: Principal, request: RedactionRequest, rule_id: str, secret: str, now_ns: int) -> Command:
    """`secret` becomes the tenant's if it has none yet."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        problem = problem_of(request)
        if problem is not None:
            return SubmissionResult(422, Refused(reason="bad_rule", detail=problem))
        book = uow.memory.tenant_config.redaction or RedactionRules(version=0, secret=secret)
        rules = book.in_force
        if len(rules) >= MAX_RULES:
            return SubmissionResult(
                409, Refused(reason="too_many_rules", detail=f"a tenant has at most {MAX_RULES} rules")
            )
        requested = (request.type, request.name, request.pattern, request.path)
        if any((rule.type, rule.name, rule.pattern, rule.path) == requested for rule in rules):
            return SubmissionResult(
                409, Refused(reason="exists", detail="an identical rule is already in force")
            )
        patterns = [*(rule.pattern for rule in rules), request.pattern]
        costs = [cost_of(pattern) for pattern in patterns if pattern is not None]
        if sum(costs) * LEAST_TEXT > EFFORT:
            detail = "with this pattern too little of a long message could be searched; simplify it"
            return SubmissionResult(409, Refused(reason="too_costly", detail=detail))
        rule = RedactionRule(
            rule_id=rule_id,
            since=book.version + 1,
            created_ns=uow.now_ns,
            created_by=principal.entity_id,
            **msgspec.structs.asdict(request),
        )
        return _change(uow, principal, book, (*book.rules, rule), rule, "added", 201)

    return Command(principal, now_ns, decide)


def remove(principal: Principal, rule_id: str, now_ns: int) -> Command:
    def decide(uow: UnitOfWork) -> SubmissionResult:
        book = uow.memory.tenant_config.redaction
        found = [rule for rule in book.in_force if rule.rule_id == rule_id] if book is not None else []
        if book is None or not found:
            return SubmissionResult(
                404, Refused(reason="not_found", detail="no rule of this tenant has that id")
            )
        ended = msgspec.structs.replace(found[0], until=book.version + 1, ended_ns=uow.now_ns)
        rules = tuple(ended if rule.rule_id == rule_id else rule for rule in book.rules)
        return _change(uow, principal, book, rules, ended, "removed", 200)

    return Command(principal, now_ns, decide)


def _change(
    uow: UnitOfWork,
    principal: Principal,
    book: RedactionRules,
    rules: tuple[RedactionRule, ...],
    about: RedactionRule,
    change: str,
    code: int,
) -> SubmissionResult:
    version = book.version + 1
    # Rules that ended before every version still in reach are dropped, to keep the book small.
    kept = tuple(rule for rule in rules if rule.until is None or rule.until > version - MAX_PAST_VERSIONS)
    after = RedactionRules(version=version, secret=book.secret, rules=kept)
    memory = uow.memory
    memory.tenant_config = msgspec.structs.replace(memory.tenant_config, redaction=after)
    memory.tenant.rulebook_version += 1
    detail: dict[str, Any] = {
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
    event = gateway_event(principal.tenant_id, "setting_changed", summary, uow.now_ns, principal, detail)
    answer = {"rule_id": about.rule_id, "version": version}
    return SubmissionResult(code, answer, [event], [_knob(uow, principal, NAME, after)])


def _hash(text: str | None) -> str | None:
    return None if text is None else "sha256:" + sha256(text.encode()).hexdigest()


def _knob(uow: UnitOfWork, principal: Principal, name: str, value: msgspec.Struct) -> RowWrite:
    values = {
        "tenant_id": principal.tenant_id,
        "name": name,
        "value": msgspec.json.encode(value).decode(),
        "updated_ns": uow.now_ns,
        "updated_by": principal.entity_id,
    }
    return RowWrite("knobs", values, key=("tenant_id", "name"))


def set_retention(principal: Principal, days: int | None, now_ns: int, thoughts: bool = False) -> Command:
    """Payloads older than `days` are shredded automatically from now on; None: nothing is.

    Thoughts are what a seal covers, and are shredded only if that is requested too.
    """
    request = Retention(days=days, thoughts=thoughts and days is not None)

    def decide(uow: UnitOfWork) -> SubmissionResult:
        row = uow.memory.rows.get("knobs", {}).get(RETENTION)
        before = Retention() if row is None else msgspec.json.decode(row["value"], type=Retention)
        if before == request:
            return SubmissionResult(200, {"changed": False})
        detail = {"setting": RETENTION, "before": before.days, "after": days, "thoughts": request.thoughts}
        what = "payloads and thoughts are" if request.thoughts else "payloads are"
        span = f"{days} {'day' if days == 1 else 'days'}"
        summary = f"{what} kept forever" if days is None else f"{what} kept for {span}"
        event = gateway_event(principal.tenant_id, "setting_changed", summary, uow.now_ns, principal, detail)
        return SubmissionResult(200, {"changed": True}, [event], [_knob(uow, principal, RETENTION, request)])

    reads = ReadSet()
    reads.row("knobs", RETENTION)
    return Command(principal, now_ns, decide, reads)

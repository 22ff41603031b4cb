"""`/v1/redaction`, `/v1/retention` and shredding over HTTP, for admins (rules S440–S455).

Nothing here returns the secret that keys the hashes, or stores the sample of a dry run.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import commands_thoughts as thought_shredding
from observatory.features.redaction.commands import RedactionRequest, problem_of
from observatory.features.redaction.commands_shredding import Shredded
from observatory.features.redaction.types_rows import PayloadRows
from observatory.features.thoughts.queries_rows import UNKNOWN
from observatory.features.thoughts.types_rows import Thoughts
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.interceptor import intercept
from observatory.pipeline.redaction.redactor import redactor
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id, canonical_uuid, mint
from observatory.protocol.message import Message
from observatory.protocol.redaction import KINDS, RedactionRule, RedactionRules, Retention, RuleType
from observatory.protocol.responses import Refused

Reason = Annotated[
    str, msgspec.Meta(min_length=1, max_length=500, description="The reason; stored in the record.")
]


class NewRedaction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`builtin`: a built-in kind; `pattern`: a regular expression; `field`: everything at a path."""

    type: RuleType
    name: Annotated[str, msgspec.Meta(max_length=256)]
    pattern: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    path: Annotated[str, msgspec.Meta(max_length=512)] | None = None
    note: Annotated[str, msgspec.Meta(max_length=500)] = ""


class RedactionItem(msgspec.Struct, kw_only=True):
    rule_id: str
    type: RuleType
    name: str
    pattern: str | None
    path: str | None
    note: str
    since_version: int
    created_at: str
    created_by: str


class RedactionList(msgspec.Struct, kw_only=True):
    """The rules in force, their version, and the built-in kinds."""

    items: list[RedactionItem]
    next_cursor: str | None
    version: int
    kinds: dict[str, str]


class RemovedRedaction(msgspec.Struct, kw_only=True):
    rule_id: str
    removed: bool
    version: int


class RedactionTrial(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message, and the rule to test; by default the rules in force."""

    message: dict[str, Any]
    rule: NewRedaction | None = None


class TrialPlace(msgspec.Struct, kw_only=True):
    path: str
    kind: str
    times: int


class TrialAnswer(msgspec.Struct, kw_only=True):
    """The message after redaction. `fits`: whether it is still a valid message."""

    replaced: int
    places: list[TrialPlace]
    fits: bool
    message: dict[str, Any]


class RetentionBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`thoughts`: texts of thought records are shredded after that many days too."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None
    thoughts: bool = False


class RetentionAnswer(msgspec.Struct, kw_only=True):
    """How long payloads, and with `thoughts` texts of thoughts, are kept; null: forever, the default."""

    days: int | None
    thoughts: bool
    updated_at: str | None
    updated_by: str | None


class Shredding(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`confirm` repeats the id of what is to be shredded, exactly."""

    reason: Reason
    confirm: str


class MessageShredding(Shredding, kw_only=True, forbid_unknown_fields=True):
    """The id of a step contains a slash, so it is in the body, not in the path."""

    message_id: Annotated[str, msgspec.Meta(min_length=1, max_length=600)]


class ShredAnswer(Shredded, kw_only=True):
    message_id: str | None = None
    session_id: str | None = None


@get("/redaction", summary="List the redaction rules in force", operation_id="list_redaction")
async def list_redaction(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    book = await book_of(app, principal.tenant_id)
    items = [] if book is None else [_item(rule) for rule in book.in_force]
    version = 0 if book is None else book.version
    return json(RedactionList(items=items, next_cursor=None, version=version, kinds=KINDS))


@post("/redaction", summary="Add a redaction rule", operation_id="add_redaction")
async def add_redaction(request: Call, app: Here, data: JSONBody[NewRedaction]) -> Response[bytes]:
    """Effective from the next message; archived messages are not changed."""
    principal = await require_permission(request, app, "admin")
    now_ns = app.clock()
    rule_id = mint("red_", now_ns)
    command = redaction_rules.add(principal, _requested_rule(data), rule_id, secrets.token_hex(32), now_ns)
    verdict = await app.command(command)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    book = await book_of(app, principal.tenant_id)
    assert book is not None
    return json(_item(next(rule for rule in book.rules if rule.rule_id == rule_id)), 201)


@delete(
    "/redaction/{rule_id:str}",
    status_code=200,
    summary="End a redaction rule",
    operation_id="remove_redaction",
)
async def remove_redaction(request: Call, app: Here, rule_id: FromPath[str]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    verdict = await app.command(redaction_rules.remove(principal, rule_id, app.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(verdict.answer | {"removed": True})


@post(
    "/redaction/dry-run",
    status_code=200,
    summary="Test what a rule makes of a message; nothing is stored",
    operation_id="try_redaction",
)
async def try_redaction(request: Call, app: Here, data: JSONBody[RedactionTrial]) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    book = await book_of(app, principal.tenant_id)
    # A tenant without rules has no secret yet, and no hashes to compare with.
    secret = secrets.token_hex(32) if book is None else book.secret
    rules = () if book is None else book.in_force
    if data.rule is not None:
        problem = problem_of(_requested_rule(data.rule))
        if problem is not None:
            return json(Refused(reason="bad_rule", detail=problem), 422)
        tried = msgspec.structs.asdict(_requested_rule(data.rule))
        rules = (
            RedactionRule(rule_id="red_try", since=0, created_ns=0, created_by=principal.entity_id, **tried),
        )
    raw = msgspec.json.encode(data.message)
    applied = redactor(rules, secret).apply(raw)
    kept = raw if applied is None else applied.raw
    places = [] if applied is None else [TrialPlace(**one._asdict()) for one in applied.replaced]
    return json(
        TrialAnswer(
            replaced=0 if applied is None else applied.total,
            places=places,
            fits=isinstance(intercept(kept), Message),
            message=msgspec.json.decode(kept),
        )
    )


@get("/retention", summary="Get how long payloads are kept", operation_id="get_retention")
async def get_retention(request: Call, app: Here) -> Response[bytes]:
    principal = await require_permission(request, app, "admin")
    return json(await _retention(app, principal.tenant_id))


@put("/retention", summary="Set how long payloads are kept", operation_id="put_retention")
async def put_retention(request: Call, app: Here, data: JSONBody[RetentionBody]) -> Response[bytes]:
    """Older payloads are shredded automatically, within minutes. Null keeps everything."""
    principal = await require_permission(request, app, "admin")
    verdict = await app.command(
        redaction_rules.set_retention(principal, data.days, app.clock(), data.thoughts)
    )
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await _retention(app, principal.tenant_id))


@post(
    "/messages/shred",
    status_code=200,
    summary="Shred a message's bytes; its proof stays",
    operation_id="shred_message",
)
async def shred_message(request: Call, app: Here, data: JSONBody[MessageShredding]) -> Response[bytes]:
    """Thought records are not affected; use `shred_thoughts`."""
    principal = await require_permission(request, app, "admin")
    found = await app.store.message(principal.tenant_id, data.message_id)
    if found is None:
        raise Refusal(404, "not_found", "no message or step of this tenant has that id")
    _confirmed(data, data.message_id)
    command = shredding.shred(principal, [found.sequence_number], data.reason, app.clock(), found.session_id)
    verdict = await app.command(command)
    if not isinstance(verdict.answer, Shredded):
        return json(verdict.answer, verdict.code)
    shredded = msgspec.structs.asdict(verdict.answer)
    shredded["event"] = shredded["event"] or found.shredded_by
    return json(ShredAnswer(message_id=found.message_id, session_id=found.session_id, **shredded))


@post(
    "/sessions/{session_id:str}/shred",
    status_code=200,
    summary="Shred the bytes of a session's messages; their proofs stay",
    operation_id="shred_session",
)
async def shred_session(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Shredding]
) -> Response[bytes]:
    """In orders of 500; the response is sent after the last. Messages held for review are skipped, and so are
    the session's thought records: use `shred_thoughts`."""
    principal = await require_permission(request, app, "admin")
    named = canonical_uuid(session_id) or session_id
    rows = await app.store.rows(principal.tenant_id, "sessions", session_id=named)
    if not rows or rows[0]["session_no"] == 0:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    _confirmed(data, session_id)
    assert isinstance(app.store, PayloadRows)
    done, after = ShredAnswer(shredded=0, session_id=named), 0
    while left := await app.store.unshredded_payloads(
        principal.tenant_id, after, shredding.AT_ONCE, rows[0]["session_no"]
    ):
        numbers = [number for number, _ in left]
        after = numbers[-1]
        verdict = await app.command(shredding.shred(principal, numbers, data.reason, app.clock(), named))
        if isinstance(verdict.answer, Shredded):
            done.shredded += verdict.answer.shredded
            done.event = verdict.answer.event or done.event
        elif verdict.code != 409:  # held since it was read
            return json(verdict.answer, verdict.code)
    done.held = int((await app.store.rows(principal.tenant_id, "sessions", session_id=named))[0]["held"])
    return json(done)


@post(
    "/sessions/{session_id:str}/thoughts/shred",
    status_code=200,
    summary="Shred the texts of a session's thoughts; chain, seal and proofs stay",
    operation_id="shred_thoughts",
)
async def shred_thoughts(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Shredding]
) -> Response[bytes]:
    """All records and the intent, in orders of 100; records that a running session adds later are kept."""
    principal = await require_permission(request, app, "admin")
    named = canonical_id(session_id)
    rows = await app.store.rows(principal.tenant_id, "thought_sessions", session_id=named)
    if not rows:
        raise Refusal(404, "not_found", UNKNOWN)
    _confirmed(data, session_id)
    store, done, after = app.store, ShredAnswer(shredded=0, session_id=named), 0
    assert isinstance(store, Thoughts)
    while True:
        left = await store.thoughts_left(principal.tenant_id, after, thought_shredding.AT_ONCE, named)
        names = [one.record_id for one in left]
        command = thought_shredding.shred(principal, named, names, after == 0, data.reason, app.clock())
        verdict = await app.command(command)
        if not isinstance(verdict.answer, Shredded):
            return json(verdict.answer, verdict.code)
        done.shredded += verdict.answer.shredded
        done.event = verdict.answer.event or done.event
        if len(left) < thought_shredding.AT_ONCE:
            return json(done)
        after = left[-1].sequence_number


def _confirmed(data: Shredding, named: str) -> None:
    if data.confirm != named:
        detail = "shredding cannot be undone: repeat the id in confirm, exactly"
        raise Refusal(409, "not_confirmed", detail)


async def book_of(app: AppState, tenant_id: str) -> RedactionRules | None:
    rows = await app.store.rows(tenant_id, "knobs", name=redaction_rules.NAME)
    return msgspec.json.decode(rows[0]["value"], type=RedactionRules) if rows else None


async def _retention(app: AppState, tenant_id: str) -> RetentionAnswer:
    rows = await app.store.rows(tenant_id, "knobs", name=redaction_rules.RETENTION)
    if not rows:
        return RetentionAnswer(days=None, thoughts=False, updated_at=None, updated_by=None)
    known = msgspec.json.decode(rows[0]["value"], type=Retention)
    return RetentionAnswer(
        days=known.days,
        thoughts=known.thoughts,
        updated_at=from_ns(rows[0]["updated_ns"]),
        updated_by=rows[0]["updated_by"],
    )


def _requested_rule(data: NewRedaction) -> RedactionRequest:
    return RedactionRequest(**msgspec.structs.asdict(data))


def _item(rule: RedactionRule) -> RedactionItem:
    return RedactionItem(
        rule_id=rule.rule_id,
        type=rule.type,
        name=rule.name,
        pattern=rule.pattern,
        path=rule.path,
        note=rule.note,
        since_version=rule.since,
        created_at=from_ns(rule.created_ns),
        created_by=rule.created_by,
    )


redaction_router = Router(
    path="/v1",
    route_handlers=[
        list_redaction,
        add_redaction,
        remove_redaction,
        try_redaction,
        get_retention,
        put_retention,
        shred_message,
        shred_session,
        shred_thoughts,
    ],
    tags=["Redaction and retention"],
)
REDACTION_ANSWERS: dict[str, Any] = {
    "list_redaction": RedactionList,
    "add_redaction": RedactionItem,
    "remove_redaction": RemovedRedaction,
    "try_redaction": TrialAnswer,
    "get_retention": RetentionAnswer,
    "put_retention": RetentionAnswer,
    "shred_message": ShredAnswer,
    "shred_session": ShredAnswer,
    "shred_thoughts": ShredAnswer,
}

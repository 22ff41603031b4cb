"""`/v1/redaction`, `/v1/retention` and the orders to shred: an admin's doors (rules S440–S455).

Nothing here serves the secret the hashes are keyed with, nor keeps the sample of a dry run.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, post, put
from litestar.params import FromPath, JSONBody

from observatory.features.redaction import commands as redaction_rules
from observatory.features.redaction import commands_shredding as shredding
from observatory.features.redaction import commands_thoughts as forgetting
from observatory.features.redaction.commands import Wish, problem_of
from observatory.features.redaction.commands_shredding import Shredded
from observatory.features.redaction.redaction import redactor
from observatory.features.redaction.types_rows import PayloadRows
from observatory.features.thoughts.rows import UNKNOWN
from observatory.features.thoughts.types_rows import Thoughts
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.interceptor import intercept
from observatory.protocol.answers import Refused
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import canonical_id, canonical_uuid, mint
from observatory.protocol.message import Message
from observatory.protocol.redaction import KINDS, RedactionBook, RedactionRule, Retention, RuleType

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=500, description="Why; it is on record.")]


class NewRedaction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`builtin`: a kind of ours; `pattern`: a regular expression; `field`: everything at a path."""

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
    """The rules in force, the version they make up, and the kinds there are."""

    items: list[RedactionItem]
    next_cursor: str | None
    version: int
    kinds: dict[str, str]


class RemovedRedaction(msgspec.Struct, kw_only=True):
    rule_id: str
    removed: bool
    version: int


class Trial(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message, and the rule to try; without one, the rules in force."""

    message: dict[str, Any]
    rule: NewRedaction | None = None


class TrialPlace(msgspec.Struct, kw_only=True):
    path: str
    kind: str
    times: int


class TrialAnswer(msgspec.Struct, kw_only=True):
    """What would be kept. `fits`: whether that is a message the gateway takes."""

    replaced: int
    places: list[TrialPlace]
    fits: bool
    message: dict[str, Any]


class RetentionBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`thoughts`: the words of thought records go after so many days too."""

    days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None
    thoughts: bool = False


class RetentionAnswer(msgspec.Struct, kw_only=True):
    """How long payloads, and with `thoughts` words of thoughts, are kept; null: for ever, the default."""

    days: int | None
    thoughts: bool
    updated_at: str | None
    updated_by: str | None


class Shredding(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`confirm` names again what is to go, word for word."""

    reason: Reason
    confirm: str


class MessageShredding(Shredding, kw_only=True, forbid_unknown_fields=True):
    """The name of a step holds a slash: it stands in the body, not in the path."""

    message_id: Annotated[str, msgspec.Meta(min_length=1, max_length=600)]


class ShredAnswer(Shredded, kw_only=True):
    message_id: str | None = None
    session_id: str | None = None


@get("/redaction", summary="The redaction rules in force", operation_id="list_redaction")
async def list_redaction(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "admin")
    book = await book_of(house, who.tenant_id)
    items = [] if book is None else [_item(rule) for rule in book.in_force]
    version = 0 if book is None else book.version
    return json(RedactionList(items=items, next_cursor=None, version=version, kinds=KINDS))


@post("/redaction", summary="Add a redaction rule", operation_id="add_redaction")
async def add_redaction(request: Call, house: Here, data: JSONBody[NewRedaction]) -> Response[bytes]:
    """It counts for the next message; what is archived already stays as it is."""
    who = await need(request, house, "admin")
    now_ns = house.clock()
    rule_id = mint("red_", now_ns)
    act = redaction_rules.add(who, _wish(data), rule_id, secrets.token_hex(32), now_ns)
    verdict = await house.command(act)
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    book = await book_of(house, who.tenant_id)
    assert book is not None
    return json(_item(next(rule for rule in book.rules if rule.rule_id == rule_id)), 201)


@delete(
    "/redaction/{rule_id:str}",
    status_code=200,
    summary="End a redaction rule",
    operation_id="remove_redaction",
)
async def remove_redaction(request: Call, house: Here, rule_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "admin")
    verdict = await house.command(redaction_rules.remove(who, rule_id, house.clock()))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(verdict.answer | {"removed": True})


@post(
    "/redaction/dry-run",
    status_code=200,
    summary="What a rule would make of a message; nothing is kept",
    operation_id="try_redaction",
)
async def try_redaction(request: Call, house: Here, data: JSONBody[Trial]) -> Response[bytes]:
    who = await need(request, house, "admin")
    book = await book_of(house, who.tenant_id)
    # Without a book of its own the tenant has no hashes to compare with.
    secret = secrets.token_hex(32) if book is None else book.secret
    rules = () if book is None else book.in_force
    if data.rule is not None:
        problem = problem_of(_wish(data.rule))
        if problem is not None:
            return json(Refused(reason="bad_rule", detail=problem), 422)
        tried = msgspec.structs.asdict(_wish(data.rule))
        rules = (RedactionRule(rule_id="red_try", since=0, created_ns=0, created_by=who.entity_id, **tried),)
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


@get("/retention", summary="How long payloads are kept", operation_id="get_retention")
async def get_retention(request: Call, house: Here) -> Response[bytes]:
    who = await need(request, house, "admin")
    return json(await _retention(house, who.tenant_id))


@put("/retention", summary="Keep payloads for so many days", operation_id="put_retention")
async def put_retention(request: Call, house: Here, data: JSONBody[RetentionBody]) -> Response[bytes]:
    """What is older is shredded by the clock, within minutes. Null keeps everything."""
    who = await need(request, house, "admin")
    verdict = await house.command(redaction_rules.keep_for(who, data.days, house.clock(), data.thoughts))
    if verdict.code >= 400:
        return json(verdict.answer, verdict.code)
    return json(await _retention(house, who.tenant_id))


@post(
    "/messages/shred",
    status_code=200,
    summary="Shred a message's bytes; its proof stands",
    operation_id="shred_message",
)
async def shred_message(request: Call, house: Here, data: JSONBody[MessageShredding]) -> Response[bytes]:
    """Thought records stay: `shred_thoughts` is for them."""
    who = await need(request, house, "admin")
    found = await house.store.message(who.tenant_id, data.message_id)
    if found is None:
        raise Refusal(404, "not_found", "no message or step of this tenant has that id")
    _confirmed(data, data.message_id)
    act = shredding.shred(who, [found.sequence_number], data.reason, house.clock(), found.session_id)
    verdict = await house.command(act)
    if not isinstance(verdict.answer, Shredded):
        return json(verdict.answer, verdict.code)
    told = msgspec.structs.asdict(verdict.answer)
    told["event"] = told["event"] or found.shredded_by
    return json(ShredAnswer(message_id=found.message_id, session_id=found.session_id, **told))


@post(
    "/sessions/{session_id:str}/shred",
    status_code=200,
    summary="Shred the bytes of a session's messages; their proofs stand",
    operation_id="shred_session",
)
async def shred_session(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Shredding]
) -> Response[bytes]:
    """In orders of 500; whoever asked waits for the last. What is held for a person stays, and so do thought
    records of that session: `shred_thoughts` is for them."""
    who = await need(request, house, "admin")
    named = canonical_uuid(session_id) or session_id
    rows = await house.store.rows(who.tenant_id, "sessions", session_id=named)
    if not rows or rows[0]["session_no"] == 0:
        raise Refusal(404, "not_found", "no session of this tenant has that id")
    _confirmed(data, session_id)
    assert isinstance(house.store, PayloadRows)
    done, after = ShredAnswer(shredded=0, session_id=named), 0
    while left := await house.store.payloads_left(
        who.tenant_id, after, shredding.AT_ONCE, rows[0]["session_no"]
    ):
        numbers = [number for number, _ in left]
        after = numbers[-1]
        verdict = await house.command(shredding.shred(who, numbers, data.reason, house.clock(), named))
        if isinstance(verdict.answer, Shredded):
            done.shredded += verdict.answer.shredded
            done.event = verdict.answer.event or done.event
        elif verdict.code != 409:  # held since it was looked at
            return json(verdict.answer, verdict.code)
    done.held = int((await house.store.rows(who.tenant_id, "sessions", session_id=named))[0]["held"])
    return json(done)


@post(
    "/sessions/{session_id:str}/thoughts/shred",
    status_code=200,
    summary="Shred the words of a session's thoughts; chain, seal and proofs stand",
    operation_id="shred_thoughts",
)
async def shred_thoughts(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Shredding]
) -> Response[bytes]:
    """Every record and the intent, in orders of 100; a session that goes on keeps what is said later."""
    who = await need(request, house, "admin")
    named = canonical_id(session_id)
    rows = await house.store.rows(who.tenant_id, "thought_sessions", session_id=named)
    if not rows:
        raise Refusal(404, "not_found", UNKNOWN)
    _confirmed(data, session_id)
    store, done, after = house.store, ShredAnswer(shredded=0, session_id=named), 0
    assert isinstance(store, Thoughts)
    while True:
        left = await store.thoughts_left(who.tenant_id, after, forgetting.AT_ONCE, named)
        names = [one.record_id for one in left]
        act = forgetting.shred(who, named, names, after == 0, data.reason, house.clock())
        verdict = await house.command(act)
        if not isinstance(verdict.answer, Shredded):
            return json(verdict.answer, verdict.code)
        done.shredded += verdict.answer.shredded
        done.event = verdict.answer.event or done.event
        if len(left) < forgetting.AT_ONCE:
            return json(done)
        after = left[-1].sequence_number


def _confirmed(data: Shredding, named: str) -> None:
    if data.confirm != named:
        detail = "shredding cannot be undone: name again in confirm what is to go, word for word"
        raise Refusal(409, "not_confirmed", detail)


async def book_of(house: House, tenant_id: str) -> RedactionBook | None:
    rows = await house.store.rows(tenant_id, "knobs", name=redaction_rules.NAME)
    return msgspec.json.decode(rows[0]["value"], type=RedactionBook) if rows else None


async def _retention(house: House, tenant_id: str) -> RetentionAnswer:
    rows = await house.store.rows(tenant_id, "knobs", name=redaction_rules.RETENTION)
    if not rows:
        return RetentionAnswer(days=None, thoughts=False, updated_at=None, updated_by=None)
    known = msgspec.json.decode(rows[0]["value"], type=Retention)
    return RetentionAnswer(
        days=known.days,
        thoughts=known.thoughts,
        updated_at=from_ns(rows[0]["updated_ns"]),
        updated_by=rows[0]["updated_by"],
    )


def _wish(data: NewRedaction) -> Wish:
    return Wish(**msgspec.structs.asdict(data))


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

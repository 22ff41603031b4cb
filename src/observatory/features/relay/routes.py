"""HTTP routes of interventions: pause, unpause, rewrite, inject, cancel, answers at a gate, undo.

Each command passes the pipeline once; the response is the new state. A rewrite is validated here as any
message is: what breaks the schema is answered 422 and the original stays held (ruling 24).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, post
from litestar.params import FromPath, JSONBody

from observatory.features.relay import commands as interventions
from observatory.features.relay import commands_gates as gates
from observatory.features.relay import commands_undo as reversal
from observatory.features.relay import release
from observatory.features.relay.rewrite import with_ids_of
from observatory.features.relay.types import Commanded, Note
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.interceptor import MessageLimits, NotJson, SchemaViolation, TooLarge, intercept
from observatory.pipeline.ports import StoredMessage
from observatory.pipeline.state import Command, Principal, SubmissionResult
from observatory.protocol.clock import from_ns
from observatory.protocol.commands import Prompt
from observatory.protocol.identity import agent_entity_id, canonical_uuid
from observatory.protocol.message import Message
from observatory.protocol.responses import Fault, Refused, Rejected
from observatory.protocol.rules import Name

Digest = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(sha256:)?[0-9a-f]{64}$(?!\n)",
        extra={"expects": "a SHA-256 in 64 hex digits, with or without the prefix sha256:"},
    ),
]


class OnAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A command for one agent in the session."""

    agent_id: Name
    note: Note | None = None
    # Apply even if the agent has sent nothing in the session yet.
    force: bool = False


class Injection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    agent_id: Name
    prompt: Prompt
    force: bool = False


class Rewriting(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    agent_id: Name
    original_message_id: Name
    new_content: dict[str, Any]


class AtGate(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`digest` is that of the message you read: with it, a change since then is refused."""

    agent_id: Name
    # Needed when more than one gate of this agent is open in the session.
    message_id: Name | None = None
    digest: Digest | None = None
    note: Note | None = None


class Editing(AtGate, kw_only=True, forbid_unknown_fields=True):
    new_content: dict[str, Any]


@post("/sessions/{session_id:str}/pause", status_code=202, operation_id="pause", summary="Pause an agent")
async def pause(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return await _do(
        app,
        interventions.pause(who, canonical(session_id), data.agent_id, data.note, app.clock(), data.force),
    )


@post(
    "/sessions/{session_id:str}/unpause", status_code=200, operation_id="unpause", summary="Resume an agent"
)
async def unpause(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    act = interventions.unpause(who, canonical(session_id), data.agent_id, data.note, app.clock())
    return await _do(app, act, who, canonical(session_id))


@post("/sessions/{session_id:str}/inject", status_code=202, operation_id="inject", summary="Prompt an agent")
async def inject(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Injection]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return await _do(
        app,
        interventions.inject(who, canonical(session_id), data.agent_id, data.prompt, app.clock(), data.force),
    )


@post("/sessions/{session_id:str}/cancel", status_code=202, operation_id="cancel", summary="Cancel its work")
async def cancel(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    return await _do(
        app,
        interventions.cancel(who, canonical(session_id), data.agent_id, data.note, app.clock(), data.force),
    )


@post(
    "/sessions/{session_id:str}/rewrite",
    status_code=200,
    operation_id="rewrite",
    summary="Replace the content of a held message",
)
async def rewrite(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Rewriting]
) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    session = canonical(session_id)
    original = await _archived(app, who, session, data.original_message_id)
    message = _new_content(app, original, data.new_content)
    act = interventions.rewrite(who, session, data.agent_id, original.sequence_number, message, app.clock())
    return await _do(app, act, message_id=original.message_id)


@post("/sessions/{session_id:str}/approve", status_code=200, operation_id="approve", summary="Approve it")
async def approve(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[AtGate]
) -> Response[bytes]:
    return await _answer(request, app, session_id, data, gates.approve)


@post("/sessions/{session_id:str}/edit", status_code=200, operation_id="edit", summary="Edit and approve it")
async def edit(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[Editing]
) -> Response[bytes]:
    return await _answer(request, app, session_id, data, gates.edit)


@post("/sessions/{session_id:str}/reject", status_code=200, operation_id="reject", summary="Reject it")
async def reject(
    request: Call, app: Here, session_id: FromPath[str], data: JSONBody[AtGate]
) -> Response[bytes]:
    return await _answer(request, app, session_id, data, gates.reject_message)


@post(
    "/interventions/{intervention_id:str}/undo",
    status_code=200,
    operation_id="undo",
    summary="Undo a command",
)
async def undo(request: Call, app: Here, intervention_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    rows = await app.store.rows(who.tenant_id, "interventions", intervention_id=intervention_id)
    if not rows:
        raise Refusal(404, "not_found", "no command of this tenant has that id")
    (session,) = await app.store.rows(who.tenant_id, "sessions", session_no=rows[0]["session_no"])
    (agent,) = await app.store.rows(who.tenant_id, "agents", agent_no=rows[0]["agent_no"])
    act = reversal.undo(who, rows[0], session["session_id"], agent, app.clock())
    if isinstance(act, SubmissionResult):
        return json(act.answer, act.code)
    return await _do(app, act, who, session["session_id"])


async def _answer(
    request: Call, app: AppState, session_id: str, data: AtGate, answer: Callable[..., Command]
) -> Response[bytes]:
    """Only a person answers a gate: a key without a user cannot."""
    who = await require_permission(request, app, "approve")
    if who.user_id is None:
        raise Refusal(403, "not_a_person", "only a key of a user can answer a gate; this one has no user")
    session = canonical(session_id)
    held = await _at_gate(app, who, session, data)
    content = [_new_content(app, held, data.new_content)] if isinstance(data, Editing) else []
    position = (session, data.agent_id, held.sequence_number, data.digest)
    act = answer(who, *position, *content, data.note, app.clock())
    return await _do(app, act, who, session, held.message_id)


async def _do(
    app: AppState,
    act: Command,
    who: Principal | None = None,
    session_id: str = "",
    message_id: str | None = None,
) -> Response[bytes]:
    verdict = await app.command(act)
    answer = verdict.answer
    if isinstance(answer, Refused) and answer.reason == "not_held" and message_id is not None:
        raise await _why_not_held(app, act.principal, message_id)
    if isinstance(answer, Commanded) and who is not None:
        await drain_all(app, who, session_id, answer)
    return json(answer, verdict.code)


async def drain_all(app: AppState, who: Principal, session_id: str, answer: Commanded) -> None:
    """Release a long queue in several transactions; the caller waits for the last."""
    while answer.remaining:
        more = (await app.command(release.drain(who, session_id, app.clock()))).answer
        if not isinstance(more, release.ReleaseResult) or not more.released:
            break
        answer.released, answer.remaining = (answer.released or 0) + more.released, more.remaining


async def _why_not_held(app: AppState, who: Principal, message_id: str) -> Refusal:
    rows = await app.store.rows(who.tenant_id, "holds", message_id=message_id)
    if not rows:
        return Refusal(409, "not_held", "this message is not held: it was forwarded on arrival")
    if rows[0]["state"] == "held":
        return Refusal(409, "not_held", "no held message of this agent has that id in this session")
    when = from_ns(rows[0]["ended_ns"])
    detail = f"this message was already {rows[0]['state']} by {rows[0]['ended_by']} at {when}"
    return Refusal(409, "already_decided", detail)


async def _archived(app: AppState, who: Principal, session_id: str, id_text: str) -> StoredMessage:
    """The message of this session with this id; a bare step id is tried too."""
    for text in (id_text, f"{session_id}/{id_text}"):
        stored = await app.store.message(who.tenant_id, text)
        if stored is not None and stored.session_id == session_id:
            return stored
    raise Refusal(404, "not_found", "no message or step of this session has that id")


async def _at_gate(app: AppState, who: Principal, session_id: str, data: AtGate) -> StoredMessage:
    if data.message_id is not None:
        return await _archived(app, who, session_id, data.message_id)
    sessions = await app.store.rows(who.tenant_id, "sessions", session_id=session_id)
    entity_id = agent_entity_id(who.tenant_id, data.agent_id)
    agents = await app.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not sessions or not agents:
        raise Refusal(404, "not_found", "no such session, or no such agent, in this tenant")
    where = {"session_no": sessions[0]["session_no"], "agent_no": agents[0]["agent_no"], "state": "held"}
    holds = await app.store.rows(who.tenant_id, "holds", gate=1, **where)
    if len(holds) != 1:
        count = f"{len(holds)} gates" if holds else "no gate"
        detail = (
            f"{count} of this agent {'are' if holds else 'is'} open in this session; name one with message_id"
        )
        raise Refusal(409, "ambiguous" if holds else "not_held", detail)
    return await _archived(app, who, session_id, holds[0]["message_id"])


def _new_content(app: AppState, original: StoredMessage, content: dict[str, Any]) -> Message:
    if original.raw is None:
        raise Refusal(410, "shredded", "the bytes of this message were shredded by order")
    raw = with_ids_of(original.raw, content, original.step_id, original.session_id)
    message = intercept(raw, MessageLimits(app.settings.message_bytes, needs_intent=True))
    if isinstance(message, SchemaViolation):
        raise InvalidRewrite(message.faults)
    if isinstance(message, NotJson | TooLarge):
        raise InvalidRewrite((Fault("", "the new content is too large, or not JSON"),))
    if message.message_type != original.message_type:
        raise InvalidRewrite((Fault("message_type", "must stay the original's"),))
    return message


class InvalidRewrite(Refusal):
    """New content that breaks the schema; the original stays held."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__(422, "schema_violation", "the new content breaks the schema; nothing was changed")
        self.answer = Rejected(reason="schema_violation", faults=faults)


def canonical(text: str) -> str:
    return canonical_uuid(text) or text


relay = Router(
    path="/v1",
    route_handlers=[
        pause,
        unpause,
        rewrite,
        inject,
        cancel,
        approve,
        edit,
        reject,
        undo,
    ],
    tags=["Session Cluster Manager"],
)

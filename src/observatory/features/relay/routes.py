"""The operator's hand: pause, unpause, rewrite, inject, cancel; the answers at a gate; undo; what is held.

Each command is one act through the corridor; the answer is the new state. A rewrite is checked at this
door as any message is: what breaks the schema is answered 422 and the original stays held (ruling 24).
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
from observatory.features.relay.commands import Commanded
from observatory.features.relay.rewrite import with_ids_of
from observatory.http.answers import Refusal, json
from observatory.http.app_state import Call, Here, House
from observatory.http.permissions import need
from observatory.pipeline.interceptor import Limits, NotJson, TooLarge, Violation, intercept
from observatory.pipeline.ports import StoredMessage
from observatory.pipeline.state import Act, Principal, Verdict
from observatory.protocol.answers import Fault, Refused, Rejected
from observatory.protocol.clock import from_ns
from observatory.protocol.commands import Prompt
from observatory.protocol.identity import agent_entity_id, canonical_uuid
from observatory.protocol.message import Message
from observatory.protocol.rules import Name

Note = Annotated[str, msgspec.Meta(max_length=4_000)]
Digest = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(sha256:)?[0-9a-f]{64}$(?!\n)",
        extra={"expects": "a SHA-256 in 64 hex digits, with or without sha256: before it"},
    ),
]


class OnAgent(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A command for one agent in the session."""

    agent_id: Name
    note: Note | None = None
    # Also when the agent has said nothing in the session yet.
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
    """`digest` is that of the message as you saw it; with it, a change since is noticed."""

    agent_id: Name
    # Needed when more than one gate of this agent is open in the session.
    message_id: Name | None = None
    digest: Digest | None = None
    note: Note | None = None


class Editing(AtGate, kw_only=True, forbid_unknown_fields=True):
    new_content: dict[str, Any]


@post("/sessions/{session_id:str}/pause", status_code=202, operation_id="pause", summary="Hold an agent")
async def pause(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    return await _do(
        house,
        interventions.pause(who, canonical(session_id), data.agent_id, data.note, house.clock(), data.force),
    )


@post("/sessions/{session_id:str}/unpause", status_code=200, operation_id="unpause", summary="Let it go on")
async def unpause(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    act = interventions.unpause(who, canonical(session_id), data.agent_id, data.note, house.clock())
    return await _do(house, act, who, canonical(session_id))


@post("/sessions/{session_id:str}/inject", status_code=202, operation_id="inject", summary="Prompt an agent")
async def inject(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Injection]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    return await _do(
        house,
        interventions.inject(
            who, canonical(session_id), data.agent_id, data.prompt, house.clock(), data.force
        ),
    )


@post("/sessions/{session_id:str}/cancel", status_code=202, operation_id="cancel", summary="Stop an agent")
async def cancel(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[OnAgent]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    return await _do(
        house,
        interventions.cancel(who, canonical(session_id), data.agent_id, data.note, house.clock(), data.force),
    )


@post(
    "/sessions/{session_id:str}/rewrite",
    status_code=200,
    operation_id="rewrite",
    summary="Put new content in the place of a held message",
)
async def rewrite(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Rewriting]
) -> Response[bytes]:
    who = await need(request, house, "operate")
    session = canonical(session_id)
    original = await _archived(house, who, session, data.original_message_id)
    message = _new_content(house, original, data.new_content)
    act = interventions.rewrite(who, session, data.agent_id, original.sequence_number, message, house.clock())
    return await _do(house, act, message_id=original.message_id)


@post("/sessions/{session_id:str}/approve", status_code=200, operation_id="approve", summary="Let it pass")
async def approve(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[AtGate]
) -> Response[bytes]:
    return await _answer(request, house, session_id, data, gates.approve)


@post("/sessions/{session_id:str}/edit", status_code=200, operation_id="edit", summary="Change it, then pass")
async def edit(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[Editing]
) -> Response[bytes]:
    return await _answer(request, house, session_id, data, gates.edit)


@post("/sessions/{session_id:str}/reject", status_code=200, operation_id="reject", summary="Never forward it")
async def reject(
    request: Call, house: Here, session_id: FromPath[str], data: JSONBody[AtGate]
) -> Response[bytes]:
    return await _answer(request, house, session_id, data, gates.refuse)


@post(
    "/interventions/{intervention_id:str}/undo",
    status_code=200,
    operation_id="undo",
    summary="Take a command back",
)
async def undo(request: Call, house: Here, intervention_id: FromPath[str]) -> Response[bytes]:
    who = await need(request, house, "operate")
    rows = await house.store.rows(who.tenant_id, "interventions", intervention_id=intervention_id)
    if not rows:
        raise Refusal(404, "not_found", "no command of this tenant has that id")
    (session,) = await house.store.rows(who.tenant_id, "sessions", session_no=rows[0]["session_no"])
    (agent,) = await house.store.rows(who.tenant_id, "agents", agent_no=rows[0]["agent_no"])
    act = reversal.undo(who, rows[0], session["session_id"], agent, house.clock())
    if isinstance(act, Verdict):
        return json(act.answer, act.code)
    return await _do(house, act, who, session["session_id"])


async def _answer(
    request: Call, house: House, session_id: str, data: AtGate, answer: Callable[..., Act]
) -> Response[bytes]:
    """An answer at a gate is a person's: a key that stands for nobody cannot give it."""
    who = await need(request, house, "approve")
    if who.user_id is None:
        raise Refusal(403, "not_a_person", "only a key of a user can answer a gate; this one has no user")
    session = canonical(session_id)
    held = await _at_gate(house, who, session, data)
    content = [_new_content(house, held, data.new_content)] if isinstance(data, Editing) else []
    at = (session, data.agent_id, held.sequence_number, data.digest)
    act = answer(who, *at, *content, data.note, house.clock())
    return await _do(house, act, who, session, held.message_id)


async def _do(
    house: House,
    act: Act,
    who: Principal | None = None,
    session_id: str = "",
    message_id: str | None = None,
) -> Response[bytes]:
    verdict = await house.command(act)
    answer = verdict.answer
    if isinstance(answer, Refused) and answer.reason == "not_held" and message_id is not None:
        raise await _why_not_held(house, act.principal, message_id)
    if isinstance(answer, Commanded) and who is not None:
        await drained(house, who, session_id, answer)
    return json(answer, verdict.code)


async def drained(house: House, who: Principal, session_id: str, answer: Commanded) -> None:
    """A long line goes in several transactions; whoever asked waits for the last."""
    while answer.remaining:
        more = (await house.command(release.drain(who, session_id, house.clock()))).answer
        if not isinstance(more, release.Drained) or not more.released:
            break
        answer.released, answer.remaining = (answer.released or 0) + more.released, more.remaining


async def _why_not_held(house: House, who: Principal, message_id: str) -> Refusal:
    rows = await house.store.rows(who.tenant_id, "holds", message_id=message_id)
    if not rows:
        return Refusal(409, "not_held", "this message is not held: it was forwarded when it came")
    if rows[0]["state"] == "held":
        return Refusal(409, "not_held", "no message of this agent is held under that id in this session")
    when = from_ns(rows[0]["ended_ns"])
    detail = f"this message was {rows[0]['state']} already, by {rows[0]['ended_by']} at {when}"
    return Refusal(409, "already_decided", detail)


async def _archived(house: House, who: Principal, session_id: str, id_text: str) -> StoredMessage:
    """The message meant, in this session; a bare step id is looked for there too."""
    for text in (id_text, f"{session_id}/{id_text}"):
        found = await house.store.message(who.tenant_id, text)
        if found is not None and found.session_id == session_id:
            return found
    raise Refusal(404, "not_found", "no message or step of this session has that id")


async def _at_gate(house: House, who: Principal, session_id: str, data: AtGate) -> StoredMessage:
    if data.message_id is not None:
        return await _archived(house, who, session_id, data.message_id)
    sessions = await house.store.rows(who.tenant_id, "sessions", session_id=session_id)
    entity_id = agent_entity_id(who.tenant_id, data.agent_id)
    agents = await house.store.rows(who.tenant_id, "agents", entity_id=entity_id)
    if not sessions or not agents:
        raise Refusal(404, "not_found", "no such session, or no such agent, in this tenant")
    where = {"session_no": sessions[0]["session_no"], "agent_no": agents[0]["agent_no"], "state": "held"}
    found = await house.store.rows(who.tenant_id, "holds", gate=1, **where)
    if len(found) != 1:
        detail = f"{len(found)} gates of this agent are open in this session; name one with message_id"
        raise Refusal(409, "ambiguous" if found else "not_held", detail)
    return await _archived(house, who, session_id, found[0]["message_id"])


def _new_content(house: House, original: StoredMessage, content: dict[str, Any]) -> Message:
    if original.raw is None:
        raise Refusal(410, "shredded", "the bytes of this message were shredded by order")
    raw = with_ids_of(original.raw, content, original.step_id, original.session_id)
    found = intercept(raw, Limits(house.settings.message_bytes, needs_intent=True))
    if isinstance(found, Violation):
        raise Unfit(found.faults)
    if isinstance(found, NotJson | TooLarge):
        raise Unfit((Fault("", "the new content is too large, or not JSON"),))
    if found.message_type != original.message_type:
        raise Unfit((Fault("message_type", "must stay the original's"),))
    return found


class Unfit(Refusal):
    """New content that is no message; the original stays held."""

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

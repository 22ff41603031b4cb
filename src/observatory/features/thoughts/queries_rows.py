"""Authors of thoughts, and the rows of the decision trail that commands read and change under the lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from observatory.ledger.thoughts import Thought, ThoughtHashes
from observatory.pipeline.event_writer import gateway_event
from observatory.pipeline.state import Command, EventDraft, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.responses import Refused
from observatory.protocol.thoughts import address_of

Row = dict[str, Any]
_HOMES: Final = UUID("b6f2a1de-8d1c-4c2e-9a57-5b0f4f6f6d11")  # namespace of sessions opened by records
UNKNOWN: Final = "no thought session of this tenant has that id"
# Events that make up a session: verification finds them by the session's address and counts them.
SESSION_EVENTS: Final = frozenset(
    {"thought_session_started", "thought_recorded", "thought_session_sealed", "thought_session_ended"}
)


class ThoughtAuthor(NamedTuple):
    """The caller of a session, the author of a record."""

    who: Principal
    agent_id: str | None = None  # the agent it acts for, if the key is not bound to one
    operates: bool = False  # role and key scopes allow ending others' sessions
    took_part: bool = True  # in the mesh session concerned, as determined by the route (S1146)

    @property
    def name(self) -> str:
        """The entity id that is hashed."""
        agent_id = self.agent_id or (self.who.agent_id if self.who.role == "agent" else None)
        return self.who.entity_id if agent_id is None else agent_entity_id(self.who.tenant_id, agent_id)

    def owns(self, row: Row) -> bool:
        """Whether it started the session or task, or may end those of others."""
        own = (self.who.entity_id, self.name)
        return self.operates or row["opened_by"] in own or row.get("caller") == self.name

    def is_among(self, uow: UnitOfWork, session_id: str) -> bool:
        """Whether it may record thoughts in a session of the mesh: an agent that took part in it, or an
        operator. Without such a session anyone may; so may a key that is bound to no agent and names none."""
        mesh = uow.memory.sessions.get(session_id)
        if mesh is None or self.operates or (self.who.role == "agent" and not self.is_named):
            return True
        agent = uow.memory.agents.get(self.name)
        member = agent is not None and (mesh.session_no, agent.agent_no) in uow.memory.members
        return member and self.took_part

    @property
    def is_named(self) -> bool:
        return self.agent_id is not None or self.who.agent_id is not None

    def refusal(self, now_ns: int) -> SubmissionResult | None:
        """Checked like a message's sender (ruling 13): an agent's key acts for agents, a bound one for its
        own agent; a person only for themselves."""
        who, problem = self.who, None
        if self.agent_id is None or who.role == "admin":
            return None
        if who.role != "agent":
            problem = "a person records thoughts only in their own name"
        elif who.agent_id is not None and self.name != agent_entity_id(who.tenant_id, who.agent_id):
            problem = "this key is bound to another agent"
        if problem is None:
            return None
        detail = {"reason": "sender_mismatch", "key_id": who.key_id}
        event = gateway_event(
            who.tenant_id, "security_violation", f"refused a thought: {problem}", now_ns, who, detail
        )
        return SubmissionResult(403, Refused(reason="sender_mismatch", detail=problem), [event])


def default_session_of(voice: ThoughtAuthor, task_id: str) -> str:
    """The session of records that name none: one per caller and task, so concurrent requests share it."""
    key = "\0".join((voice.who.tenant_id, voice.name, task_id))
    return f"ses_{uuid5(_HOMES, key)}"


def task_key(session_id: str, task_id: str) -> str:
    return f"{session_id}/{task_id}"  # a session's id has no slash


def wants_of(session_id: str, voice: ThoughtAuthor | None = None) -> ReadSet:
    """With `voice`, also the rows that `Voice.is_among` needs."""
    read_set = ReadSet()
    read_set.row("thought_sessions", session_id)
    if voice is not None:
        read_set.agents.add(voice.name)
    read_set.sessions.add(
        session_id
    )  # the mesh session of that name, if any: events are put into its trace too
    return read_set


def sessions_of(uow: UnitOfWork) -> dict[str, Row]:
    return uow.memory.rows.setdefault("thought_sessions", {})


def tasks_of(uow: UnitOfWork) -> dict[str, Row]:
    return uow.memory.rows.setdefault("thought_tasks", {})


def row_of(tenant_id: str, thought: Thought, hashes: ThoughtHashes, number: int, event_id: str) -> Row:
    """A thought's row, with the number and id of its audit event."""
    return {
        "tenant_id": tenant_id,
        "session_id": thought.session_id,
        "record_index": thought.index,
        "record_id": thought.record_id,
        "task_id": thought.task_id,
        "type": thought.type,
        "content": thought.content,
        "author": thought.author,
        "created_at": thought.created_at,
        "refs": thought.references.decode(),
        "event_ids": thought.audit_event_ids.decode(),
        "predecessor_chain_hash": thought.predecessor_chain_hash,
        "content_hash": hashes.content_hash,
        "chain_hash": hashes.chain_hash,
        "parent_chain_hash": hashes.parent_chain_hash,
        "sequence_number": number,
        "audit_event_id": event_id,
        "shredded_by": None,
    }


def where_of(session: Row) -> dict[str, Any]:
    return {"tenant_id": session["tenant_id"], "session_id": session["session_id"]}


def thought_event(
    uow: UnitOfWork, who: Principal, session_id: str, event_type: str, summary: str, detail: dict[str, Any]
) -> EventDraft:
    """An audit event, in the trace of the mesh session of that name if there is one."""
    draft = gateway_event(who.tenant_id, event_type, summary, uow.now_ns, who, detail)
    if event_type in SESSION_EVENTS:
        draft.recipient_id = address_of(session_id)
    mesh = uow.memory.sessions.get(session_id)
    if mesh is not None:
        draft.trace_id, draft.session_no = mesh.trace_id, mesh.session_no
    return draft


def session_command(
    voice: ThoughtAuthor, session_id: str, now_ns: int, decide: Callable[[UnitOfWork, Row], SubmissionResult]
) -> Command:
    """A command on an existing session; 404 without one."""

    def decided(uow: UnitOfWork) -> SubmissionResult:
        row = sessions_of(uow).get(session_id)
        if row is None:
            return SubmissionResult(404, Refused(reason="not_found", detail=UNKNOWN))
        return decide(uow, row)

    return Command(voice.who, now_ns, decided, wants_of(session_id), on_behalf_of=voice.name)

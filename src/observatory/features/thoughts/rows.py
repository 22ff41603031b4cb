"""Who thinks, and the rows of the decision trail as acts find and change them under the lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from observatory.ledger.thoughts import Hashes, Thought
from observatory.pipeline.event_writer import notice
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict, Wants
from observatory.protocol.answers import Refused
from observatory.protocol.identity import agent_entity_id
from observatory.protocol.thoughts import address_of

Row = dict[str, Any]
_HOMES: Final = UUID("b6f2a1de-8d1c-4c2e-9a57-5b0f4f6f6d11")  # of sessions that records open by themselves
UNKNOWN: Final = "no thought session of this tenant has that id"
# What a session is made of: the trail finds these by the session's address and counts them.
MADE_OF: Final = frozenset(
    {"thought_session_started", "thought_recorded", "thought_session_sealed", "thought_session_ended"}
)


class Voice(NamedTuple):
    """Who thinks: the caller of a session, the author of a record."""

    who: Principal
    agent_id: str | None = None  # the agent in whose name, where the key is not bound to one
    operates: bool = False  # its role and its key's scopes allow it to end what others began
    took_part: bool = True  # in the mesh session this is about; what the endpoint found (S1146)

    @property
    def name(self) -> str:
        """The entity id that is hashed."""
        agent_id = self.agent_id or (self.who.agent_id if self.who.role == "agent" else None)
        return self.who.entity_id if agent_id is None else agent_entity_id(self.who.tenant_id, agent_id)

    def owns(self, row: Row) -> bool:
        """Whether this began it, or may end what others began."""
        mine = (self.who.entity_id, self.name)
        return self.operates or row["opened_by"] in mine or row.get("caller") == self.name

    def is_among(self, desk: Desk, session_id: str) -> bool:
        """Whether this may think in a session of the mesh: an agent that took part in it, or who operates.
        Without such a session all may; of a key that is bound to no agent and names none, nobody can tell."""
        mesh = desk.memory.sessions.get(session_id)
        if mesh is None or self.operates or (self.who.role == "agent" and not self.is_named):
            return True
        agent = desk.memory.agents.get(self.name)
        member = agent is not None and (mesh.session_no, agent.agent_no) in desk.memory.members
        return member and self.took_part

    @property
    def is_named(self) -> bool:
        return self.agent_id is not None or self.who.agent_id is not None

    def refusal(self, now_ns: int) -> Verdict | None:
        """As a message's sender is judged (ruling 13): an agent's key speaks for agents, a bound one for its
        own; a person only for themselves."""
        who, problem = self.who, None
        if self.agent_id is None or who.role == "admin":
            return None
        if who.role != "agent":
            problem = "a person thinks only in their own name"
        elif who.agent_id is not None and self.name != agent_entity_id(who.tenant_id, who.agent_id):
            problem = "this key is bound to another agent"
        if problem is None:
            return None
        detail = {"reason": "sender_mismatch", "key_id": who.key_id}
        event = notice(
            who.tenant_id, "security_violation", f"refused a thought: {problem}", now_ns, who, detail
        )
        return Verdict(403, Refused(reason="sender_mismatch", detail=problem), [event])


def home_of(voice: Voice, task_id: str) -> str:
    """The session of records that name none: one for each caller and task, so that two racers open one."""
    place = "\0".join((voice.who.tenant_id, voice.name, task_id))
    return f"ses_{uuid5(_HOMES, place)}"


def task_key(session_id: str, task_id: str) -> str:
    return f"{session_id}/{task_id}"  # a session's id holds no slash


def wants_of(session_id: str, voice: Voice | None = None) -> Wants:
    """With `voice` so that it can be told whether that one `is_among` the mesh session's agents."""
    wants = Wants()
    wants.row("thought_sessions", session_id)
    if voice is not None:
        wants.agents.add(voice.name)
    wants.sessions.add(session_id)  # of the mesh, if there is one of that name: its trace tells of this too
    return wants


def sessions_of(desk: Desk) -> dict[str, Row]:
    return desk.memory.rows.setdefault("thought_sessions", {})


def tasks_of(desk: Desk) -> dict[str, Row]:
    return desk.memory.rows.setdefault("thought_tasks", {})


def row_of(tenant_id: str, thought: Thought, hashes: Hashes, number: int, event_id: str) -> Row:
    """A thought as it is stored, with the number and id of the event that tells of it."""
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


def told(
    desk: Desk, who: Principal, session_id: str, event_type: str, summary: str, detail: dict[str, Any]
) -> Draft:
    """An event of the house, in the trace of the mesh session of that name if there is one."""
    draft = notice(who.tenant_id, event_type, summary, desk.now_ns, who, detail)
    if event_type in MADE_OF:
        draft.recipient_id = address_of(session_id)
    mesh = desk.memory.sessions.get(session_id)
    if mesh is not None:
        draft.trace_id, draft.session_no = mesh.trace_id, mesh.session_no
    return draft


def within(voice: Voice, session_id: str, now_ns: int, decide: Callable[[Desk, Row], Verdict]) -> Act:
    """An act upon a session there is."""

    def decided(desk: Desk) -> Verdict:
        row = sessions_of(desk).get(session_id)
        if row is None:
            return Verdict(404, Refused(reason="not_found", detail=UNKNOWN))
        return decide(desk, row)

    return Act(voice.who, now_ns, decided, wants_of(session_id), speaks_as=voice.name)

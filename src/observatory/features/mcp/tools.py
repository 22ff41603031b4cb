"""The MCP tools: names, arguments, and descriptions that let a model use them correctly.

Law: the first six are the seed's (003), name for name; each of their descriptions states their order.
Messages about arguments are written from the contract alone: no value and no unknown key is quoted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from observatory.protocol.events import ERROR, INFO, WARN
from observatory.protocol.rules import EventId, SessionId
from observatory.protocol.thoughts import MEMBERS, NAMED, TYPES, RecordId, ThoughtTaskId, ThoughtType

Json = dict[str, Any]
Outcome = Literal["ok", "refused", "error"]
OUTCOMES: Final[Mapping[Outcome, int]] = {"ok": INFO, "refused": WARN, "error": ERROR}  # how a call ended
_HOLDS: Final = "; ".join(f"{kind}: {{{', '.join(members)}}}" for kind, members in MEMBERS.items())
# What each argument must be, whichever tool it is for: the sentence of a fault, and the schema's description.
EXPECTS: Final = {
    "intent": "text of 1 to 4,000 characters: what this session is for",
    "task_id": "1 to 256 characters without control characters: the task this belongs to, e.g. tsk_release",
    "session_id": "1 to 256 characters without a slash or control characters: the session's id",
    "predecessor_session_id": "the id of the session this one continues; its last chain hash is embedded",
    "type": f"one of {', '.join(TYPES)}",
    "content": f"an object; its members depend on the type. {_HOLDS}; each a text or a list; more may follow",
    "references": f"an array of at most {NAMED} record ids this record builds on or corrects",
    "audit_event_ids": f"an array of at most {NAMED} audit event ids (evt_…) it rests on",
    "audit_event_id": "the id of an audit event: evt_ and then 1 to 128 characters of A-Z a-z 0-9 _ -",
    "query": 'text of 1 to 1,000 characters: words, "exact words", filters as agent:planner status:failure',
    "limit": "an integer from 1 to 100: how many items at most",
    "step_id": "1 to 256 characters without a slash: a step id, a message id or a sequence number",
}
ORDER: Final = (
    "Order for work that must be provable: 1. audit_session_start, 2. thought_record as you go (plan, "
    "analysis, decision), 3. audit_verify_chain, 4. thought_record with type reflection (the closing one), "
    "5. merkle_finalize, 6. merkle_root, 7. audit_session_end."
)
INSTRUCTIONS: Final = (
    f"Record why you do what you do, and read what a mesh of agents did. Every call is audited. {ORDER} Work "
    "that needs no proof uses thought_record alone and still closes each task with a reflection. Records "
    "cannot be edited: correct one by a new analysis or decision that names it in references. A refusal "
    "says in its last sentence what to do next."
)
Limit = Annotated[int, Meta(ge=1, le=100)]
StepId = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^/\x00-\x1f\x7f-\x9f]*$(?!\n)")]


class Arguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool; null is the same as leaving one out."""


class SessionStart(Arguments):
    intent: Annotated[str, Meta(min_length=1, max_length=4_000)]
    task_id: ThoughtTaskId | None = None
    session_id: SessionId | None = None
    predecessor_session_id: SessionId | None = None


class ThoughtArguments(Arguments):
    task_id: ThoughtTaskId
    type: ThoughtType
    content: Json
    session_id: SessionId | None = None
    references: Annotated[list[RecordId], Meta(max_length=NAMED)] | None = None
    audit_event_ids: Annotated[list[EventId], Meta(max_length=NAMED)] | None = None


class SessionArguments(Arguments):
    session_id: SessionId


class SearchArguments(Arguments):
    query: Annotated[str, Meta(min_length=1, max_length=1_000)]
    limit: Limit | None = None


class StepArguments(Arguments):
    session_id: SessionId
    step_id: StepId


class PendingArguments(Arguments):
    limit: Limit | None = None


class ProofArguments(Arguments):
    audit_event_id: EventId


class McpTool(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    description: str
    arguments: type[Arguments]
    # Members of every response; None where it is the whole response of a read endpoint.
    answers: Json | None = None
    # Changes nothing of the mesh or its records. (The call is recorded all the same.)
    reads_only: bool = False
    # Called again with the same arguments it changes nothing more.
    is_idempotent: bool = False

    @property
    def input_schema(self) -> Json:
        """Descriptions and plain types only: many clients cannot handle our patterns."""
        _, components = msgspec.json.schema_components([self.arguments])
        schema: Json = components[self.arguments.__name__]
        shown = {name: _plain_rule(name, rule) for name, rule in schema["properties"].items()}
        return {
            "type": "object",
            "properties": shown,
            "required": schema["required"],
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> Json | None:
        if self.answers is None:
            return None
        return {"type": "object", "properties": self.answers, "required": list(self.answers)}


def _plain_rule(name: str, rule: Json) -> Json:
    rule = rule["anyOf"][0] if "anyOf" in rule else rule
    kept = ("enum", "items", "maxItems", "maxLength", "maximum", "minLength", "minimum", "type")
    plain = {key: rule[key] for key in kept if key in rule}
    if "items" in plain:
        plain["items"] = {"type": "string"}
    return {"description": EXPECTS[name], "type": "string", **plain}


_TEXT: Final[Json] = {"type": "string"}
_HASH: Final[Json] = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_COUNT: Final[Json] = {"type": "integer", "minimum": 0}

TOOLS: Final = (
    McpTool(
        name="audit_session_start",
        title="Start a provable session",
        description=(
            "Begin a session whose thought records can be sealed and proved. Call it first, before the "
            "work, once. Keep the session_id of the answer: every later call needs it. session_id may name "
            f"a session the mesh already has; predecessor_session_id continues an earlier one. {ORDER}"
        ),
        arguments=SessionStart,
        answers={
            "session_id": _TEXT,
            "genesis": _HASH,
            "started_at": _TEXT,
            "proof_grade": {"type": "boolean"},
        },
    ),
    McpTool(
        name="thought_record",
        title="Record a thought",
        description=(
            "Append one record to the session's chain: a plan at the start of a phase {trajectory}, an "
            "analysis when something was learned {observation}, a decision when you chose {choice, "
            "alternatives, why}, a reflection to close a task {happened, proved, uncertain}. Write it when "
            "it happens, not afterwards. A reflection closes its task: nothing more is taken for it. "
            "Records are never edited; a correction is a new analysis or decision that names the record_id "
            "it corrects in references. Without session_id a session that is not provable is opened. In a "
            "provable session call audit_verify_chain before the closing reflection."
        ),
        arguments=ThoughtArguments,
        answers={
            "record_id": _TEXT,
            "session_id": _TEXT,
            "index": _COUNT,
            "content_hash": _HASH,
            "chain_hash": _HASH,
        },
    ),
    McpTool(
        name="audit_verify_chain",
        title="Verify a session's chain",
        description=(
            "Recompute every hash of a session's records in order. valid false is a hard failure: "
            "first_broken_index says where; stop and inform a person. Call it when the work is done and "
            "before the closing reflection; if you record anything else after it, call it again. It also "
            "re-proves a sealed session."
        ),
        arguments=SessionArguments,
        answers={
            "valid": {"type": "boolean"},
            "records": _COUNT,
            "first_broken_index": {"type": ["integer", "null"], "minimum": 0},
        },
        is_idempotent=True,
    ),
    McpTool(
        name="merkle_finalize",
        title="Seal a session",
        description=(
            "Seal the session's records under one Merkle root (RFC 6962). It needs, in this order: a passed "
            "audit_verify_chain, then the closing reflection, and nothing after it. It cannot be undone: a "
            "sealed session takes no more records. Sealing twice answers the same root."
        ),
        arguments=SessionArguments,
        answers={"root": _HASH, "size": _COUNT},
        is_idempotent=True,
    ),
    McpTool(
        name="merkle_root",
        title="The root of a sealed session",
        description=(
            "The root and the number of records of a sealed session, to be pinned or shown to others. "
            "Call it after merkle_finalize."
        ),
        arguments=SessionArguments,
        answers={"root": _HASH, "size": _COUNT},
        reads_only=True,
        is_idempotent=True,
    ),
    McpTool(
        name="audit_session_end",
        title="End a session",
        description=(
            "Close the session; the last call of the sequence. A provable session must have been sealed by "
            "merkle_finalize before."
        ),
        arguments=SessionArguments,
        answers={"session_id": _TEXT, "ended_at": _TEXT, "records": _COUNT},
        is_idempotent=True,
    ),
    McpTool(
        name="search_messages",
        title="Search messages",
        description=(
            "Find what agents said and did, by words, meaning and filters (agent:, type:, tool:, status:, "
            'session:, since:1h, "exact words"). Hits have the session_id and step_id that get_step takes.'
        ),
        arguments=SearchArguments,
        reads_only=True,
        is_idempotent=True,
    ),
    McpTool(
        name="get_session",
        title="Get a session",
        description="One session of the mesh: its goal, agents, state, cost, entropy, what is held in it.",
        arguments=SessionArguments,
        reads_only=True,
        is_idempotent=True,
    ),
    McpTool(
        name="get_step",
        title="Get a step and its causes",
        description=(
            "One step of a session with its reasons: intent, reasoning, alternatives, confidence, input and "
            "output (`step`), and the likely causes ranked (`causes`; null while it is not folded yet). "
            "Causes rank, they do not prove."
        ),
        arguments=StepArguments,
        answers={"step": {"type": "object"}, "causes": {"type": ["object", "null"]}},
        reads_only=True,
        is_idempotent=True,
    ),
    McpTool(
        name="list_pending_decisions",
        title="Pending decisions",
        description="Unanswered decisions that agents asked people for, the most urgent first.",
        arguments=PendingArguments,
        reads_only=True,
        is_idempotent=True,
    ),
    McpTool(
        name="get_proof",
        title="Prove an audit event",
        description=(
            "The inclusion proof of one audit event in the tenant's log: leaf, hashes, and the signed "
            "checkpoint they lead to. A third party can check it without trusting this server."
        ),
        arguments=ProofArguments,
        reads_only=True,
        is_idempotent=True,
    ),
)
# What to do next, by the reason of a refusal, in the names a model knows; of one tool first.
_CLOSE: Final = "Call audit_verify_chain, then thought_record with type reflection"
NEXT: Final[Mapping[str, str]] = {
    "bad_arguments": "Correct the arguments, then call again.",
    "schema_violation": "Correct the arguments, then call again.",
    "too_long": "Send less, then call again.",
    "unauthorized": "Give a valid key, then call again.",
    "not_allowed": "Use a key with that permission: an agent's or operator's to record, a viewer's to read.",
    "not_yours": "Use the key that began it, or an operator's.",
    "not_found": "Check the id: audit_session_start and thought_record return the right ones.",
    "already_started": "Continue with thought_record, or start a session under another session_id.",
    "task_closed": "Call thought_record under another task_id.",
    "sealed": "Call audit_session_start with this session as predecessor_session_id.",
    "ended": "Call audit_session_start with this session as predecessor_session_id.",
    "session_full": f"{_CLOSE}, then merkle_finalize, and start a session that names this one.",
    "empty_session": f"Call thought_record for what you did. {_CLOSE}, then merkle_finalize.",
    "open_tasks": f"Close all open tasks but one by reflections. {_CLOSE} for it, then call this again.",
    "no_reflection": f"{_CLOSE}, then call this again.",
    "not_verified": f"{_CLOSE} under another task_id, then call this again.",
    "not_sealed": f"{_CLOSE}, then merkle_finalize, then call this again.",
    "moved_on": "Call this again.",
    "chain_broken": "Stop: record and seal nothing more here, and inform a person.",
    "queue_full": "Wait a second, then call again.",
    "not_durable": "Wait a moment, then call again.",
    "too_large": "Send less, then call again.",
    "internal_error": "Inform the operator of the Observatory.",
    "get_session/not_found": "Check the id: search_messages finds sessions by their messages.",
    "get_step/not_found": "Check the ids: search_messages finds steps by their messages.",
    "get_proof/not_found": "Check the id: thought_record returns the audit_event_id of its event.",
    "get_proof/not_sealed": "Wait a second until the log is signed, then call again.",
}
BY_NAME: Final[Mapping[str, McpTool]] = {tool.name: tool for tool in TOOLS}


def then(tool: str, reason: str) -> str | None:
    return NEXT.get(f"{tool}/{reason}") or NEXT.get(reason)


def given(tool: McpTool, arguments: Mapping[str, Any]) -> Json:
    """The arguments to send: null means not given."""
    return {name: value for name, value in arguments.items() if value is not None}


def faults(tool: McpTool, arguments: Mapping[str, Any]) -> list[str]:
    """Every fault of the arguments, a sentence each; empty when they are valid."""
    known = {field.name: field for field in msgspec.structs.fields(tool.arguments)}
    problems = []
    for name, field in known.items():
        value = arguments.get(name)
        if value is None and field.required:
            problems.append(f"{name} is missing: {EXPECTS[name]}")
        elif value is not None:
            try:
                msgspec.convert(value, field.type)
            except msgspec.ValidationError:
                problems.append(f"{name} must be {EXPECTS[name]}")
    if not known.keys() >= arguments.keys():
        problems.append(f"there is an argument this tool does not have; it takes {', '.join(known)}")
    return problems

"""Types of what an agent receives: inbox items, prompts, verdicts, decisions, handoffs.

Rule: the wire form is read unchanged; unknown members and kinds are kept. A received item carries the point
from which work continues (`handoff`), so a reply's parent is the step that triggered it (R504).
"""

from typing import Any, Literal, TypedDict

import msgspec

from observatory.protocol.identity import canonical_id
from observatory.protocol.otel import parse_traceparent, trace_id_of_session
from observatory.protocol.steps import step_name

VerdictWord = Literal["approved", "edited", "rejected", "expired", "not_required"]


class Handoff(TypedDict):
    """The tip of a branch as plain JSON, to be sent along with the work."""

    trace_id: str
    session_id: str
    parent_step_ids: list[str]


class MessageSender(msgspec.Struct, frozen=True):
    agent_id: str | None = None
    entity_id: str | None = None


class Received(msgspec.Struct, frozen=True):
    """One item of the inbox. `message` is the delivered message, `body` the content of an order."""

    delivery_id: str
    kind: str
    sequence_number: int = 0
    session_id: str | None = None
    created_at: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    sender: MessageSender | None = None
    message: dict[str, Any] | None = None
    body: dict[str, Any] | None = None

    def body_value(self, name: str) -> Any:
        """A member of `body`; None when it is missing."""
        return (self.body or {}).get(name)

    @property
    def text(self) -> str | None:
        """Its text: a text's content, a title, or a step's intent; None if it has none."""
        message = self.message or {}
        payload, cognition = message.get("payload") or {}, message.get("cognition") or {}
        text = payload.get("content") or payload.get("title") or cognition.get("intent")
        return text if isinstance(text, str) else None

    @property
    def intent(self) -> str | None:
        """The intent of a message sent by the gateway itself: a job's, a webhook's, or `reminder`."""
        intent = ((self.message or {}).get("metadata") or {}).get("intent")
        return intent if isinstance(intent, str) else None

    @property
    def payload(self) -> Any:
        """The payload of a job, a webhook or a reminder; None if it has none."""
        return ((self.message or {}).get("metadata") or {}).get("payload")

    @property
    def is_reminder(self) -> bool:
        """Whether the agent requested it with `remind`."""
        sender = ((self.message or {}).get("sender") or {}).get("entity_id")
        return self.intent == "reminder" and sender == "sys_scheduler"

    def handoff(self) -> Handoff | None:
        """The point from which work continues; None for an item without a session."""
        if self.session_id is None:
            return None
        context = parse_traceparent(self.traceparent) if self.traceparent else None
        trace_id = context[0] if context else trace_id_of_session(self.session_id)
        step = _step_of(self)
        return Handoff(
            trace_id=canonical_id(trace_id),
            session_id=self.session_id,
            parent_step_ids=[step] if step else [],
        )


def _step_of(item: Received) -> str | None:
    """The name of the step that triggered this item; for an envelope, its message id."""
    message = item.message or {}
    if "message_type" in message:
        return str(message.get("message_id") or item.message_id)
    meta = message.get("meta") or {}
    step_id = meta.get("step_id") or meta.get("trace_id")
    return step_name(str(item.session_id), canonical_id(str(step_id))) if step_id else None


class Prompt(msgspec.Struct, frozen=True):
    """Text a person injected into the agent's next context."""

    text: str
    by: str | None = None
    session_id: str | None = None
    delivery_id: str = ""

    def __str__(self) -> str:
        return self.text


class Verdict(msgspec.Struct, frozen=True):
    """A person's verdict at a gate, or `not_required`. `content` is the whole message as edited, or None.

    `tool_call` and `tool_input` are what was approved, including edits; None if it was not approved.
    `gated` is False when no person judged it: a pause or a stop that held it ended.
    """

    verdict: VerdictWord
    by: str | None = None
    note: str | None = None
    content: dict[str, Any] | None = None
    message_id: str | None = None
    step_id: str | None = None
    action_digest: str | None = None
    tool_call: str | None = None
    tool_input: Any = None
    gated: bool = True

    @property
    def approved(self) -> bool:
        return self.verdict in ("approved", "edited", "not_required")

    @property
    def edited(self) -> bool:
        return self.content is not None


def action_of(content: dict[str, Any]) -> tuple[str | None, Any]:
    """The tool and the decoded input of a message."""
    action = msgspec.convert(content.get("action") or {}, dict[str, Any])
    return msgspec.convert(action.get("tool_call"), str | None), decoded(action.get("tool_input"))


def decoded(value: Any) -> Any:
    """A tool's input as data: it is sent as JSON in a string. Text that is not JSON stays unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


class Decision(str):
    """The chosen option: a string with the option's id, plus the decision it answers."""

    decision_id: str
    note: str | None
    owner: dict[str, str]

    def __new__(cls, option_id: str, decision_id: str, note: str | None, owner: dict[str, str]) -> "Decision":
        chosen = super().__new__(cls, option_id)
        chosen.decision_id, chosen.note, chosen.owner = decision_id, note, owner
        return chosen

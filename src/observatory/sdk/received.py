"""What reaches an agent: the items of its inbox, and the words made of them.

Law: the wire form is read as it is, unknown members and kinds are kept; a received item knows from where
the work goes on (`handoff`), so a reply's parent is what triggered it (R504).
"""

from typing import Any, Literal, TypedDict

import msgspec

from observatory.protocol.identity import canonical_id
from observatory.protocol.otel import parse_traceparent, trace_id_of_session
from observatory.protocol.steps import step_name

Word = Literal["approved", "edited", "rejected", "expired", "not_required"]


class Handoff(TypedDict):
    """A line's end as plain JSON, to be sent along with the work."""

    trace_id: str
    session_id: str
    parent_step_ids: list[str]


class Sender(msgspec.Struct, frozen=True):
    agent_id: str | None = None
    entity_id: str | None = None


class Received(msgspec.Struct, frozen=True):
    """One item of the inbox. `message` is what was delivered to the agent, `body` what an order says."""

    delivery_id: str
    kind: str
    sequence_number: int = 0
    session_id: str | None = None
    created_at: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    message_id: str | None = None
    message_type: str | None = None
    sender: Sender | None = None
    message: dict[str, Any] | None = None
    body: dict[str, Any] | None = None

    def told(self, name: str) -> Any:
        """A member of `body`; None when it is not there."""
        return (self.body or {}).get(name)

    @property
    def text(self) -> str | None:
        """What it says in words: a text's content, a title, a step's intent; None if it has none."""
        message = self.message or {}
        payload, cognition = message.get("payload") or {}, message.get("cognition") or {}
        found = payload.get("content") or payload.get("title") or cognition.get("intent")
        return found if isinstance(found, str) else None

    @property
    def intent(self) -> str | None:
        """What the house wants, of a message of its own: a job's intent, a webhook's; `reminder`."""
        found = ((self.message or {}).get("metadata") or {}).get("intent")
        return found if isinstance(found, str) else None

    @property
    def payload(self) -> Any:
        """What a job, a webhook or a reminder carries; None if it carries nothing."""
        return ((self.message or {}).get("metadata") or {}).get("payload")

    @property
    def is_reminder(self) -> bool:
        """Whether the agent itself had asked for it, by `remind`."""
        sender = ((self.message or {}).get("sender") or {}).get("entity_id")
        return self.intent == "reminder" and sender == "sys_scheduler"

    def handoff(self) -> Handoff | None:
        """Where the work goes on; None for what belongs to no session."""
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
    """The name of the step that triggered this: an envelope's is its message id."""
    message = item.message or {}
    if "message_type" in message:
        return str(message.get("message_id") or item.message_id)
    meta = message.get("meta") or {}
    step_id = meta.get("step_id") or meta.get("trace_id")
    return step_name(str(item.session_id), canonical_id(str(step_id))) if step_id else None


class Prompt(msgspec.Struct, frozen=True):
    """What a person put into the agent's next context."""

    text: str
    by: str | None = None
    session_id: str | None = None
    delivery_id: str = ""

    def __str__(self) -> str:
        return self.text


class Verdict(msgspec.Struct, frozen=True):
    """A person's word at a gate, or `not_required`. `content` is the whole message as edited, or None.

    `tool_call` and `tool_input` are what was approved: as edited, else as asked; None if it was not.
    Without `gated` nobody judged it: a pause or a stop that had held it was ended.
    """

    verdict: Word
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
    """Tool and input a message says, the input decoded."""
    action = msgspec.convert(content.get("action") or {}, dict[str, Any])
    return msgspec.convert(action.get("tool_call"), str | None), decoded(action.get("tool_input"))


def decoded(value: Any) -> Any:
    """A tool's input as data: it travels as JSON in a string. What is not JSON stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):
        return value


class Decision(str):
    """The option that was chosen: it *is* the option's id, and knows which decision it answers."""

    decision_id: str
    note: str | None
    owner: dict[str, str]

    def __new__(cls, option_id: str, decision_id: str, note: str | None, owner: dict[str, str]) -> "Decision":
        chosen = super().__new__(cls, option_id)
        chosen.decision_id, chosen.note, chosen.owner = decision_id, note, owner
        return chosen

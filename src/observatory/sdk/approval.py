"""`Approval`: the result of `ask` and `permit`, also used by hook processes."""

from typing import Any

import msgspec

from observatory.sdk.step import Step


class Approval(msgspec.Struct, frozen=True):
    """The result of a request. True in an `if` only when the action may be performed.

    `verdict` is the person's verdict (`approved`, `edited`, `rejected`, `expired`), `not_required` when no
    gate held it, `gateway_away` when the gateway could not be reached, `no_verdict`, `not_admitted` when the
    gateway refuses the agent's key, or the reason for the refusal. `content` is the message as edited, or
    None. `tool_call` and `tool_input` are what may be performed, including edits (as data: JSON is decoded);
    None when it may not. `gated` is False when only a pause or a stop held it: the person who ended that
    (`by`) did not judge the action.
    """

    approved: bool
    verdict: str
    note: str | None = None
    by: str | None = None
    content: dict[str, Any] | None = None
    step: Step | None = None
    tool_call: str | None = None
    tool_input: Any = None
    gated: bool = True

    @property
    def edited(self) -> bool:
        """A person edited it: what was approved differs from what was requested."""
        return self.content is not None

    def __bool__(self) -> bool:
        return self.approved

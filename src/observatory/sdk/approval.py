"""What came of asking, as a value: what `ask` and `permit` return, and what a hook's process answers by."""

from typing import Any

import msgspec

from observatory.sdk.step import Step


class Approval(msgspec.Struct, frozen=True):
    """What came of asking. True in an `if` only when it may be done.

    `verdict` is the person's word (`approved`, `edited`, `rejected`, `expired`), `not_required` when no gate
    held it, `gateway_away` when a permit could not be asked for, `no_verdict`, `not_admitted` when the
    gateway does not take the agent's key, or why it refused. `content` is the message as edited, or None.
    `tool_call` and `tool_input` are what may be done: as the person edited it, else as it was asked (both
    as data: JSON is decoded); None when it may not. `gated` is False when it was held by a pause or a stop
    alone: whoever ended that (`by`) did not judge it.
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
        """A person changed it: what was asked is not what was approved."""
        return self.content is not None

    def __bool__(self) -> bool:
        return self.approved

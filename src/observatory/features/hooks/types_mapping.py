"""The mapping of an inbound webhook, as an admin writes it: how a body becomes a message.

A text is a literal, or an expression (JMESPath) over the body. The outcome of a call is one of `Outcome`, and
the judgement of its signature one of `signatures.Status`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from observatory.protocol.rules import Name

MAX_EXPRESSION: Final = 1_024
DEFAULT_WINDOW_S: Final = 300
SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 10, 3_600
LONGEST_OVERLAP_S: Final = 30 * 86_400

Formula = Annotated[str, Meta(min_length=1, max_length=MAX_EXPRESSION, description="A JMESPath expression.")]
HookState = Literal["active", "disabled"]
# `taken`: durable, on its way into the pipeline. The next three are verdicts of the pipeline.
Outcome = Literal[
    "taken", "forwarded", "held", "refused", "ignored", "answered", "unmapped", "not_taken", "turned_away"
]


class Expression(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evaluated over the body."""

    expression: Formula


class Destination(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The recipient: exactly one of these."""

    agent: Name | Expression | None = None
    capability: Name | Expression | None = None
    cluster: Name | Expression | None = None


class HookMapping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From a body to a message. `payload` defaults to the whole body.

    `when` selects the bodies to accept; calls with the same `session` key share a session; `delivery_id`
    names the delivery where the scheme does not.
    """

    intent: Name | Expression
    target: Destination
    payload: Formula = "@"
    session: Formula | None = None
    when: Formula | None = None
    delivery_id: Formula | None = None

"""Words of webhooks that come in: what a hook makes of a body, as an admin writes it.

A text is taken as it stands, or is an expression (JMESPath) over the body. What becomes of a call is one of
`Outcome`, and how its signature was judged one of `signatures.Status`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from observatory.protocol.rules import Name

MOST_EXPRESSION: Final = 1_024
DEFAULT_WINDOW_S: Final = 300
SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 10, 3_600
LONGEST_OVERLAP_S: Final = 30 * 86_400

Formula = Annotated[str, Meta(min_length=1, max_length=MOST_EXPRESSION, description="A JMESPath expression.")]
HookState = Literal["active", "disabled"]
# `taken`: durable, on its way into the corridor. The next three are the corridor's own.
Outcome = Literal[
    "taken", "forwarded", "held", "refused", "ignored", "answered", "unmapped", "not_taken", "turned_away"
]


class Expression(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Found in the body."""

    expression: Formula


class Destination(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom it is for: exactly one of these."""

    agent: Name | Expression | None = None
    capability: Name | Expression | None = None
    cluster: Name | Expression | None = None


class HookMapping(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From a body to a message. `payload` is the whole body when it is not named.

    `when` says which bodies are taken; calls of one `session` key share a session; `delivery_id` names a
    delivery where the scheme does not.
    """

    intent: Name | Expression
    target: Destination
    payload: Formula = "@"
    session: Formula | None = None
    when: Formula | None = None
    delivery_id: Formula | None = None

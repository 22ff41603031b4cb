"""Words people type under the tenant's redaction rules: prompts, notes, corrections, annotations (S617).

Law: what was typed goes no further than the act that takes it; what the rules leave is hashed, stored, told
to agents and put on record. A rule for a field names it `typed.…` (`typed.prompt`, `typed.note`,
`typed.text`, `typed.label`, `typed.value`). What rules by itself is left as it was written: instructions,
policies, names and the reasons of an admin's orders; to change them silently would change what they say.
"""

from __future__ import annotations

from typing import Any, Final, overload

import msgspec

from observatory.features.redaction.redaction import redactor
from observatory.pipeline.state import Memory

ROOM: Final = "typed"  # no name of the schema: what stands under it is free


@overload
def left(memory: Memory, name: str, text: str) -> str: ...
@overload
def left(memory: Memory, name: str, text: None) -> None: ...
@overload
def left(memory: Memory, name: str, text: str | None) -> str | None: ...


def left(memory: Memory, name: str, text: str | None) -> str | None:
    """What is kept of it; all of it where there are no rules."""
    book = memory.rulebook.redaction
    if text is None or book is None or not book.in_force:
        return text
    applied = redactor(book.in_force, book.secret).apply(msgspec.json.encode({ROOM: {name: text}}))
    return text if applied is None else str(msgspec.json.decode(applied.raw)[ROOM][name])


def attributes(memory: Memory) -> dict[str, Any]:
    """Of the event: which rules its words went by."""
    book = memory.rulebook.redaction
    return {} if book is None or not book.in_force else {"av.redaction.version": book.version}

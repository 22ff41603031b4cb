"""Redacts text that people type: prompts, notes, corrections, annotations (S617).

Law: typed text goes no further than the command that takes it; what redaction leaves is hashed, stored, sent
to agents and put on record. A rule for a field names it `typed.…` (`typed.prompt`, `typed.note`,
`typed.text`, `typed.label`, `typed.value`). Text that is itself a rule is not redacted: instructions,
policies, names and the reasons of an admin's orders; a silent change would change their meaning.
"""

from __future__ import annotations

from typing import Any, Final, overload

import msgspec

from observatory.pipeline.redaction.redactor import redactor
from observatory.pipeline.state import BatchState

SECTION: Final = "typed"  # not a name of the schema, so everything below it is free


@overload
def redact_text(memory: BatchState, name: str, text: str) -> str: ...
@overload
def redact_text(memory: BatchState, name: str, text: None) -> None: ...
@overload
def redact_text(memory: BatchState, name: str, text: str | None) -> str | None: ...


def redact_text(memory: BatchState, name: str, text: str | None) -> str | None:
    """The text after redaction; unchanged if there are no rules."""
    book = memory.tenant_config.redaction
    if text is None or book is None or not book.in_force:
        return text
    applied = redactor(book.in_force, book.secret).apply(msgspec.json.encode({SECTION: {name: text}}))
    return text if applied is None else str(msgspec.json.decode(applied.raw)[SECTION][name])


def attributes(memory: BatchState) -> dict[str, Any]:
    """Attributes of the event: the version of the rules applied to its text."""
    book = memory.tenant_config.redaction
    return {} if book is None or not book.in_force else {"av.redaction.version": book.version}

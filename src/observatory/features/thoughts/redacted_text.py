"""Applies the tenant's redaction rules to thoughts (ruling 39, rule S347).

Law: the original goes no further than the command that accepts it; the redacted text is hashed and stored.
Content and intent are free text and no member identifies the record, so all of it is redacted; a rule for a
field names it `thought.…`. A repeat is recognised even if the rules have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from observatory.ledger.canonical import jcs, jcs_with_floats
from observatory.pipeline.redaction.redactor import redactor
from observatory.pipeline.state import BatchState
from observatory.protocol.redaction import RedactionRule, RedactionRules

PREFIX: Final = "thought"  # not a name of the schema: its members are free text


def content(memory: BatchState, sent: bytes) -> Iterator[bytes]:
    """The redacted thought; then what earlier sets of rules would have made of it."""
    book = memory.tenant_config.redaction
    if book is None:
        yield sent
        return
    for rules in (book.in_force, *book.sets_before()):
        yield _redacted(book, rules, sent)


def intent(memory: BatchState, sent: str) -> Iterator[str]:
    for redacted in content(memory, jcs({"intent": sent})):
        yield msgspec.json.decode(redacted)["intent"]


def _redacted(book: RedactionRules, rules: tuple[RedactionRule, ...], sent: bytes) -> bytes:
    if not rules:
        return sent
    applied = redactor(rules, book.secret).apply(b'{"%s":%s}' % (PREFIX.encode(), sent))
    if applied is None:
        return sent
    return jcs_with_floats(msgspec.json.decode(applied.raw)[PREFIX])

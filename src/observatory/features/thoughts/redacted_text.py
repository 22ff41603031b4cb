"""Words of thoughts under the tenant's redaction rules (ruling 39, rule S347).

Law: what was sent goes no further than the act that takes it; what the rules leave is hashed and stored.
Content and intent are free text: no member of them is a name the record is kept by, so all of it is looked
at; a rule for a field names it `thought.…`. A repeat is known although the rules have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from observatory.features.redaction.redaction import redactor
from observatory.ledger.canonical import jcs, jcs_of_words
from observatory.pipeline.state import Memory
from observatory.protocol.redaction import RedactionBook, RedactionRule

ROOM: Final = "thought"  # no name of the schema: what stands under it is free


def content(memory: Memory, sent: bytes) -> Iterator[bytes]:
    """What is kept of a thought; after it what would have been by the rules of before."""
    book = memory.rulebook.redaction
    if book is None:
        yield sent
        return
    for rules in (book.in_force, *book.sets_before()):
        yield _left(book, rules, sent)


def intent(memory: Memory, sent: str) -> Iterator[str]:
    for left in content(memory, jcs({"intent": sent})):
        yield msgspec.json.decode(left)["intent"]


def _left(book: RedactionBook, rules: tuple[RedactionRule, ...], sent: bytes) -> bytes:
    if not rules:
        return sent
    applied = redactor(rules, book.secret).apply(b'{"%s":%s}' % (ROOM.encode(), sent))
    if applied is None:
        return sent
    return jcs_of_words(msgspec.json.decode(applied.raw)[ROOM])

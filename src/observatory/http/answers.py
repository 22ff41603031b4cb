"""Shapes and small rules shared by the reading doors: pages, cursors, refusals."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec
from litestar import Response
from litestar.enums import MediaType
from litestar.params import QueryParameter

from observatory.protocol.answers import Fault, Invalid, Refused, Rejected, listed

MAX_LIMIT = 1_000
MAX_SEQUENCE = (1 << 40) - 1
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_LIMIT, description="How many items at most (1–1,000).")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
Was = Annotated[
    str,
    msgspec.Meta(max_length=64, description="Its last change as it was seen; if that is over, 409 `stale`."),
]


class Refusal(Exception):
    """A request that may not pass; `app.py` turns it into an answer."""

    def __init__(self, code: int, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.code, self.detail = code, detail
        self.answer: Refused | Rejected | Invalid = Refused(reason=reason, detail=detail)


class InvalidRequest(Refusal):
    """A request that breaks the contract, with every fault of it."""

    def __init__(self, code: int, faults: tuple[Fault, ...], reason: str = "bad_request") -> None:
        detail = f"not valid: {listed(faults)}"
        super().__init__(code, reason, detail)
        self.answer = Invalid(reason=reason, detail=detail, faults=faults)


def json(value: Any, code: int = 200) -> Response[bytes]:
    """Encoded by msgspec so that stored bytes pass through untouched."""
    return Response(msgspec.json.encode(value), status_code=code, media_type=MediaType.JSON)


def not_ours() -> Refusal:
    return Refusal(400, "bad_cursor", "this cursor is not one of ours; start again without it")


def sealed(place: bytes) -> str:
    """A cursor: where a page ended, opaque to whoever carries it."""
    return base64.urlsafe_b64encode(place).decode().rstrip("=")


def unsealed(cursor: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (ValueError, binascii.Error) as error:
        raise not_ours() from error


def make_cursor(sequence_number: int) -> str:
    return sealed(b"s%d" % sequence_number)


def read_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        plain = unsealed(text).decode()
        number = int(plain[1:])
    except ValueError as error:
        raise not_ours() from error
    if plain[:1] != "s" or not 0 <= number <= MAX_SEQUENCE:
        raise not_ours()
    return number


def read_id_cursor(text: str | None, prefix: str) -> str | None:
    """Of a list in the order of ids that we minted."""
    if text is None:
        return None
    found = unsealed(text)
    if not found.startswith(prefix.encode()) or not found.isascii() or not found.decode().isprintable():
        raise not_ours()
    return found.decode()


def page(items: list[Any], limit: int, last: int | None) -> dict[str, Any]:
    """`next_cursor` is null only when there is nothing more: the caller asked for one item too many."""
    more = len(items) > limit
    return {"items": items[:limit], "next_cursor": make_cursor(last) if more and last is not None else None}

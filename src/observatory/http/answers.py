"""Types and helpers that the read endpoints share: pages, cursors, refusals."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from litestar import Response
from litestar.enums import MediaType
from litestar.params import QueryParameter

from observatory.protocol import clock
from observatory.protocol.responses import Fault, Invalid, Refused, Rejected, faults_text

MAX_LIMIT = 1_000
MAX_SEQUENCE = (1 << 40) - 1
Limit = Annotated[int, QueryParameter(ge=1, le=MAX_LIMIT, description="How many items at most (1–1,000).")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
Was = Annotated[
    str,
    msgspec.Meta(
        max_length=64, description="The last change you have seen; 409 `stale` if it changed since."
    ),
]


class Refusal(Exception):
    """A request that is refused; `app.py` turns it into a response."""

    def __init__(self, code: int, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.code, self.detail = code, detail
        self.answer: Refused | Rejected | Invalid = Refused(reason=reason, detail=detail)


class InvalidRequest(Refusal):
    """A request that breaks the contract, with all of its faults."""

    def __init__(self, code: int, faults: tuple[Fault, ...], reason: str = "bad_request") -> None:
        detail = f"not valid: {faults_text(faults)}"
        super().__init__(code, reason, detail)
        self.answer = Invalid(reason=reason, detail=detail, faults=faults)


def json(value: Any, code: int = 200) -> Response[bytes]:
    """A JSON response, encoded by msgspec so that stored bytes pass through unchanged."""
    return Response(msgspec.json.encode(value), status_code=code, media_type=MediaType.JSON)


def invalid_cursor() -> Refusal:
    return Refusal(400, "bad_cursor", "this cursor is not valid; start again without it")


def encode_cursor(position: bytes) -> str:
    """A cursor: where a page ended, opaque to the client."""
    return base64.urlsafe_b64encode(position).decode().rstrip("=")


def decode_cursor(cursor: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (ValueError, binascii.Error) as error:
        raise invalid_cursor() from error


def make_cursor(sequence_number: int) -> str:
    return encode_cursor(b"s%d" % sequence_number)


def read_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        plain = decode_cursor(text).decode()
        number = int(plain[1:])
    except ValueError as error:
        raise invalid_cursor() from error
    if plain[:1] != "s" or not 0 <= number <= MAX_SEQUENCE:
        raise invalid_cursor()
    return number


def read_id_cursor(text: str | None, prefix: str) -> str | None:
    """The cursor of a list that is ordered by ids that the gateway minted."""
    if text is None:
        return None
    position = decode_cursor(text)
    is_printable = position.isascii() and position.decode().isprintable()
    if not position.startswith(prefix.encode()) or not is_printable:
        raise invalid_cursor()
    return position.decode()


def page(items: list[Any], limit: int, last: int | None) -> dict[str, Any]:
    """`next_cursor` is null only when nothing more follows: the caller queries one item more than `limit`."""
    more = len(items) > limit
    return {"items": items[:limit], "next_cursor": make_cursor(last) if more and last is not None else None}


def time_of(name: str, text: str) -> int:
    try:
        return clock.to_ns(text)
    except ValueError as error:
        raise Refusal(400, "bad_time", f"{name}: expected {clock.EXPECTED}") from error


AGENT_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,256}").fullmatch


Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], kw_only=True):
    """One page of a list: `next_cursor` is null when there is nothing more."""

    items: list[Item]
    next_cursor: str | None

"""Pages of events for the archive's routes."""

from __future__ import annotations

import msgspec
from litestar import Response
from litestar.enums import MediaType

from observatory.http.answers import make_cursor
from observatory.pipeline.ports import StoredEvent


def events_page(found: list[StoredEvent], limit: int, reached: int | None) -> Response[bytes]:
    """`reached` is how far the scan got, where there may be more beyond."""
    last = found[limit - 1].sequence_number if len(found) > limit else reached
    items = b",".join([event.record for event in found[:limit]])
    cursor = msgspec.json.encode(make_cursor(last) if last is not None else None)
    return Response(b'{"items":[' + items + b'],"next_cursor":' + cursor + b"}", media_type=MediaType.JSON)

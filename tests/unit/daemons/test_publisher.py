"""The ring of live readers: what was shredded is forgotten there too."""

from __future__ import annotations

from observatory.pipeline.ports import StoredEvent, StoredMessage
from observatory.runtime.publisher import CommittedRow, RowFeed, item_of


def row(number: int, record: bytes = b"{}", message: bool = True) -> CommittedRow:
    said = StoredMessage(number, f"msg_{number}", "s", "s", "text", "forwarded", None, False, b"{}", b"[]")
    return CommittedRow(number, StoredEvent(number, record, b""), said if message else None)


def test_what_was_shredded_leaves_the_ring_of_live_readers_s455() -> None:
    """S455: a reader that comes later is shown what the archive would show; the others are as they were."""
    feed = RowFeed("tnt_default", 0, 10)
    feed.extend([row(1), row(2), row(3)])
    put_together = feed.frames
    order = b'{"body":{"event_type":"payload_shredded","shredded_sequence_numbers":[1,3]}}'
    feed.extend([row(4, order, message=False)])
    rows = feed.after(0, 10)
    assert rows is not None and [one.sequence_number for one in rows] == [1, 2, 3, 4]
    shown = [item_of(one.message) for one in rows if one.message is not None]
    assert [one["shredded"] for one in shown] == [{"event": 4}, None, {"event": 4}]
    assert [one["message"] is None for one in shown] == [True, False, True]
    assert feed.frames is not put_together  # nor are frames with its words told again

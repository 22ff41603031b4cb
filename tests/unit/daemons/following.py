"""A reader of the live channel as a browser is one, and a board as a topic's source."""

from __future__ import annotations

import msgspec

from observatory.runtime.feed_channel import Key, Record, SourceChanges

TENANT = "tnt_default"


class Client:
    """What the guide tells a reader to do with frames."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self.versions: dict[Key, int] = {}
        self.kinds: list[str] = []
        self.seq = 0

    def take(self, data: bytes) -> Record:
        received: Record = msgspec.json.decode(data)
        self.kinds.append(received["type"])
        assert received["seq"] >= self.seq
        self.seq = received["seq"]
        if received["type"] == "snapshot":
            self.records.clear()
            self.versions.clear()
        for item in received["items"]:
            key, version = (item["kind"], item["id"]), item.pop("version")
            assert version > self.versions.get(key, -1) or self.records.get(key) == item
            self.versions[key] = version
            if item.pop("removed", False):
                self.records.pop(key, None)
            else:
                self.records[key] = item
        return received


class Board:
    """A source that shows what it is told to show."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}
        self.head = 0
        self.error: Exception | None = None
        self.looks = self.closed = 0
        self.soon = False

    async def look(self, head: int, now_ns: int, again: bool) -> SourceChanges:
        self.looks += 1
        if self.error is not None:
            raise self.error
        return SourceChanges(records(self.state), whole=True, soon=self.soon)

    async def close(self) -> None:
        self.closed += 1


def records(state: dict[str, int]) -> list[Record]:
    return [{"kind": "node", "id": name, "value": value} for name, value in state.items()]

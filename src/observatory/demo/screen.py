"""What the demo shows: counts, the rate and the last messages. Trouble has a word, never only a colour."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from observatory.cli.live import LiveFrame, plain
from observatory.cli.tail import summary_of
from observatory.cli.terminal import printable, say

LINES = 16
TROUBLE = ("schema_violation", "security_violation")


class DemoScene:
    """Everything seen on the live channel so far."""

    def __init__(self, agents: int) -> None:
        self.agents = agents
        self.accepted = self.rejected = self.cursor = 0
        self.sessions: set[str] = set()
        self.seen: set[str] = set()
        self.last_session = ""
        self.last: deque[dict[str, str]] = deque(maxlen=LINES)
        self._arrivals: deque[float] = deque(maxlen=5_000)

    def add(self, frame: LiveFrame) -> None:
        for raw in frame.items:
            item = plain(raw)
            if frame.topic == "messages":
                self._message(item)
            elif item["body"]["event_type"] in TROUBLE:
                self._trouble(item)
        # Of each page the messages come first: only with its events is it complete.
        if frame.topic == "events":
            self.cursor = max(self.cursor, frame.seq)

    def _message(self, item: dict[str, Any]) -> None:
        summary = summary_of(item)
        self.accepted += 1
        self.sessions.add(item["session_id"])
        self.seen.add(summary["agent"])
        self.last_session = item["session_id"]
        self._arrivals.append(time.monotonic())
        self.last.append({"word": "ok" if summary["status"] != "failure" else "failed", **summary})

    def _trouble(self, event: dict[str, Any]) -> None:
        body = event["body"]
        self.rejected += 1
        agent = str(body.get("agent_id") or "(unreadable)")
        self.seen.add(agent)
        reason = str(body.get("violation_reason") or body["summary"])
        summary = {"time": event["observed_timestamp"][11:23], "agent": agent, "what": body["event_type"]}
        self.last.append({"word": "VIOLATION", **summary, "status": "rejected", "intent": reason})

    def rate(self) -> float:
        since = time.monotonic() - 5
        return sum(arrival > since for arrival in self._arrivals) / 5

    def counts(self) -> str:
        return (
            f"{self.accepted:,} accepted, {self.rejected:,} rejected, {self.rate():.1f} messages/s, "
            f"{len(self.sessions):,} sessions, {len(self.seen):,} agents"
        )


class Screen:
    """A table that renews itself in place."""

    def __init__(self, scene: DemoScene) -> None:
        self._scene = scene
        self._live = Live(refresh_per_second=5)

    def draw(self) -> None:
        table = Table(expand=True, box=None, pad_edge=False, header_style="bold")
        table.add_column("", width=9, no_wrap=True)
        table.add_column("TIME", width=12, no_wrap=True)
        table.add_column("AGENT", ratio=2, no_wrap=True)
        table.add_column("TOOL", ratio=2, no_wrap=True)
        table.add_column("STATUS", width=9, no_wrap=True)
        table.add_column("INTENT", ratio=5, no_wrap=True)
        for summary in self._scene.last:
            style = {"VIOLATION": "bold orange3", "failed": "red"}.get(summary["word"], "")
            cells = (summary[name] for name in ("word", "time", "agent", "what", "status", "intent"))
            # Text, not markup: what an agent says cannot dress itself up.
            table.add_row(*(Text(printable(cell)) for cell in cells), style=style)
        self._live.update(Group(Text(self._scene.counts(), style="bold"), table))

    def __enter__(self) -> Screen:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


class Plain:
    """One line a second, for logs and pipes."""

    def __init__(self, scene: DemoScene) -> None:
        self._scene = scene
        self._next = time.monotonic() + 1

    def draw(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next += 1
        last = self._scene.last[-1] if self._scene.last else None
        words = "" if last is None else printable(" ".join(part for part in _line(last) if part))
        say(f"{self._scene.counts()}" + (f" | last: {words}" if words else ""))

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _line(summary: dict[str, str]) -> tuple[str, ...]:
    return (summary["word"], summary["agent"], summary["what"], summary["status"], summary["intent"])

"""An agent's badge in a session, by numbered rules (S211): Thinking, Tool Executing, Waiting, Terminal.

Pure: its last step there, its held messages, its open decisions, and how long it has been silent by the
gateway's clock. The first rule that applies decides, and its number is returned with the badge.

1. Its last step says that it is terminal → Terminal.
2. A person has paused it there → Waiting.
3. A message of it is held → Waiting.
4. It asked for a decision that is still open → Waiting.
5. Its last step was refused or rejected → Waiting: it needs an instruction.
6. Its last step is pending and names a tool → Tool Executing, however long that takes.
7. Its last step is pending without a tool → Waiting.
8. It has been silent for `QUIET_S` → Waiting.
9. Otherwise → Thinking.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Badge = Literal["Thinking", "Tool Executing", "Waiting", "Terminal"]
QUIET_S = 60
SECOND = 1_000_000_000


class AgentActivity(NamedTuple):
    """The input of the rules; `at_ns` is the last step's time by the gateway's clock."""

    is_terminal: bool
    status: str | None
    tool: str | None
    state: str
    at_ns: int
    paused: bool = False
    held: int = 0
    undecided: int = 0


def badge_of(doing: AgentActivity, now_ns: int) -> tuple[Badge, int]:
    """The badge and the number of the rule that gave it."""
    if doing.is_terminal and doing.state == "forwarded":
        return "Terminal", 1
    if doing.paused:
        return "Waiting", 2
    if doing.held or doing.state == "held":
        return "Waiting", 3
    if doing.undecided:
        return "Waiting", 4
    if doing.state in ("refused", "rejected"):
        return "Waiting", 5
    if doing.status == "pending":
        return ("Tool Executing", 6) if doing.tool else ("Waiting", 7)
    if now_ns - doing.at_ns > QUIET_S * SECOND:
        return "Waiting", 8
    return "Thinking", 9


def badge_of_step(doing: AgentActivity) -> Badge:
    """The badge of a past step: independent of the clock, and a tool call stays a tool call."""
    badge, rule = badge_of(doing, doing.at_ns)
    return "Tool Executing" if rule == 9 and doing.tool else badge

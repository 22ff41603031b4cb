"""That MCP tools were called: one audit event a call, refused ones too (ruling 37, rule S405).

Law: the runtime writes it, not the agent. It holds who, which tool, how it ended and the hash of the
arguments, never a word of them; a name that is no tool of ours is not repeated either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from observatory.features.mcp.tools import OUTCOMES, Outcome
from observatory.pipeline.event_writer import notice
from observatory.pipeline.state import Act, Desk, Draft, Principal, Verdict

UNKNOWN: Final = "unknown"


class Call(NamedTuple):
    tool: str
    outcome: Outcome
    reason: str | None
    arguments_hash: str | None  # None: nobody read them


def called(who: Principal, calls: Sequence[Call], now_ns: int) -> Act:
    """Those of one request."""

    def decide(desk: Desk) -> Verdict:
        return Verdict(200, None, [_event(who, call, desk.now_ns) for call in calls])

    return Act(who, now_ns, decide, size=1_024 * len(calls))


def _event(who: Principal, call: Call, now_ns: int) -> Draft:
    detail = {
        **call._asdict(),
        "who": who.entity_id,
        "role": who.role,
        "key_id": who.key_id,
    }
    summary = f"MCP tool {call.tool} called by {who.entity_id}: {call.outcome}"
    severity = OUTCOMES[call.outcome]
    event = notice(who.tenant_id, "mcp_tool_called", summary, now_ns, who, detail, severity)
    if call.outcome == "refused":
        event.counts_as = "refused"
    return event

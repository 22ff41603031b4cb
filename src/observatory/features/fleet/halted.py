"""What the rules of the map look at, read from the record: alarms, pauses, holds, kill-switches, pulses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from observatory.features.fleet.node_states import Alarm, Facts, Halt
from observatory.features.fleet.types_traffic import Halts
from observatory.features.loops.commands_findings import open_loops
from observatory.features.loops.stage import last_agent
from observatory.features.registry.stage import liveness
from observatory.http.app_state import House
from observatory.protocol.scopes import covers

# So many alarms and halts are looked at; beyond it there is no use in a map.
MOST = 5_000
Row = Mapping[str, Any]


class Around(NamedTuple):
    """Of a whole tenant, by agent number; read once for all agents."""

    alarms: dict[int, list[Alarm]]
    halts: dict[int, list[Halt]]
    switches: list[dict[str, Any]]


async def around(house: House, tenant_id: str) -> Around:
    alarms: dict[int, list[Alarm]] = {}
    for row in await house.store.alarmed(tenant_id, MOST):
        session_id, entropy = row["session_id"], row["entropy"]
        if row["severity"] != "normal":
            alarm = Alarm(row["severity"], session_id, "ratio", None, entropy)
            alarms.setdefault(last_agent(row["entropy_window"]), []).append(alarm)
        for loop in open_loops(row["loops"]):
            alarm = Alarm("loop", session_id, loop.detector, loop.ns, entropy)
            alarms.setdefault(loop.agent_no, []).append(alarm)
    store = house.store
    halts: dict[int, list[Halt]] = {}
    assert isinstance(store, Halts)  # a promise of every store
    for halted in await store.halted(tenant_id, MOST):
        cause = {"paused": "pause", "kill": "kill"}.get(halted.cause, "hold")
        if halted.cause == "pause":  # told by the pause itself
            continue
        detail = halted.session_id if cause == "pause" else "everything" if cause == "kill" else halted.cause
        halts.setdefault(halted.agent_no, []).append(Halt(cause, detail, halted.since_ns, halted.messages))
    switches = await house.store.rows(tenant_id, "kill_switches", state=["engaged", "releasing"])
    return Around(alarms, halts, switches)


def facts_of(row: Row, pulse: Row | None, found: Around, now_ns: int) -> Facts:
    """`row` is of `agents`, `pulse` of `pulses`."""
    number, heartbeat_ns = row["agent_no"], None if pulse is None else pulse["heartbeat_ns"]
    halts = found.halts.get(number, [])
    stopped = [_stopped(switch) for switch in found.switches if covers(switch, row)]
    if stopped:  # what it holds of this agent is told by the switch
        halts = [*stopped, *(halt for halt in halts if halt.cause != "kill")]
    return Facts(
        liveness=liveness(row["evicted_ns"], heartbeat_ns, now_ns),
        last_seen_ns=row["last_seen_ns"],
        violation_ns=row["violation_ns"],
        alarms=tuple(found.alarms.get(number, ())),
        halts=tuple(halts),
        heartbeat_ns=heartbeat_ns,
        evicted_ns=row["evicted_ns"],
    )


def _stopped(switch: Row) -> Halt:
    scope = "everything" if switch["scope"] == "global" else f"{switch['scope']} {switch['target']}"
    return Halt("kill", scope, switch["engaged_ns"] or 0)

"""The facts the rules of the map need, read from the record: alarms, pauses, holds, kill switches, pulses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from observatory.features.fleet.types_node_states import AgentFacts, Halt, LoopAlarm
from observatory.features.fleet.types_traffic import Halts
from observatory.features.loops.queries import last_agent, open_loops
from observatory.http.app_state import AppState
from observatory.pipeline.agents import liveness
from observatory.protocol.scopes import covers

# Alarms and halts read at most; beyond it a map is of no use.
MAX_ROWS = 5_000
Row = Mapping[str, Any]


class FleetConditions(NamedTuple):
    """Alarms, halts and kill switches of a whole tenant, by agent number; read once for all agents."""

    alarms: dict[int, list[LoopAlarm]]
    halts: dict[int, list[Halt]]
    switches: list[dict[str, Any]]


async def read_conditions(app: AppState, tenant_id: str) -> FleetConditions:
    alarms: dict[int, list[LoopAlarm]] = {}
    for row in await app.store.alarmed(tenant_id, MAX_ROWS):
        session_id, entropy = row["session_id"], row["entropy"]
        if row["severity"] != "normal":
            alarm = LoopAlarm(row["severity"], session_id, "ratio", None, entropy)
            alarms.setdefault(last_agent(row["entropy_window"]), []).append(alarm)
        for loop in open_loops(row["loops"]):
            alarm = LoopAlarm("loop", session_id, loop.detector, loop.ns, entropy)
            alarms.setdefault(loop.agent_no, []).append(alarm)
    store = app.store
    halts: dict[int, list[Halt]] = {}
    assert isinstance(store, Halts)  # every store implements it
    for halted in await store.halted(tenant_id, MAX_ROWS):
        cause = {"paused": "pause", "kill": "kill"}.get(halted.cause, "hold")
        if halted.cause == "pause":  # reported by the pause itself
            continue
        detail = halted.session_id if cause == "pause" else "everything" if cause == "kill" else halted.cause
        halts.setdefault(halted.agent_no, []).append(Halt(cause, detail, halted.since_ns, halted.messages))
    switches = await app.store.rows(tenant_id, "kill_switches", state=["engaged", "releasing"])
    return FleetConditions(alarms, halts, switches)


def facts_of(row: Row, pulse: Row | None, conditions: FleetConditions, now_ns: int) -> AgentFacts:
    """`row` is a row of `agents`, `pulse` of `pulses`."""
    number, heartbeat_ns = row["agent_no"], None if pulse is None else pulse["heartbeat_ns"]
    halts = conditions.halts.get(number, [])
    stopped = [_halt_by_switch(switch) for switch in conditions.switches if covers(switch, row)]
    if stopped:  # messages held because of the switch are reported by the switch
        halts = [*stopped, *(halt for halt in halts if halt.cause != "kill")]
    return AgentFacts(
        liveness=liveness(row["evicted_ns"], heartbeat_ns, now_ns),
        last_seen_ns=row["last_seen_ns"],
        violation_ns=row["violation_ns"],
        alarms=tuple(conditions.alarms.get(number, ())),
        halts=tuple(halts),
        heartbeat_ns=heartbeat_ns,
        evicted_ns=row["evicted_ns"],
    )


def _halt_by_switch(switch: Row) -> Halt:
    scope = "everything" if switch["scope"] == "global" else f"{switch['scope']} {switch['target']}"
    return Halt("kill", scope, switch["engaged_ns"] or 0)

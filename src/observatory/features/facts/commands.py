"""What people decide about facts: false, not false after all, quarantined (rules S251–S253).

Law (ruling 20): the record holds the hash of a fact, its source and who decided, never a word of it. A
quarantine is one transaction: every agent it names is paused and told the correction by the relay's own
commands, each with its own `hitl_intervention`, or nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from observatory.features.redaction import typed_text as typed
from observatory.features.relay import commands as interventions
from observatory.features.relay.commands import Commanded
from observatory.pipeline.event_writer import notice
from observatory.pipeline.rows import Write
from observatory.pipeline.state import Act, Desk, Principal, Verdict, Wants
from observatory.protocol.answers import Refused

_TELLINGS: Final = UUID("6f0a4f0e-6a0c-4d0b-9d64-6d3f5b1f9a52")  # the namespace of their ids
ALREADY_TOLD: Final = Verdict(200, Refused(reason="already_told", detail="it was told this before"))


class About(NamedTuple):
    """The fact that is spoken of; what is archived stays, so it was looked up before."""

    fact_id: int
    name: str
    fact_key: int
    fact_hash: str
    source_seq: int
    session_id: str
    agent_id: str


class Target(NamedTuple):
    """An agent in a session, whether it has to be told, and how often it was before.

    That was looked up before the lock: whoever tells it the same meanwhile makes `telling` exist already.
    """

    session_id: str
    agent_id: str
    tell: bool = True
    times: int = 0


def telling(target: Target, prompt: str) -> str:
    """The id of the command that tells a target this the next time: for whoever asks for it, the same."""
    place = "\0".join((target.session_id, target.agent_id, prompt, str(target.times)))
    return f"int_{uuid5(_TELLINGS, hashed(place))}"


def tell(who: Principal, target: Target, prompt: str, now_ns: int) -> Act | None:
    """Put it into the target's next context, once however often it is asked for at the same time."""
    if not target.tell:
        return None
    name = telling(target, prompt)
    act = interventions.inject(who, target.session_id, target.agent_id, prompt, now_ns, intervention_id=name)
    told = act.decide

    def decide(desk: Desk) -> Verdict:
        known = desk.memory.rows.setdefault("interventions", {})
        if name in known:
            return ALREADY_TOLD
        verdict = told(desk)
        if isinstance(verdict.answer, Commanded):  # another act of this batch may ask for the same
            known[name] = dict.fromkeys(("acknowledged_ns", "confirmed_ns", "reversed_ns", "proven")) | {
                "intervention_id": name,
                "sequence_number": verdict.answer.sequence_number,
            }
        return verdict

    act.decide = decide
    act.wants.row("interventions", name)
    return act


def hashed(text: str) -> str:
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def mark_id(fact_id: int) -> str:
    """A fact has one mark, however often it is made and taken back."""
    return f"mrk_{fact_id}"


def mark_false(who: Principal, about: About, note: str | None, now_ns: int) -> Act:
    name = mark_id(about.fact_id)

    def decide(desk: Desk) -> Verdict:
        before = desk.memory.rows.get("fact_marks", {}).get(name)
        if before is not None and before["undone_ns"] is None:
            return Verdict(200, {"status": "already_marked", "mark_id": name, "fact_id": about.name})
        said = typed.left(desk.memory, "note", note)
        row = {
            "tenant_id": who.tenant_id,
            "mark_id": name,
            "fact_key": about.fact_key,
            "fact_id": about.fact_id,
            "note": said,
            "marked_by": who.entity_id,
            "marked_ns": desk.now_ns,
            "undone_ns": None,
        }
        detail = _detail(about) | {"note_hash": None if said is None else hashed(said)}
        summary = f"a fact of {about.agent_id} marked false by {who.entity_id}"
        event = notice(who.tenant_id, "fact_marked_false", summary, desk.now_ns, who, detail)
        answer = {"status": "marked", "mark_id": name, "fact_id": about.name}
        desk.memory.rows.setdefault("fact_marks", {})[name] = row  # for others of this batch
        return Verdict(201, answer, [event], [Write("fact_marks", row, key=("tenant_id", "mark_id"))])

    wants = Wants()
    wants.row("fact_marks", name)
    return Act(who, now_ns, decide, wants)


def undo_mark(who: Principal, about: About, now_ns: int) -> Act:
    name = mark_id(about.fact_id)

    def decide(desk: Desk) -> Verdict:
        before = desk.memory.rows.get("fact_marks", {}).get(name)
        if before is None or before["undone_ns"] is not None:
            return Verdict(404, Refused(reason="not_marked", detail="this fact is not marked false"))
        before["undone_ns"] = desk.now_ns
        where = {"tenant_id": who.tenant_id, "mark_id": name}
        summary = f"a fact of {about.agent_id} is not marked false any more, by {who.entity_id}"
        event = notice(who.tenant_id, "fact_mark_undone", summary, desk.now_ns, who, _detail(about))
        answer = {"status": "undone", "mark_id": name, "fact_id": about.name}
        return Verdict(200, answer, [event], [Write("fact_marks", {"undone_ns": desk.now_ns}, where)])

    wants = Wants()
    wants.row("fact_marks", name)
    return Act(who, now_ns, decide, wants)


def quarantine(who: Principal, about: About, targets: Sequence[Target], prompt: str, now_ns: int) -> Act:
    """Pause each, and put the correction into its next context. Those already paused and told stay so."""
    acts: list[tuple[Target, Act, Act | None]] = []
    for target in targets:
        place = (who, target.session_id, target.agent_id)
        halt = interventions.pause(*place, f"quarantine of {about.name}", now_ns)
        acts.append((target, halt, tell(who, target, prompt, now_ns)))

    def conclude(desk: Desk, results: list[dict[str, Any]]) -> Verdict:
        answer = {"status": "quarantined", "fact_id": about.name, "agents": results}
        if not any(
            result[step]["status"] == "accepted" for result in results for step in ("pause", "inject")
        ):
            return Verdict(200, answer | {"status": "already_quarantined"})
        said = typed.left(desk.memory, "prompt", prompt)
        detail = _detail(about) | {"correction_hash": hashed(said), "agents": _told(results)}
        summary = f"a fact of {about.agent_id} quarantined by {who.entity_id}: {len(results)} agents"
        return Verdict(202, answer, [notice(who.tenant_id, "fact_quarantined", summary, now_ns, who, detail)])

    return together(who, acts, now_ns, conclude)


def together(
    who: Principal,
    acts: Sequence[tuple[Target, Act | None, Act | None]],
    now_ns: int,
    conclude: Callable[[Desk, list[dict[str, Any]]], Verdict],
) -> Act:
    """Commands of the relay as one act: each decides under the same lock and writes into one transaction."""

    def decide(desk: Desk) -> Verdict:
        results: list[dict[str, Any]] = []
        for target, halt, tell in acts:
            result: dict[str, Any] = {"agent_id": target.agent_id, "session_id": target.session_id}
            if halt is not None:
                result["pause"] = _result(halt.decide(desk))
            result["inject"] = {"status": "already_told"} if tell is None else _result(tell.decide(desk))
            results.append(result)
        return conclude(desk, results)

    wants = Wants()
    for _, *parts in acts:
        for part in parts:
            if part is not None:
                wants.add(part.wants)
    return Act(who, now_ns, decide, wants)


def _result(verdict: Verdict) -> dict[str, Any]:
    answer = verdict.answer
    if verdict is ALREADY_TOLD:
        return {"status": "already_told"}
    if isinstance(answer, Commanded):
        found: dict[str, Any] = {"status": answer.status, "intervention_id": answer.intervention_id}
        return found | ({"delivery_id": answer.delivery_id} if answer.delivery_id else {})
    return {"status": "refused", "reason": answer.reason, "detail": answer.detail}


def _told(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Who was reached, as the record keeps it."""
    return [
        {
            "agent_id": result["agent_id"],
            "session_id": result["session_id"],
            **{step: result[step]["status"] for step in ("pause", "inject") if step in result},
        }
        for result in results
    ]


def _detail(about: About) -> dict[str, Any]:
    return {
        "fact_id": about.name,
        "fact_hash": about.fact_hash,
        "source_sequence_number": about.source_seq,
        "source_session_id": about.session_id,
        "agent_id": about.agent_id,
    }

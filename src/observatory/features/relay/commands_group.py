"""Commands that send an operator's prompt to many agents: each agent once, several commands in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID, uuid5

from observatory.features.relay import commands as interventions
from observatory.features.relay.types import Commanded, FactTarget, hashed
from observatory.pipeline.state import Command, Principal, ReadSet, SubmissionResult, UnitOfWork
from observatory.protocol.responses import Refused

ALREADY_NOTIFIED: Final = SubmissionResult(
    200, Refused(reason="already_told", detail="the agent was already notified")
)


def notification_id(target: FactTarget, prompt: str) -> str:
    """The id of the next notification of this target: the same for concurrent callers."""
    place = "\0".join((target.session_id, target.agent_id, prompt, str(target.times)))
    return f"int_{uuid5(NOTICE_IDS, hashed(place))}"


def notify_agent(who: Principal, target: FactTarget, prompt: str, now_ns: int) -> Command | None:
    """Inject it into the target's next context, once, even with concurrent callers."""
    if not target.notify:
        return None
    name = notification_id(target, prompt)
    command = interventions.inject(
        who, target.session_id, target.agent_id, prompt, now_ns, intervention_id=name
    )
    inject = command.decide

    def decide(uow: UnitOfWork) -> SubmissionResult:
        known = uow.memory.rows.setdefault("interventions", {})
        if name in known:
            return ALREADY_NOTIFIED
        verdict = inject(uow)
        if isinstance(verdict.answer, Commanded):  # a later command of this batch may request the same
            known[name] = dict.fromkeys(("acknowledged_ns", "confirmed_ns", "reversed_ns", "proven")) | {
                "intervention_id": name,
                "sequence_number": verdict.answer.sequence_number,
            }
        return verdict

    command.decide = decide
    command.read_set.row("interventions", name)
    return command


def combined_command(
    who: Principal,
    commands: Sequence[tuple[FactTarget, Command | None, Command | None]],
    now_ns: int,
    conclude: Callable[[UnitOfWork, list[dict[str, Any]]], SubmissionResult],
) -> Command:
    """Several relay commands as one: each decides under the same lock and writes into one transaction."""

    def decide(uow: UnitOfWork) -> SubmissionResult:
        results: list[dict[str, Any]] = []
        for target, halt, notify in commands:
            result: dict[str, Any] = {"agent_id": target.agent_id, "session_id": target.session_id}
            if halt is not None:
                result["pause"] = _result(halt.decide(uow))
            result["inject"] = {"status": "already_told"} if notify is None else _result(notify.decide(uow))
            results.append(result)
        return conclude(uow, results)

    read_set = ReadSet()
    for _, *parts in commands:
        for part in parts:
            if part is not None:
                read_set.add(part.read_set)
    return Command(who, now_ns, decide, read_set)


def _result(verdict: SubmissionResult) -> dict[str, Any]:
    answer = verdict.answer
    if verdict is ALREADY_NOTIFIED:
        return {"status": "already_told"}
    if isinstance(answer, Commanded):
        found: dict[str, Any] = {"status": answer.status, "intervention_id": answer.intervention_id}
        return found | ({"delivery_id": answer.delivery_id} if answer.delivery_id else {})
    return {"status": "refused", "reason": answer.reason, "detail": answer.detail}


NOTICE_IDS: Final = UUID("6f0a4f0e-6a0c-4d0b-9d64-6d3f5b1f9a52")  # the namespace of notification ids

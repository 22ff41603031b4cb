"""CrewAI adapter: observes and controls crews through CrewAI's own hooks.

    from observatory.sdk.integrations.crewai import Observer
    with Observer(needs_approval=["pay_*"]):
        crew.kickoff()

Rule: a gate fails closed. CrewAI swallows exceptions of hooks and continues, so the hook before a tool
catches everything itself and blocks; errors of observing hooks are logged and the crew continues. A person
who cancels the work of one agent ends the kickoff: CrewAI raises `HookAborted` with the reason. Tested with
crewai 1.15 (`.venv-crewai`).
"""

import logging
import re
from collections.abc import Callable, Sequence
from os import PathLike
from threading import Lock
from typing import Any, Self

from observatory.sdk.credentials import find_credentials
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Cancelled, NotSupported
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Terms, Usage, observing
from observatory.sdk.integrations.crewai_once import PERSON_VERDICTS, SingleRun, guard, unguard
from observatory.sdk.integrations.crewai_runs import (
    CrewRun,
    CrewRuns,
    CrewTaskRun,
    ToolCallFrame,
    errors_of,
    inside,
    once_of,
)
from observatory.sdk.integrations.framework import need
from observatory.sdk.outbox import Outbox

WANTED = "crewai>=1.15"
_POINTS = (
    *("EXECUTION_START", "EXECUTION_END", "PRE_STEP", "POST_STEP"),
    *("PRE_MODEL_CALL", "POST_MODEL_CALL", "PRE_TOOL_CALL", "POST_TOOL_CALL"),
)
need(
    "crewai",
    WANTED,
    *(f"crewai.hooks.dispatch:InterceptionPoint.{point}" for point in _POINTS),
    "crewai.hooks.dispatch:HookAborted",
    "crewai.hooks.dispatch:register",
    "crewai.hooks.dispatch:unregister",
    "crewai.hooks.tool_hooks:ToolCallHookContext",
    "crewai.hooks.llm_hooks:LLMCallHookContext",
    "crewai.hooks.contexts:StepContext",
    "crewai.utilities.string_utils:sanitize_tool_name",
)

from crewai.hooks.dispatch import HookAborted, InterceptionPoint, register, unregister  # noqa: E402
from crewai.utilities.string_utils import sanitize_tool_name  # noqa: E402

log = logging.getLogger("observatory.sdk")
_PLAIN = re.compile(r"[a-z0-9_*?\[\]!-]*")
_GLOB = re.compile(r"(\*|\?|\[[^\]]*\])")
_active = Lock()  # CrewAI has one hook list per process: two observers would record everything twice


_observing = observing(HookAborted)


def _with_sanitized(needs_approval: str | Sequence[str]) -> tuple[str, ...]:
    """The names and globs, plus CrewAI's form of them: its hooks see `Pay Invoice` as `pay_invoice`."""
    given = (needs_approval,) if isinstance(needs_approval, str) else tuple(needs_approval)
    return *given, *(_sanitized(one) for one in given if not _PLAIN.fullmatch(one))


def _sanitized(pattern: str) -> str:
    pieces = _GLOB.split(pattern)  # the separators are at odd indexes
    return "".join(one if n % 2 else sanitize_tool_name(one) for n, one in enumerate(pieces)) or pattern


class Observer:
    """Observes and controls every crew of this process while it is open. Create it before the kickoff.

    `needs_approval`: tools (names or globs) that ask a person first; the gateway's rules may hold others.
    `timeout`: how long a verdict may take, in seconds; None: no limit. `cost` returns the price of a model
    call by its tokens; without it costs are unknown.
    """

    def __init__(
        self,
        *,
        needs_approval: str | Sequence[str] = (),
        timeout: float | None = None,
        cost: Callable[[Usage], float | None] | None = None,
        version: str = "1.0.0",
        cluster: str | None = None,
        url: str | None = None,
        key: str | None = None,
        data: str | PathLike[str] | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        if not _active.acquire(blocking=False):
            raise NotSupported("another Observer is already active in this process: close it first")
        try:
            self._outbox = Outbox("crewai", find_credentials(url, key, data), delivery or Delivery())
            self._runs = CrewRuns(
                self._outbox, Terms(_with_sanitized(needs_approval), timeout, cost), version, cluster
            )
            self._sessions: list[str] = []
            self._hooks = {
                "EXECUTION_START": self._starts,
                "PRE_STEP": self._task_begins,
                "PRE_MODEL_CALL": self._before_model,
                "POST_MODEL_CALL": self._after_model,
                "PRE_TOOL_CALL": self._before_tool,
                "POST_TOOL_CALL": self._after_tool,
                "POST_STEP": self._task_ends,
                "EXECUTION_END": self._ends,
            }
            for point, hook in self._hooks.items():
                register(getattr(InterceptionPoint, point), hook)
        except BaseException:
            _active.release()
            raise
        self._open = True

    @property
    def session_id(self) -> str | None:
        """The session of the latest kickoff."""
        return self._sessions[-1] if self._sessions else None

    def close(self, timeout: float | None = None) -> bool:
        """Remove the hooks, send what can be sent, spool the rest; True if nothing is left."""
        if not self._open:
            return True
        self._open = False
        for point, hook in self._hooks.items():
            unregister(getattr(InterceptionPoint, point), hook)
        try:
            self._runs.close()
            return self._outbox.close(timeout)
        finally:
            _active.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # A kickoff.

    @_observing
    def _starts(self, ctx: Any) -> None:
        if ctx.crew is not None:
            self._sessions = [*self._sessions[-99:], self._runs.begin(ctx.crew).session_id]

    @_observing
    def _ends(self, ctx: Any) -> None:
        run = self._runs.end(ctx.crew) if ctx.crew is not None else None
        if run is None or run.last is None:
            return
        has_failed = ctx.status != "completed"
        run.last.record_missing(ctx.error)
        why = run.ended_by or (str(ctx.error) if ctx.error is not None else "")
        summary = why if has_failed else getattr(ctx.output, "raw", None)
        run.last.course.said(
            f"{'End' if run.ended_by else 'Give up' if has_failed else 'Finish'} the crew's work",
            status="failure" if has_failed else "success",
            terminal=True,
            tool_output_summary=wording.clip(summary) if summary else None,
        )

    # A task.

    @_observing
    def _task_begins(self, ctx: Any) -> None:
        if ctx.kind != "task" or ctx.agent is None:
            return
        run, work = self._runs.work(None, ctx.task, ctx.agent)
        self._attach(ctx.agent)
        work.prompts += self._ready(run, work)
        expected = getattr(ctx.task, "expected_output", None)
        why = [wording.clip(f"Expected: {expected}")] if expected else None
        work.course.said(f"Begin: {ctx.step_name}", status="pending", reasoning_chain=why)

    @_observing
    def _task_ends(self, ctx: Any) -> None:
        if ctx.kind != "task" or ctx.agent is None:
            return
        run, work = self._runs.work(None, ctx.task, ctx.agent)
        self._record_answer(work)
        raw = getattr(ctx.output, "raw", None)
        summary = wording.clip(raw) if raw else None
        work.course.said(f"Finish: {ctx.step_name}", tool_output_summary=summary)
        run.done(work)

    def _attach(self, agent: Any) -> None:
        """An executor copies the hooks when it is created: an older one has none of this observer's."""
        executor = getattr(agent, "agent_executor", None)
        for name, hook in (
            ("before_llm_call_hooks", self._before_model),
            ("after_llm_call_hooks", self._after_model),
        ):
            known = getattr(executor, name, None)
            if isinstance(known, list) and hook not in known:
                known.append(hook)

    # The model.

    @_observing
    def _before_model(self, ctx: Any) -> None:
        """Waits while the agent is paused or stopped; then adds injected prompts to the model's messages."""
        if not self._open or (context := self._work_of(ctx)) is None:
            return
        run, work = context
        self._drop_stale(work)
        self._record_missing(work)
        prompts, work.prompts = work.prompts, []
        for prompt in [*prompts, *self._ready(run, work)]:
            ctx.messages.append({"role": "user", "content": prompt.text})
        self._runs.meet(ctx.llm)
        work.ask(ctx.llm)

    @_observing
    def _after_model(self, ctx: Any) -> None:
        if self._open and (context := self._work_of(ctx)) is not None:
            self._record_answer(context[1], ctx.response)

    def _record_answer(self, work: CrewTaskRun, response: Any = None, *calls: str) -> None:
        """Errors are caught here: a failed recording must neither close a gate nor bypass a pause."""
        try:
            work.record_answer(self._runs.spent, response, calls)
        except Exception:
            log.exception("crewai: the model's answer was not recorded")

    def _record_missing(self, work: CrewTaskRun) -> None:
        try:
            work.record_missing()
        except Exception:
            log.exception("crewai: a model call without an answer was not recorded")

    def _work_of(self, ctx: Any) -> tuple[CrewRun, CrewTaskRun] | None:
        """The run and task of a model call; None for a call that no agent made."""
        if ctx.agent is None:
            return None
        if ctx.task is None:
            run = self._runs.of(ctx.crew, ctx.agent)
            if (known := run.of_agent(ctx.agent)) is not None:
                return run, known
        return self._runs.work(ctx.crew, ctx.task, ctx.agent)

    def _ready(self, run: CrewRun, work: CrewTaskRun) -> list[Any]:
        try:
            if run.ended_by is None:
                return work.course.ready()
        except Cancelled as cancelled:
            run.ended_by = str(cancelled)
        raise HookAborted(run.ended_by or "", source="observatory")

    # A tool.

    def _before_tool(self, ctx: Any) -> bool | None:
        """False blocks the call; `_after_tool` then returns the reason to the model."""
        try:
            return self._permit(ctx)
        except Exception as error:  # any error: a failed gate is closed
            log.exception("crewai: a tool call was blocked because its gate failed")
            why = f"It was not run: its gate failed ({type(error).__name__})."
            inside.set(ToolCallFrame(None, None, why, getattr(ctx, "tool_input", None)))
            return False

    def _permit(self, ctx: Any) -> bool | None:
        run, work = self._runs.work(ctx.crew, ctx.task, ctx.agent)
        self._record_answer(work, None, wording.tool_name(ctx.tool_name))
        given: dict[str, Any] = ctx.tool_input
        call, refusal = None, None
        try:
            if run.ended_by is not None:
                refusal = run.ended_by
            else:
                call = work.course.begin(ctx.tool_name, dict(given))
                refusal = call.refusal
        except Cancelled as cancelled:
            run.ended_by = refusal = str(cancelled)
        if call is not None and refusal is None and call.edited and not given and call.args:
            # For a call without input CrewAI passes the hook an object that the tool does not receive.
            args = wording.clip(call.args)
            refusal = f"{call.tool} was not run: a person requests a call with {args} instead."
            work.course.end(call, error=refusal)
        frame = ToolCallFrame(work, call if refusal is None else None, refusal, given)
        inside.set(frame)
        if frame.call is not None and frame.call.approval.verdict in PERSON_VERDICTS:
            frame.once = SingleRun(ctx.tool)
            guard(ctx.tool, once_of)
        if call is None or refusal is not None:
            return False
        if call.edited:
            given.clear()
            given.update(call.args)
        return None

    def _after_tool(self, ctx: Any) -> str | None:
        """Records the result; the returned text replaces the tool's output for the model."""
        try:
            return self._outcome(ctx)
        except Exception:  # the tool has run
            log.exception("crewai: the result of a tool call was not recorded")
            return None

    def _outcome(self, ctx: Any) -> str | None:
        frame = inside.get()
        while frame is not None and frame.given is not ctx.tool_input:
            frame = frame.above
        if frame is None:
            return None
        inside.set(frame.above)
        if frame.once is not None:
            unguard(frame.once.tool)
        if frame.call is not None and frame.work is not None:
            for work in frame.within:
                self._record_answer(work)
                frame.call.line.join(work.course.line)
            result = ctx.tool_result
            has_failed = errors_of(frame.task) > frame.errors and "error" in str(result)[:200].lower()
            frame.work.course.end(frame.call, None if has_failed else result, result if has_failed else None)
        return frame.refusal

    def _drop_stale(self, work: CrewTaskRun) -> None:
        """An agent that calls its model again is in no tool call: discard calls whose end CrewAI did not
        report."""
        frame = inside.get()
        while frame is not None and frame.work is work:
            if frame.once is not None:
                unguard(frame.once.tool)
            frame = frame.above
        inside.set(frame)

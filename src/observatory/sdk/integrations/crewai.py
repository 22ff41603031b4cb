"""CrewAI's crews, observed and controlled through CrewAI's own hooks.

    from observatory.sdk.integrations.crewai import Observer
    with Observer(needs_approval=["pay_*"]):
        crew.kickoff()

Law: a gate fails closed. CrewAI swallows whatever a hook raises and goes on, so the hook before a tool
catches everything itself and blocks; what only observes may fail, is logged, and the crew goes on. A person
who ends the work of one agent ends the kickoff: CrewAI raises `HookAborted` with the reason.
Tested with crewai 1.15 (`.venv-crewai`).
"""

import logging
import re
from collections.abc import Callable, Sequence
from os import PathLike
from threading import Lock
from typing import Any, Self

from observatory.sdk.credentials import find_door
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Cancelled, NotSupported
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.course import Terms, Usage, observing
from observatory.sdk.integrations.crewai_once import WORDS_OF_A_PERSON, Once, guard, unguard
from observatory.sdk.integrations.crewai_runs import Frame, Run, Runs, Work, errors_of, inside, once_of
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
_taken = Lock()  # hooks are CrewAI's own, one list for the process: two observers would say everything twice


_observing = observing(HookAborted)


def _spelled(needs_approval: str | Sequence[str]) -> tuple[str, ...]:
    """The names and globs, also as CrewAI spells them: its hooks know `Pay Invoice` as `pay_invoice`."""
    given = (needs_approval,) if isinstance(needs_approval, str) else tuple(needs_approval)
    return *given, *(_sanitized(one) for one in given if not _PLAIN.fullmatch(one))


def _sanitized(pattern: str) -> str:
    pieces = _GLOB.split(pattern)  # what stands between is at odd places
    return "".join(one if n % 2 else sanitize_tool_name(one) for n, one in enumerate(pieces)) or pattern


class Observer:
    """While it is open, every crew of this process is observed and controlled. Make it before the kickoff.

    `needs_approval`: tools (names or globs) that ask a person first; rules at the gateway hold others.
    `timeout`: how long a verdict may take, in seconds; None: as long as it takes. `cost` prices a model's
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
        if not _taken.acquire(blocking=False):
            raise NotSupported("another Observer watches the crews of this process already: close that first")
        try:
            self._outbox = Outbox("crewai", find_door(url, key, data), delivery or Delivery())
            self._runs = Runs(self._outbox, Terms(_spelled(needs_approval), timeout, cost), version, cluster)
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
            _taken.release()
            raise
        self._open = True

    @property
    def session_id(self) -> str | None:
        """Of the latest kickoff."""
        return self._sessions[-1] if self._sessions else None

    def close(self, timeout: float | None = None) -> bool:
        """Let go of the hooks, send what can be sent, spool the rest; True if nothing is left."""
        if not self._open:
            return True
        self._open = False
        for point, hook in self._hooks.items():
            unregister(getattr(InterceptionPoint, point), hook)
        try:
            self._runs.close()
            return self._outbox.close(timeout)
        finally:
            _taken.release()

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
        run.last.miss(ctx.error)
        why = run.ended_by or (str(ctx.error) if ctx.error is not None else "")
        told = why if has_failed else getattr(ctx.output, "raw", None)
        run.last.course.said(
            f"{'End' if run.ended_by else 'Give up' if has_failed else 'Finish'} the crew's work",
            status="failure" if has_failed else "success",
            terminal=True,
            tool_output_summary=wording.clip(told) if told else None,
        )

    # A task.

    @_observing
    def _task_begins(self, ctx: Any) -> None:
        if ctx.kind != "task" or ctx.agent is None:
            return
        run, work = self._runs.work(None, ctx.task, ctx.agent)
        self._attach(ctx.agent)
        work.prompts += self._ready(run, work)
        wanted = getattr(ctx.task, "expected_output", None)
        why = [wording.clip(f"Expected: {wanted}")] if wanted else None
        work.course.said(f"Begin: {ctx.step_name}", status="pending", reasoning_chain=why)

    @_observing
    def _task_ends(self, ctx: Any) -> None:
        if ctx.kind != "task" or ctx.agent is None:
            return
        run, work = self._runs.work(None, ctx.task, ctx.agent)
        self._hear(work)
        raw = getattr(ctx.output, "raw", None)
        summary = wording.clip(raw) if raw else None
        work.course.said(f"Finish: {ctx.step_name}", tool_output_summary=summary)
        run.done(work)

    def _attach(self, agent: Any) -> None:
        """An executor copies the hooks there are when it is made: one older than we are has none of ours."""
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
        """Waits while the agent is paused or stopped; then what people injected is the model's to read."""
        if not self._open or (found := self._work_of(ctx)) is None:
            return
        run, work = found
        self._drop_stale(work)
        self._missed(work)
        prompts, work.prompts = work.prompts, []
        for prompt in [*prompts, *self._ready(run, work)]:
            ctx.messages.append({"role": "user", "content": prompt.text})
        self._runs.meet(ctx.llm)
        work.ask(ctx.llm)

    @_observing
    def _after_model(self, ctx: Any) -> None:
        if self._open and (found := self._work_of(ctx)) is not None:
            self._hear(found[1], ctx.response)

    def _hear(self, work: Work, response: Any = None, *calls: str) -> None:
        """Apart: what cannot be said of a turn neither closes a gate nor keeps a pause from holding."""
        try:
            work.hear(self._runs.spent, response, calls)
        except Exception:
            log.exception("crewai: what the model did was not recorded")

    def _missed(self, work: Work) -> None:
        try:
            work.miss()
        except Exception:
            log.exception("crewai: that the model was asked in vain was not recorded")

    def _work_of(self, ctx: Any) -> tuple[Run, Work] | None:
        """Whose call it is; None of one that no agent made."""
        if ctx.agent is None:
            return None
        if ctx.task is None:
            run = self._runs.of(ctx.crew, ctx.agent)
            if (known := run.of_agent(ctx.agent)) is not None:
                return run, known
        return self._runs.work(ctx.crew, ctx.task, ctx.agent)

    def _ready(self, run: Run, work: Work) -> list[Any]:
        try:
            if run.ended_by is None:
                return work.course.ready()
        except Cancelled as cancelled:
            run.ended_by = str(cancelled)
        raise HookAborted(run.ended_by or "", source="observatory")

    # A tool.

    def _before_tool(self, ctx: Any) -> bool | None:
        """False blocks the call; why is what the model is told in its place."""
        try:
            return self._permit(ctx)
        except Exception as error:  # whatever it is, a gate that failed is closed
            log.exception("crewai: a tool call was blocked: the gate before it failed")
            why = f"It was not run: the gate before it failed ({type(error).__name__})."
            inside.set(Frame(None, None, why, getattr(ctx, "tool_input", None)))
            return False

    def _permit(self, ctx: Any) -> bool | None:
        run, work = self._runs.work(ctx.crew, ctx.task, ctx.agent)
        self._hear(work, None, wording.tool_name(ctx.tool_name))
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
            # Of a call without any input CrewAI shows us an object that it does not pass on.
            told = wording.clip(call.args)
            refusal = f"{call.tool} was not run: a person wants it called with {told} instead."
            work.course.end(call, error=refusal)
        frame = Frame(work, call if refusal is None else None, refusal, given)
        inside.set(frame)
        if frame.call is not None and frame.call.approval.verdict in WORDS_OF_A_PERSON:
            frame.once = Once(ctx.tool)
            guard(ctx.tool, once_of)
        if call is None or refusal is not None:
            return False
        if call.edited:
            given.clear()
            given.update(call.args)
        return None

    def _after_tool(self, ctx: Any) -> str | None:
        """Says what came of it; the text it gives is what the model reads."""
        try:
            return self._outcome(ctx)
        except Exception:  # the tool has run
            log.exception("crewai: what came of a tool call was not recorded")
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
                self._hear(work)
                frame.call.line.join(work.course.line)
            result = ctx.tool_result
            has_failed = errors_of(frame.task) > frame.errors and "error" in str(result)[:200].lower()
            frame.work.course.end(frame.call, None if has_failed else result, result if has_failed else None)
        return frame.refusal

    def _drop_stale(self, work: Work) -> None:
        """Who asks its model again is in no call any more: one whose end CrewAI did not tell is let go."""
        frame = inside.get()
        while frame is not None and frame.work is work:
            if frame.once is not None:
                unguard(frame.once.tool)
            frame = frame.above
        inside.set(frame)

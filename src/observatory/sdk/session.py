"""Sessions: which agent recorded which step, and what each step follows from.

Rule: every step names its parents. A session keeps the tip of its branch and moves it with each step; `fork`
starts a second branch from the same point, `join` merges branches, `handoff` passes a branch to another agent
or process. Inside `with session:` the session is the current context's (contextvars), so `agent.step` of
*any* agent called there is recorded on that branch: what one agent does in another's call is a child of that
call.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from observatory.sdk import gate, reminders
from observatory.sdk.approval import Approval
from observatory.sdk.errors import Denied
from observatory.sdk.gate import StepRequest
from observatory.sdk.received import Handoff, Prompt, Received
from observatory.sdk.step import Step, StepFields, new_id, write_log
from observatory.sdk.waiting import Waits, run

if TYPE_CHECKING:
    from observatory.sdk.sender import Sender


class _Shared:
    """State shared by all branches of one session in this process."""

    def __init__(self, trace_id: str, session_id: str) -> None:
        self.lock = threading.Lock()
        self.trace_id = trace_id
        self.session_id = session_id
        self.costs: dict[str, float] = {}  # by agent: cumulative cost is per agent


class SessionBranch:
    """One branch of a session. `Session` and `AsyncSession` add the methods that record steps."""

    def __init__(self, sender: "Sender", shared: _Shared, tips: tuple[str, ...] = ()) -> None:
        self._sender = sender
        self._shared = shared
        self._origin = self._tips = tips
        self._tokens: list[Token[SessionBranch | None]] = []

    @property
    def session_id(self) -> str:
        return self._shared.session_id

    @property
    def trace_id(self) -> str:
        return self._shared.trace_id

    @property
    def tips(self) -> tuple[str, ...]:
        """The steps the next one will name as its parents."""
        return self._tips

    def fork(self) -> Self:
        """A second branch from here; its first step has the same parent as this branch's next one."""
        return type(self)(self._sender, self._shared, self._tips)

    def at(self, *tips: str) -> Self:
        """A branch of this session that continues from these steps, in the order given."""
        return type(self)(self._sender, self._shared, tuple(dict.fromkeys(tips)))

    def join(self, *lines: "SessionBranch") -> Self:
        """Merge these branches: this branch's next step has all their tips as parents."""
        moved = [line for line in lines if line._tips != line._origin]
        if any(line._shared.session_id != self.session_id for line in lines):
            raise ValueError("only lines of one session can be joined; use handoff() to continue another's")
        with self._shared.lock:
            keeps_own_tips = not moved or self._tips not in [line._origin for line in moved]
            tips = [*(self._tips if keeps_own_tips else ()), *(tip for line in moved for tip in line._tips)]
            self._tips = tuple(dict.fromkeys(tips))
        return self

    def handoff(self) -> Handoff:
        """What another agent needs to continue from here: `other.session(continues=…)`."""
        return Handoff(trace_id=self.trace_id, session_id=self.session_id, parent_step_ids=[*self._tips])

    def record(self, sender: "Sender", intent: str, step_id: str | None, fields: Mapping[str, Any]) -> Step:
        """Write one step of `sender` at the tip of this branch. The lock keeps parents ahead of children."""
        shared, step_id = self._shared, step_id or new_id()
        step = Step(sender.outbox, step_id, shared.session_id)
        with shared.lock:
            meta: dict[str, Any] = {
                "trace_id": shared.trace_id,
                "step_id": step_id,
                "session_id": shared.session_id,
                "parent_step_id": self._tips[0] if self._tips else None,
                "cluster_id": sender.cluster,
            }
            if len(self._tips) > 1:
                meta["parent_step_ids"] = self._tips
            if fields.get("tool_call") and fields.get("status", "success") in RAN and sender.is_gateway_away:
                fields = {**fields, "gateway_away": True}
            total = self._total_cost(sender.agent_id, fields.get("cost"))
            sender.outbox.put(write_log(meta, sender.identity, total, intent, **fields), step)
            self._tips = (step_id,)
            if total is not None:
                shared.costs[sender.agent_id] = total
        return step

    @contextmanager
    def advance(self, step_id: str) -> Iterator[tuple[str, ...]]:
        """For messages that are not steps: yields the parents, then moves the tip."""
        with self._shared.lock:
            yield self._tips
            self._tips = (step_id,)

    def retreat(self, step_id: str, tips: tuple[str, ...]) -> None:
        """Continue from `tips` instead, unless more was recorded since."""
        with self._shared.lock:
            if self._tips == (step_id,):
                self._tips = tips

    def prompts(self) -> list[Prompt]:
        """What people have injected into this session since this was last asked, oldest first."""
        self._sender.auto_listen()
        return self._sender.orders.take_prompts(self.session_id)

    def context(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """A chat's messages with what was injected into this session at their end."""
        return [*messages, *({"role": "user", "content": prompt.text} for prompt in self.prompts())]

    def _total_cost(self, agent_id: str, cost: float | None) -> float | None:
        spent = self._shared.costs.get(agent_id)
        try:
            total = math.nan if cost is None else (spent or 0.0) + float(cost)
        except (TypeError, ValueError):  # not a number: the gateway will say so
            return spent
        return round(total, 10) if math.isfinite(total) else spent  # no 0.30000000000000004

    def _here(self) -> tuple["SessionBranch", "Sender"]:
        return self, self._sender

    @contextmanager
    def here(self) -> Iterator[None]:
        """Steps recorded inside belong to this branch, whichever agent records them."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def _enter(self) -> None:
        self._tokens.append(_current.set(self))

    def _leave(self) -> None:
        _current.reset(self._tokens.pop())


class StepMethods:
    """The methods agents and sessions share; `_here` gives the branch and the sender."""

    def _here(self) -> tuple[SessionBranch, "Sender"]:
        raise NotImplementedError

    def step(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Step:
        """Record what was done in this session; called on an agent, in the current session, else in the
        agent's own. Returns at once.

        It waits in two cases only: while the agent is known to be paused or stopped, and with
        `hitl_required=True` for the verdict: `step.verdict` when approved or edited, else `Denied`, also when
        no verdict arrived within `timeout`. Raises `Cancelled` when a person cancelled this work.
        """
        return run(gate.take_step(StepRequest(*self._here(), intent, step_id, fields, timeout)))

    def ask(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask a person before doing it: `if ok := agent.ask("Deploy", tool_input=plan): run(ok.tool_input)`.

        Like a step with `hitl_required=True`, but a refusal is returned, not raised. No verdict within
        `timeout` is a refusal. A person may have edited it: use `tool_call` and `tool_input` of the approval.
        """
        return run(gate.ask(StepRequest(*self._here(), intent, step_id, fields, timeout)))

    def permit(
        self,
        intent: str,
        *,
        needs_approval: bool = False,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask whether an action is allowed before doing it, and use the approval as with `ask`.

        The gateway's rules decide; a person decides when a rule holds it, when a step it follows from is
        held, or with `needs_approval=True`: then it waits, at most `timeout`. If the gateway is unreachable,
        or does not answer within 5 s, the action is allowed (verdict `gateway_away`); with `needs_approval`
        it is not.
        """
        return run(gate.permit(StepRequest(*self._here(), intent, step_id, fields, timeout), needs_approval))

    def remind(
        self,
        *,
        in_s: float | None = None,
        at: datetime | str | None = None,
        payload: Any = None,
        intent: str = reminders.INTENT,
    ) -> Step:
        """Request a reminder in this session after `in_s` seconds or at a time: at most a year ahead, at once
        if the time has passed. It arrives as a message (`is_reminder`, `payload`) to this agent, also after
        either side restarts. Returns at once; `answer()` raises `Rejected` when the gateway refuses."""
        request = StepRequest(*self._here(), intent, None, reminders.fields(in_s, at, payload), None)
        return run(gate.take_step(request))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> "ToolCall":
        """`with s.tool("serp_search", {...}) as call:` times the call and records it, failed if it raised."""
        return ToolCall(*self._here(), tool_call, tool_input, intent)


class Session(SessionBranch, StepMethods):
    """A session as a synchronous agent sees it; also what `fork` returns."""

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(self, *exc: object) -> None:
        self._leave()


class ToolCall:
    """A tool call being timed. Set `output` (and any step field in `fields`) before it ends."""

    def __init__(
        self,
        line: SessionBranch,
        sender: "Sender",
        tool_call: str,
        tool_input: Any,
        intent: str | None,
    ) -> None:
        self._line = line
        self._sender = sender
        self._intent = intent or f"Call {tool_call}"
        self._started_ns = 0
        self.output: str | None = None
        self.fields: StepFields = {"tool_call": tool_call, "tool_input": tool_input}
        self.step: Step | None = None

    def __enter__(self) -> Self:
        run(self._before())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.step = run(gate.record_step(self._done(exc)))

    def _before(self) -> Waits[None]:
        """A paused agent waits here, before the tool is called."""
        self._sender.auto_listen()
        yield from gate.wait_while_held(self._sender, self._line.session_id)
        if self._sender.is_gateway_away:
            if self._sender.on_away == "deny":
                raise Denied(gate.GATEWAY_AWAY, gate.FORBIDDEN_AWAY)
            self.fields["gateway_away"] = True
        self._started_ns = time.perf_counter_ns()

    def _done(self, exc: BaseException | None) -> StepRequest:
        """What was done is recorded, paused or not."""
        fields = self.fields
        fields["duration_ms"] = (time.perf_counter_ns() - self._started_ns) // 1_000_000
        if exc is not None:
            fields["status"] = "failure"
            self.output = self.output or f"{type(exc).__name__}: {exc}"[:500]
        if self.output is not None:
            fields["tool_output_summary"] = self.output
        return StepRequest(self._line, self._sender, self._intent, None, fields)


# Statuses of a tool that ran.
RAN = ("success", "failure")
_current: ContextVar[SessionBranch | None] = ContextVar("observatory_line", default=None)


def current_line() -> SessionBranch | None:
    """The current session, if any."""
    return _current.get()


def open_line(
    continues: "SessionBranch | Handoff | Received | None", session_id: str | None
) -> tuple[_Shared, tuple[str, ...]]:
    """A new session, or the continuation of another branch, a handoff or a received message."""
    if isinstance(continues, SessionBranch):
        return continues._shared, continues._tips
    if isinstance(continues, Received):
        continues = continues.handoff()
    if continues is not None:
        return _Shared(continues["trace_id"], continues["session_id"]), tuple(continues["parent_step_ids"])
    trace_id = new_id()
    return _Shared(trace_id, session_id or trace_id), ()

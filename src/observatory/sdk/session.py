"""Sessions: who said what after what.

Law: every step names its parents. A session keeps the tip of its line of thought and moves it with each
step; `fork` starts a second line from the same point, `join` brings lines together, `handoff` carries a
line to another agent or process. Inside `with session:` the session is the context's own (contextvars),
so `agent.step` of *any* agent called there goes on that line: what one agent does in another's call is
a child of that call.
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
from observatory.sdk.gate import Said
from observatory.sdk.received import Handoff, Prompt, Received
from observatory.sdk.step import Step, StepFields, new_id, write_log
from observatory.sdk.waiting import Waits, run

if TYPE_CHECKING:
    from observatory.sdk.speaker import Speaker


class _Shared:
    """What all lines of one session have in common in this process."""

    def __init__(self, trace_id: str, session_id: str) -> None:
        self.lock = threading.Lock()
        self.trace_id = trace_id
        self.session_id = session_id
        self.costs: dict[str, float] = {}  # by agent: a cumulative figure is one agent's own


class Line:
    """One line of thought in a session. `Session` and `AsyncSession` give it its words."""

    def __init__(self, speaker: "Speaker", shared: _Shared, tips: tuple[str, ...] = ()) -> None:
        self._speaker = speaker
        self._shared = shared
        self._origin = self._tips = tips
        self._tokens: list[Token[Line | None]] = []

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
        """A second line from here; its first step has the same parent as this line's next one."""
        return type(self)(self._speaker, self._shared, self._tips)

    def at(self, *tips: str) -> Self:
        """A line of this session that goes on from these steps, in the order told."""
        return type(self)(self._speaker, self._shared, tuple(dict.fromkeys(tips)))

    def join(self, *lines: "Line") -> Self:
        """Bring these lines together: this line's next step has all their tips as parents."""
        moved = [line for line in lines if line._tips != line._origin]
        if any(line._shared.session_id != self.session_id for line in lines):
            raise ValueError("only lines of one session can be joined; use handoff() to continue another's")
        with self._shared.lock:
            stood = not moved or self._tips not in [line._origin for line in moved]
            tips = [*(self._tips if stood else ()), *(tip for line in moved for tip in line._tips)]
            self._tips = tuple(dict.fromkeys(tips))
        return self

    def handoff(self) -> Handoff:
        """What another agent needs to go on from here: `other.session(continues=…)`."""
        return Handoff(trace_id=self.trace_id, session_id=self.session_id, parent_step_ids=[*self._tips])

    def record(self, speaker: "Speaker", intent: str, step_id: str | None, fields: Mapping[str, Any]) -> Step:
        """Write one step of `speaker` at the tip of this line. The lock keeps parents ahead of children."""
        shared, step_id = self._shared, step_id or new_id()
        step = Step(speaker.outbox, step_id, shared.session_id)
        with shared.lock:
            meta: dict[str, Any] = {
                "trace_id": shared.trace_id,
                "step_id": step_id,
                "session_id": shared.session_id,
                "parent_step_id": self._tips[0] if self._tips else None,
                "cluster_id": speaker.cluster,
            }
            if len(self._tips) > 1:
                meta["parent_step_ids"] = self._tips
            if fields.get("tool_call") and fields.get("status", "success") in RAN and speaker.is_alone:
                fields = {**fields, "gateway_away": True}
            total = self._total_cost(speaker.agent_id, fields.get("cost"))
            speaker.outbox.put(write_log(meta, speaker.identity, total, intent, **fields), step)
            self._tips = (step_id,)
            if total is not None:
                shared.costs[speaker.agent_id] = total
        return step

    @contextmanager
    def advance(self, step_id: str) -> Iterator[tuple[str, ...]]:
        """For what is written otherwise: gives the parents, and has moved the tip when it was said."""
        with self._shared.lock:
            yield self._tips
            self._tips = (step_id,)

    def retreat(self, step_id: str, tips: tuple[str, ...]) -> None:
        """Go on from `tips` instead, unless more was said since."""
        with self._shared.lock:
            if self._tips == (step_id,):
                self._tips = tips

    def prompts(self) -> list[Prompt]:
        """What people have injected into this session since this was last asked, oldest first."""
        self._speaker.hear()
        return self._speaker.orders.take_prompts(self.session_id)

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

    def _here(self) -> tuple["Line", "Speaker"]:
        return self, self._speaker

    @contextmanager
    def here(self) -> Iterator[None]:
        """Code that runs in it belongs to this line, whichever agent says it."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def _enter(self) -> None:
        self._tokens.append(_current.set(self))

    def _leave(self) -> None:
        _current.reset(self._tokens.pop())


class Words:
    """What agents and sessions say alike; each knows on which line, and by whom."""

    def _here(self) -> tuple[Line, "Speaker"]:
        raise NotImplementedError

    def step(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Step:
        """Say what was done, on this session's line; an agent's words go on the line of the session this code
        runs in, else of its own. Returns at once.

        It waits in two cases only: while the agent is known to be paused or stopped, and with
        `hitl_required=True` for the verdict: `step.verdict` when approved or edited, else `Denied`, also when
        none came within `timeout`. Raises `Cancelled` when a person ended this work.
        """
        return run(gate.say(Said(*self._here(), intent, step_id, fields, timeout)))

    def ask(
        self,
        intent: str,
        *,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask a person before doing it: `if ok := agent.ask("Deploy", tool_input=plan): run(ok.tool_input)`.

        As a step with `hitl_required=True`, but a no is a value. No verdict within `timeout` is a no.
        A person may have changed it: do what `tool_call` and `tool_input` of the approval say.
        """
        return run(gate.ask(Said(*self._here(), intent, step_id, fields, timeout)))

    def permit(
        self,
        intent: str,
        *,
        needs_approval: bool = False,
        step_id: str | None = None,
        timeout: float | None = None,
        **fields: Unpack[StepFields],
    ) -> Approval:
        """Ask before doing it whether it may be done, and do what the approval says, as with `ask`.

        The gateway's rules answer; a person does where a rule holds it, where something it follows from is
        held, or with `needs_approval=True`: then it waits, at most `timeout`. A gateway that is away, or says
        nothing for 5 s, forbids nothing (verdict `gateway_away`), but with `needs_approval` it is a no.
        """
        return run(gate.permit(Said(*self._here(), intent, step_id, fields, timeout), needs_approval))

    def remind(
        self,
        *,
        in_s: float | None = None,
        at: datetime | str | None = None,
        payload: Any = None,
        intent: str = reminders.INTENT,
    ) -> Step:
        """Ask to be spoken to in this session after `in_s` seconds or at a time: at most a year ahead, at
        once if it is over. It comes as a message (`is_reminder`, `payload`) to this agent, also after a
        restart of either side. Returns at once; `answer()` raises `Rejected` when the gateway refuses."""
        said = Said(*self._here(), intent, None, reminders.fields(in_s, at, payload), None)
        return run(gate.say(said))

    def tool(self, tool_call: str, tool_input: Any = None, *, intent: str | None = None) -> "ToolCall":
        """`with s.tool("serp_search", {...}) as call:` times the call and records it, failed if it raised."""
        return ToolCall(*self._here(), tool_call, tool_input, intent)


class Session(Line, Words):
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
        line: Line,
        speaker: "Speaker",
        tool_call: str,
        tool_input: Any,
        intent: str | None,
    ) -> None:
        self._line = line
        self._speaker = speaker
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
        self.step = run(gate.tell(self._done(exc)))

    def _before(self) -> Waits[None]:
        """A paused agent waits here, before the tool is called."""
        self._speaker.hear()
        yield from gate.pass_by(self._speaker, self._line.session_id)
        if self._speaker.is_alone:
            if self._speaker.on_away == "deny":
                raise Denied(gate.GATEWAY_AWAY, gate.FORBIDDEN_AWAY)
            self.fields["gateway_away"] = True
        self._started_ns = time.perf_counter_ns()

    def _done(self, exc: BaseException | None) -> Said:
        """What was done is said, paused or not."""
        fields = self.fields
        fields["duration_ms"] = (time.perf_counter_ns() - self._started_ns) // 1_000_000
        if exc is not None:
            fields["status"] = "failure"
            self.output = self.output or f"{type(exc).__name__}: {exc}"[:500]
        if self.output is not None:
            fields["tool_output_summary"] = self.output
        return Said(self._line, self._speaker, self._intent, None, fields)


# What a tool that was run came to.
RAN = ("success", "failure")
_current: ContextVar[Line | None] = ContextVar("observatory_line", default=None)


def current_line() -> Line | None:
    """The session this context runs in, if any."""
    return _current.get()


def open_line(
    continues: "Line | Handoff | Received | None", session_id: str | None
) -> tuple[_Shared, tuple[str, ...]]:
    """A new session, or the end of another's line to go on from; what was received is such an end."""
    if isinstance(continues, Line):
        return continues._shared, continues._tips
    if isinstance(continues, Received):
        continues = continues.handoff()
    if continues is not None:
        return _Shared(continues["trace_id"], continues["session_id"]), tuple(continues["parent_step_ids"])
    trace_id = new_id()
    return _Shared(trace_id, session_id or trace_id), ()

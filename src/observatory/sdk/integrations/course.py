"""`Course`: one session built from a framework's callbacks: model turns and their tool calls.

Rule: before a model call, `ready` waits while the agent is paused or stopped and returns injected prompts.
`said` records what the model did. Each tool call is a separate branch from there: `begin` asks for
permission, `end` records the result as a child of the permitted step; the next turn joins the ended branches.
So a call that waits for a person does not delay its siblings. If a person edited the input, the edited input
runs or nothing does. Every wait is written once (see `waiting`) and has an async version, `a…`.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import wraps
from threading import Lock
from typing import Any, NamedTuple, ParamSpec, TypeVar, Unpack

from observatory.sdk import gate
from observatory.sdk.answers import Answer
from observatory.sdk.approval import Approval
from observatory.sdk.errors import Denied
from observatory.sdk.gate import StepRequest
from observatory.sdk.integrations import wording
from observatory.sdk.received import Prompt, decoded
from observatory.sdk.sender import Sender
from observatory.sdk.session import SessionBranch, current_line, open_line
from observatory.sdk.step import Step, StepFields, new_id, written_input
from observatory.sdk.waiting import Waits, run, run_async

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger("observatory.sdk")
MAX_THOUGHTS = 100
MAX_COURSES = 1_000  # conversations remembered; a forgotten one continues without its last step
OVER_BUDGET = 402


def observing(*through: type[Exception]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """For a hook that only observes: its errors are logged and never reach the agent. Exceptions in `through`
    carry orders and are raised."""

    def guard(hook: Callable[P, None]) -> Callable[P, None]:
        @wraps(hook)
        def guarded(*args: P.args, **given: P.kwargs) -> None:
            try:
                hook(*args, **given)
            except through:
                raise
            except Exception:  # any error: the agent continues
                log.exception("the event at %s was not recorded", hook.__qualname__)

        return guarded

    return guard


class Usage(NamedTuple):
    """What one model call used, as reported by the framework; None where unknown."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True)
class Terms:
    """Approval terms of an agent's tools: which ask a person first (names or globs such as `pay_*`), and how
    long a verdict may take (None: no limit). `cost` returns the price of a model call, in your currency."""

    needs_approval: str | Iterable[str] = ()
    timeout: float | None = None
    cost: Callable[[Usage], float | None] | None = None

    def __post_init__(self) -> None:
        """A single name becomes a list of one (its letters would gate nothing); a generator is read once."""
        given = self.needs_approval
        object.__setattr__(self, "needs_approval", (given,) if isinstance(given, str) else tuple(given))

    def asks(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.needs_approval)

    def price(self, usage: Usage) -> float | None:
        """The price of a call, if known; an error in `cost` does not stop the agent."""
        if self.cost is None:
            return None
        try:
            return self.cost(usage)
        except Exception:
            log.exception("the cost of a model call is unknown: `cost` failed")
            return None


class GatedCall:
    """One tool call. It may run with `args` when `refusal` is None; otherwise `refusal` is the message to the
    model. `edited`: a person replaced the requested arguments by `args`."""

    def __init__(
        self,
        line: SessionBranch,
        tool: str,
        args: Any,
        approval: Approval,
        refusal: str | None,
        edited: bool = False,
    ) -> None:
        self.line = line
        self.tool = tool
        self.args = args
        self.approval = approval
        self.refusal = refusal
        self.edited = edited
        self.step: Step | None = None
        """The step recorded at its end."""
        self.started_ns = time.perf_counter_ns()

    def __bool__(self) -> bool:
        return self.refusal is None


class Course:
    def __init__(self, sender: Sender, line: SessionBranch | None = None, terms: Terms | None = None) -> None:
        self.sender = sender
        self.line = line or SessionBranch(sender, *open_line(None, None))
        self.terms = terms or Terms()
        self._lock = Lock()
        self._ended: list[SessionBranch] = []
        self._last: Step | None = None

    @property
    def session_id(self) -> str:
        return self.line.session_id

    # Before and after a model call.

    def wait(self) -> None:
        """Wait while paused or stopped. Raises `Cancelled`."""
        run(self._wait())

    async def await_(self) -> None:
        await run_async(self._wait())

    def ready(self) -> list[Prompt]:
        """Wait while paused or stopped; then return the prompts injected since. Raises `Cancelled`."""
        run(self._wait())
        return self.sender.orders.take_prompts(self.session_id)  # the branch may be another agent's

    async def aready(self) -> list[Prompt]:
        await run_async(self._wait())
        return self.sender.orders.take_prompts(self.session_id)  # the branch may be another agent's

    def said(self, intent: str, **fields: Unpack[StepFields]) -> Step:
        """Record what was done, paused or not, as a child of all ended branches. Never waits."""
        with self._lock:
            self._gather()
            self._last = step = self._record(self.line, intent, fields)
        return step

    def thought(
        self,
        usage: Usage,
        calls: Sequence[str],
        text: Any = None,
        *,
        reasoning: Sequence[str] | None = None,
        started_ns: int | None = None,
    ) -> Step:
        """Record a model's answer: text or tool calls. Tokens and cost only where known."""
        fields: StepFields = {"tokens_consumed": usage.total_tokens}
        if usage.total_tokens is None:
            fields["tokens_consumed"] = wording.tokens(usage.input_tokens, usage.output_tokens)
        if (cost := self.terms.price(usage)) is not None:
            fields["cost"] = cost
        if text:
            fields["tool_output_summary"] = wording.clip(text)
        if reasoning:
            fields["reasoning_chain"] = [wording.clip(one) for one in reasoning[:MAX_THOUGHTS]]
        if started_ns is not None:
            fields["duration_ms"] = (time.perf_counter_ns() - started_ns) // 1_000_000
        return self.said(f"Decided to call {', '.join(calls)}" if calls else "Answered", **fields)

    def failed(self, error: BaseException, started_ns: int | None = None) -> Step:
        """Record that a model call failed."""
        fields: StepFields = {"status": "failure", "tool_output_summary": wording.failure(error)}
        if started_ns is not None:
            fields["duration_ms"] = (time.perf_counter_ns() - started_ns) // 1_000_000
        return self.said("Failed to ask the model", **fields)

    def gather(self) -> None:
        """Join the ended calls without recording a step: for adapters that see no model turns."""
        with self._lock:
            self._gather()

    # A tool call.

    def begin(self, tool: str, args: Any = None, *, intent: str | None = None) -> GatedCall:
        """Ask whether the tool may run. Raises `Cancelled`; a refused call is false in an `if`."""
        return run(self._begin(tool, args, intent))

    async def abegin(self, tool: str, args: Any = None, *, intent: str | None = None) -> GatedCall:
        return await run_async(self._begin(tool, args, intent))

    def end(self, call: GatedCall, output: Any = None, error: BaseException | str | None = None) -> Step:
        """Record the result of a call that ran. Never waits. The tool is named only in the text: a
        `tool_call` would be held or denied by rules about the tool, although the call was permitted."""
        fields: StepFields = {
            "status": "success" if error is None else "failure",
            "duration_ms": (time.perf_counter_ns() - call.started_ns) // 1_000_000,
        }
        if error is not None:
            output = wording.failure(error)
        if output is not None:
            fields["tool_output_summary"] = wording.clip(output)
        word = "Called" if error is None else "Failed to call"
        if call.approval.verdict == gate.GATEWAY_AWAY and call.refusal is None:
            fields["gateway_away"] = True
        call.step = self._record(call.line, f"{word} {call.tool}", fields)
        with self._lock:
            self._ended.append(call.line)
        return call.step

    def govern(self, tool: str, args: Any, do: Callable[[Any], T], refuse: Callable[[str], T]) -> T:
        """Run `do` with the permitted arguments and record the result; else return `refuse(reason)`."""
        call = self.begin(tool, args)
        if call.refusal is not None:
            return refuse(call.refusal)
        try:
            with call.line.here():
                result = do(call.args)
        except BaseException as failed:
            self.end(call, error=failed)
            raise
        self.end(call, result)
        return result

    async def agovern(
        self, tool: str, args: Any, do: Callable[[Any], Awaitable[T]], refuse: Callable[[str], T]
    ) -> T:
        call = await self.abegin(tool, args)
        if call.refusal is not None:
            return refuse(call.refusal)
        try:
            with call.line.here():
                result = await do(call.args)
        except BaseException as failed:
            self.end(call, error=failed)
            raise
        self.end(call, result)
        return result

    # Handover to another agent.

    def hand_over(self, name: str, other: Sender | None = None) -> None:
        """Record a handover to another agent: a message to `other`, which rules may hold or deny. The other's
        next step follows from it. Raises `Denied` and `Cancelled`."""
        run(self._hand_over(name, other))

    async def ahand_over(self, name: str, other: Sender | None = None) -> None:
        await run_async(self._hand_over(name, other))

    # Implementation.

    def _hand_over(self, name: str, other: Sender | None) -> Waits[None]:
        self.gather()
        if other is None:
            self._record(self.line, f"Handed over to {name}", {})
            return
        intent = wording.clip(f"Hand over to {name}", wording.INTENT_CHARS)
        fields: StepFields = {"recipient": other.agent_id}
        request = StepRequest(self.line, self.sender, intent, None, fields, self.terms.timeout)
        approval = yield from gate.permit(request)
        if not approval:
            raise Denied(approval.verdict, approval.note, approval.by, approval.step)
        if approval.step is not None:  # the work continues in this process: it need not be read from an inbox
            other.orders.settle_message(approval.step.session_id, approval.step.step_id)
        self._record(self.line, f"Handed over to {name}", {})

    def _gather(self) -> None:
        self.line.join(*self._ended)
        self._ended.clear()

    def _wait(self) -> Waits[None]:
        self.sender.auto_listen()
        yield from gate.wait_while_held(self.sender, self.session_id)

    def _begin(self, tool: str, args: Any, intent: str | None) -> Waits[GatedCall]:
        tool = wording.tool_name(tool)
        with self._lock:
            branch = self.line.fork()
        sent = wording.bounded_input(args)
        asked = decoded(written_input(sent))  # as a person sees it, even if the agent changes `args` later
        fields: StepFields = {"tool_call": tool, "tool_input": sent}
        request = StepRequest(branch, self.sender, intent or f"Call {tool}", None, fields, self.terms.timeout)
        approval = yield from gate.permit(request, self.terms.asks(tool))
        given, refusal = self._judge(tool, args, asked, approval)
        return GatedCall(branch, tool, given, approval, refusal, refusal is None and given is not args)

    def _judge(self, tool: str, args: Any, asked: Any, approval: Approval) -> tuple[Any, str | None]:
        """The arguments to run with, or the reason not to run."""
        if not approval:
            return None, wording.refusal(tool, approval)
        if (refused := self._over_budget()) is not None:
            return None, wording.refusal(tool, refused)
        if not approval.edited:
            return args, None
        if approval.tool_call != tool:
            return None, wording.changed_tool(tool, approval)
        if approval.tool_input == asked:  # another part of the message was edited
            return args, None
        if wording.is_abridged(approval.tool_input):
            return None, wording.changed_abridged(tool)
        if isinstance(args, dict) and not isinstance(approval.tool_input, dict):
            return None, wording.changed_shape(tool)
        return approval.tool_input, None

    def _over_budget(self) -> Approval | None:
        """The cap that refused the turn's cost; known before the permit, because order is kept."""
        outcome = self._last.outcome if self._last is not None else None
        if isinstance(outcome, Answer) and outcome.code == OVER_BUDGET:
            return Approval(False, "budget_exceeded", outcome.cap)
        return None

    def _record(self, line: SessionBranch, intent: str, fields: StepFields) -> Step:
        self.sender.auto_listen()
        return run(
            gate.record_step(
                StepRequest(line, self.sender, wording.clip(intent, wording.INTENT_CHARS), None, fields)
            )
        )


class Courses:
    """The courses of one agent, by the framework's conversation name."""

    def __init__(self, sender: Sender, terms: Terms | None = None) -> None:
        self.sender = sender
        self.terms = terms or Terms()
        self._lock = Lock()
        self._known: OrderedDict[str, Course] = OrderedDict()

    def enter(self, thread: Any = None) -> str:
        """The key of a new run: in the current session (`with session:`, or a tool that another agent calls,
        whose step is then its parent), else in the thread's session, else in a new one."""
        line = current_line()
        if line is None:
            return wording.session_name(new_id() if thread is None else thread)
        key = f"{line.session_id}/{new_id()}"  # not a session id: an agent may call itself
        self._keep(key, Course(self.sender, line, self.terms))
        return key

    def of(self, key: str) -> Course:
        """The course of that key, continued or, if unknown, created."""
        with self._lock:
            known = self._known.get(key)
        if known is None:
            line = SessionBranch(self.sender, *open_line(None, key.partition("/")[0]))
            known = Course(self.sender, line, self.terms)
        return self._keep(key, known)

    def _keep(self, key: str, course: Course) -> Course:
        with self._lock:
            course = self._known.pop(key, course)
            self._known[key] = course
            while len(self._known) > MAX_COURSES:
                self._known.popitem(last=False)
        return course

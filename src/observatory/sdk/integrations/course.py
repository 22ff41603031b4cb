"""One session as a framework's callbacks tell it: turns of the model, and the tool calls each turn asked for.

Law: before a model is asked, `ready`: it waits while the agent is paused or stopped, and gives what people
injected. What the model did is `said`. Each tool call is a branch of its own from there: `begin` asks for the
permit, `end` says what came of it, as a child of what was permitted; the next turn joins the branches that
ended. So one call that waits for a person holds up none of its siblings. Whatever a person edited is what is
run, or nothing is. Every wait is written once (see `waiting`) and has an async twin, `a…`.
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
from observatory.sdk.gate import Said
from observatory.sdk.integrations import wording
from observatory.sdk.received import Prompt, decoded
from observatory.sdk.session import Line, current_line, open_line
from observatory.sdk.speaker import Speaker
from observatory.sdk.step import Step, StepFields, new_id, written_input
from observatory.sdk.waiting import Waits, run, run_async

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger("observatory.sdk")
MOST_THOUGHTS = 100
MOST_COURSES = 1_000  # conversations remembered; one that was forgotten goes on without its last step
OVER_BUDGET = 402


def observing(*through: type[Exception]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """For a hook that only observes: it never disturbs the agent's work, and is not silent about having
    failed. What it raises to be obeyed goes `through`."""

    def guard(hook: Callable[P, None]) -> Callable[P, None]:
        @wraps(hook)
        def guarded(*args: P.args, **given: P.kwargs) -> None:
            try:
                hook(*args, **given)
            except through:
                raise
            except Exception:  # whatever it is, the work goes on
                log.exception("what happened at %s was not recorded", hook.__qualname__)

        return guarded

    return guard


class Usage(NamedTuple):
    """What one call of a model used, as far as the framework tells; what it does not is None."""

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True)
class Terms:
    """What an agent's tools need: which ask a person first (names or globs such as `pay_*`), and how long a
    verdict may take (None: as long as it takes). `cost` prices a model's call, in your currency."""

    needs_approval: str | Iterable[str] = ()
    timeout: float | None = None
    cost: Callable[[Usage], float | None] | None = None

    def __post_init__(self) -> None:
        """One name is a list of one (its letters would gate nothing), and a generator is read once."""
        given = self.needs_approval
        object.__setattr__(self, "needs_approval", (given,) if isinstance(given, str) else tuple(given))

    def asks(self, tool: str) -> bool:
        return any(fnmatchcase(tool, pattern) for pattern in self.needs_approval)

    def price(self, usage: Usage) -> float | None:
        """What a call cost, if it can be told: a price list that fails keeps no agent from its work."""
        if self.cost is None:
            return None
        try:
            return self.cost(usage)
        except Exception:
            log.exception("what a model's call cost is not told: `cost` failed")
            return None


class Call:
    """One tool call. It may be run, with `args`, when `refusal` is None; else that is what the model is
    told. `edited`: a person put those `args` in the place of what was asked."""

    def __init__(
        self, line: Line, tool: str, args: Any, approval: Approval, refusal: str | None, edited: bool = False
    ) -> None:
        self.line = line
        self.tool = tool
        self.args = args
        self.approval = approval
        self.refusal = refusal
        self.edited = edited
        self.step: Step | None = None
        """What was said at its end."""
        self.started_ns = time.perf_counter_ns()

    def __bool__(self) -> bool:
        return self.refusal is None


class Course:
    def __init__(self, speaker: Speaker, line: Line | None = None, terms: Terms | None = None) -> None:
        self.speaker = speaker
        self.line = line or Line(speaker, *open_line(None, None))
        self.terms = terms or Terms()
        self._lock = Lock()
        self._ended: list[Line] = []
        self._last: Step | None = None

    @property
    def session_id(self) -> str:
        return self.line.session_id

    # Before and after a model is asked.

    def wait(self) -> None:
        """Wait while paused or stopped. Raises `Cancelled`."""
        run(self._wait())

    async def await_(self) -> None:
        await run_async(self._wait())

    def ready(self) -> list[Prompt]:
        """Wait while paused or stopped; then what people have injected since. Raises `Cancelled`."""
        run(self._wait())
        return self.speaker.orders.take_prompts(self.session_id)  # the line may be another agent's

    async def aready(self) -> list[Prompt]:
        await run_async(self._wait())
        return self.speaker.orders.take_prompts(self.session_id)  # the line may be another agent's

    def said(self, intent: str, **fields: Unpack[StepFields]) -> Step:
        """Say what was done, paused or not, after all that has ended: its parents. Never waits."""
        with self._lock:
            self._gather()
            self._last = step = self._tell(self.line, intent, fields)
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
        """Say what a model answered: words, or calls of tools. Tokens and cost only where they are known."""
        fields: StepFields = {"tokens_consumed": usage.total_tokens}
        if usage.total_tokens is None:
            fields["tokens_consumed"] = wording.tokens(usage.input_tokens, usage.output_tokens)
        if (cost := self.terms.price(usage)) is not None:
            fields["cost"] = cost
        if text:
            fields["tool_output_summary"] = wording.clip(text)
        if reasoning:
            fields["reasoning_chain"] = [wording.clip(one) for one in reasoning[:MOST_THOUGHTS]]
        if started_ns is not None:
            fields["duration_ms"] = (time.perf_counter_ns() - started_ns) // 1_000_000
        return self.said(f"Decided to call {', '.join(calls)}" if calls else "Answered", **fields)

    def failed(self, error: BaseException, started_ns: int | None = None) -> Step:
        """Say that a model could not be asked."""
        fields: StepFields = {"status": "failure", "tool_output_summary": wording.failure(error)}
        if started_ns is not None:
            fields["duration_ms"] = (time.perf_counter_ns() - started_ns) // 1_000_000
        return self.said("Failed to ask the model", **fields)

    def gather(self) -> None:
        """Go on from the calls that have ended, without saying anything: for who sees no turns."""
        with self._lock:
            self._gather()

    # A tool call.

    def begin(self, tool: str, args: Any = None, *, intent: str | None = None) -> Call:
        """Ask whether the tool may be run. Raises `Cancelled`; a no is a call that is false."""
        return run(self._begin(tool, args, intent))

    async def abegin(self, tool: str, args: Any = None, *, intent: str | None = None) -> Call:
        return await run_async(self._begin(tool, args, intent))

    def end(self, call: Call, output: Any = None, error: BaseException | str | None = None) -> Step:
        """Say what came of a call that was run. Never waits. It names the tool only in words: by its name a
        rule that holds or denies calls of the tool would hold or deny what was done with leave."""
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
        call.step = self._tell(call.line, f"{word} {call.tool}", fields)
        with self._lock:
            self._ended.append(call.line)
        return call.step

    def govern(self, tool: str, args: Any, do: Callable[[Any], T], refuse: Callable[[str], T]) -> T:
        """Run `do` with what was permitted and say what came of it; else what `refuse` makes of the why."""
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

    # Another agent goes on.

    def hand_over(self, name: str, other: Speaker | None = None) -> None:
        """Say that another agent goes on from here: to `other` a message, which rules may hold or deny. The
        other's next step follows from it. Raises `Denied` and `Cancelled`."""
        run(self._hand_over(name, other))

    async def ahand_over(self, name: str, other: Speaker | None = None) -> None:
        await run_async(self._hand_over(name, other))

    # How.

    def _hand_over(self, name: str, other: Speaker | None) -> Waits[None]:
        self.gather()
        if other is None:
            self._tell(self.line, f"Handed over to {name}", {})
            return
        intent = wording.clip(f"Hand over to {name}", wording.INTENT_CHARS)
        fields: StepFields = {"recipient": other.agent_id}
        said = Said(self.line, self.speaker, intent, None, fields, self.terms.timeout)
        approval = yield from gate.permit(said)
        if not approval:
            raise Denied(approval.verdict, approval.note, approval.by, approval.step)
        if approval.step is not None:  # it goes on in this process: nobody need read that from an inbox
            other.orders.settle_message(approval.step.session_id, approval.step.step_id)
        self._tell(self.line, f"Handed over to {name}", {})

    def _gather(self) -> None:
        self.line.join(*self._ended)
        self._ended.clear()

    def _wait(self) -> Waits[None]:
        self.speaker.hear()
        yield from gate.pass_by(self.speaker, self.session_id)

    def _begin(self, tool: str, args: Any, intent: str | None) -> Waits[Call]:
        tool = wording.tool_name(tool)
        with self._lock:
            branch = self.line.fork()
        told = wording.told_input(args)
        asked = decoded(written_input(told))  # as a person sees it, whatever the agent does with `args` now
        fields: StepFields = {"tool_call": tool, "tool_input": told}
        said = Said(branch, self.speaker, intent or f"Call {tool}", None, fields, self.terms.timeout)
        approval = yield from gate.permit(said, self.terms.asks(tool))
        given, refusal = self._judge(tool, args, asked, approval)
        return Call(branch, tool, given, approval, refusal, refusal is None and given is not args)

    def _judge(self, tool: str, args: Any, asked: Any, approval: Approval) -> tuple[Any, str | None]:
        """What is run, or why nothing is."""
        if not approval:
            return None, wording.refusal(tool, approval)
        if (broke := self._broke()) is not None:
            return None, wording.refusal(tool, broke)
        if not approval.edited:
            return args, None
        if approval.tool_call != tool:
            return None, wording.changed_tool(tool, approval)
        if approval.tool_input == asked:  # something else of the message was edited
            return args, None
        if wording.is_abridged(approval.tool_input):
            return None, wording.changed_abridged(tool)
        if isinstance(args, dict) and not isinstance(approval.tool_input, dict):
            return None, wording.changed_shape(tool)
        return approval.tool_input, None

    def _broke(self) -> Approval | None:
        """A cap that refused the turn's cost: it was judged before the permit, since order is kept."""
        outcome = self._last.outcome if self._last is not None else None
        if isinstance(outcome, Answer) and outcome.code == OVER_BUDGET:
            return Approval(False, "budget_exceeded", outcome.cap)
        return None

    def _tell(self, line: Line, intent: str, fields: StepFields) -> Step:
        self.speaker.hear()
        return run(
            gate.tell(Said(line, self.speaker, wording.clip(intent, wording.INTENT_CHARS), None, fields))
        )


class Courses:
    """The courses of one agent, by the framework's own name of a conversation."""

    def __init__(self, speaker: Speaker, terms: Terms | None = None) -> None:
        self.speaker = speaker
        self.terms = terms or Terms()
        self._lock = Lock()
        self._known: OrderedDict[str, Course] = OrderedDict()

    def enter(self, thread: Any = None) -> str:
        """The key of a run that begins: in the session this code runs in (`with session:`, or a tool that
        another agent calls, whose step is then its parent), else in the thread's, else in one of its own."""
        line = current_line()
        if line is None:
            return wording.session_name(new_id() if thread is None else thread)
        key = f"{line.session_id}/{new_id()}"  # no session's name: the same agent may be called by itself
        self._keep(key, Course(self.speaker, line, self.terms))
        return key

    def of(self, key: str) -> Course:
        """The course of that key, gone on with or, when it is not known here, opened."""
        with self._lock:
            known = self._known.get(key)
        if known is None:
            line = Line(self.speaker, *open_line(None, key.partition("/")[0]))
            known = Course(self.speaker, line, self.terms)
        return self._keep(key, known)

    def _keep(self, key: str, course: Course) -> Course:
        with self._lock:
            course = self._known.pop(key, course)
            self._known[key] = course
            while len(self._known) > MOST_COURSES:
                self._known.popitem(last=False)
        return course

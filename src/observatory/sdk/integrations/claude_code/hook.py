"""One hook, from its input to its answer.

Law: telemetry never takes longer than its box and never stands in the way: whatever fails, the work goes on
and the step waits on disk. A gate is the other way round: while a person has paused or stopped the agent, or
a request is held, the tool waits, and without a yes in time it does not run. Nothing is answered that nobody
ordered.
"""

import contextlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from observatory.protocol.identity import canonical_id
from observatory.protocol.otel import trace_id_of_session
from observatory.sdk.answers import Answer
from observatory.sdk.approval import Approval
from observatory.sdk.credentials import Door, own_door
from observatory.sdk.errors import explain
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.claude_code import events, transcript
from observatory.sdk.integrations.claude_code.events import Json, Told
from observatory.sdk.integrations.claude_code.memory import MOST_KEPT, Memory, Session, Tool
from observatory.sdk.integrations.claude_code.wire import Away, Hello, NotAdmitted, Wire
from observatory.sdk.orders import Orders, verdict_key, verdict_of
from observatory.sdk.received import Received, Verdict
from observatory.sdk.step import new_id, write_log

BOX_S = 5.0  # as long as `permit` waits for the gateway
WAIT_S = 590.0  # `install` gives the hook 600 s: who is killed for being late cannot say no
GATE_BOX_S = 10.0  # a tool that needs approval may wait longer for the gateway's first word
AGAIN_S = 1.0
STARTERS = ("Agent", "Task")
REFUSALS = (402, 403)  # by a cap, a rule or whom the key is for
PAUSED = "The agent is paused or stopped; try again later."


class Options(NamedTuple):
    agent: str | None = None
    ask: tuple[str, ...] = ()
    """Tools (names, globs) that wait for a person whatever the gateway's rules say."""
    wait_s: float = WAIT_S
    box_s: float = BOX_S
    permissions: bool = False
    """Whether what Claude Code would ask its user is asked of a person at the Observatory instead."""
    denies_away: bool = False
    """Whether no tool may be run while the gateway is away."""


class Hook:
    def __init__(self, event: Json, options: Options, door: Door) -> None:
        self.event = event
        self.name = str(event["hook_event_name"])
        self.session_id = canonical_id(str(event["session_id"]))
        self.options = options
        self._began = time.monotonic()
        self.memory = Memory(door.data, self.session_id)
        with self.memory.session() as session:
            session.agent_id = session.agent_id or options.agent or _named_after_the_project(event)
            self.is_first = self._claim(session)
            for member in events.unknown_of(event):
                session.count(member)
            self._agent_id = session.agent_id
        self.orders = Orders(self._agent_id)
        self.wire = Wire(own_door(door, self._agent_id), self._agent_id)
        self.heard_late: list[Received] = []
        self.is_shut = False
        """Whether people or a rule hold or refused it: whatever fails from here on, it does not run."""
        self.is_answered = False
        self._is_unjudged = False
        """Whether the tool this tells of was run without the gateway's verdict."""
        self._tool_key = str(event.get("tool_use_id") or new_id())

    def _claim(self, session: Session) -> bool:
        """Installed twice it counts once; but one that asks a person asks, whichever came first."""
        if not (tool_use_id := self.event.get("tool_use_id")):
            return True
        is_first = session.claim(f"{self.name} {tool_use_id}")
        if self.is_gate and self.needs_approval:
            return session.claim(f"{self.name} {tool_use_id} asked")
        return is_first

    @property
    def is_gate(self) -> bool:
        return self.name == "PreToolUse" or (self.name == "PermissionRequest" and self.options.permissions)

    @property
    def needs_approval(self) -> bool:
        return self.name == "PermissionRequest" or events.needs_approval(self.event, self.options.ask)

    def judge(self) -> Json:
        """The answer; what people injected is added by `heard`."""
        if not self.is_first:
            return {}
        if self.name == "UserPromptSubmit":
            return self._prompt()
        if not self.is_gate:
            return self._tell()
        answer = self._gate()
        if self.name == "PermissionRequest":  # the tool's own request stands beside it, and has its outcome
            self._retreat()
        return answer

    def _prompt(self) -> Json:
        """Before the model is asked, a paused agent waits as before a tool."""
        self._look(self._left_s())
        if self.orders.is_held(self.session_id):
            self.is_shut = True
            if not self._wait(self._is_free, self._began + self.options.wait_s):
                return events.blocked(PAUSED)
            self._began, self.is_shut = time.monotonic(), False
        return self._tell()

    # Telemetry.

    def _tell(self) -> Json:
        told = events.told_of(self.event)
        if told is not None:
            step_id = new_id()
            with self.memory.session() as session:
                line = self._line(session, step_id, self._place(session, step_id), told)
            self._say(line, self._left_s())
        elif self.name == "PostToolBatch":
            with self.memory.session() as session:
                session.line(self._key).close()
        if self.name in events.HEARS and self.name != "UserPromptSubmit":
            self._look(self._left_s())
        if self.name == "SessionStart":
            self.memory.sweep()
        return self._ending() or {}

    @property
    def _key(self) -> str:
        """Whose line: a sub-agent's own, else the session's."""
        return str(self.event.get("agent_id") or "")

    def _place(self, session: Session, step_id: str) -> list[str]:
        """The step's parents; the line goes on from it."""
        line, tool_use_id = session.line(self._key), str(self.event.get("tool_use_id") or "")
        match self.name:
            case "PostToolUse" | "PostToolUseFailure" | "PermissionDenied":
                tool = line.open.get(tool_use_id)
                self._is_unjudged = tool is not None and tool.is_unjudged
                parents = [*line.tips] if tool is None else [tool.step_id]
                for sub in tool.subs if tool is not None else ():
                    if (gone := session.lines.pop(sub, None)) is not None:
                        parents += gone.tips
                line.end(tool_use_id, step_id)
                return parents
            case "SubagentStart":
                starters = [tool for tool in session.line("").open.values() if tool.name in STARTERS]
                if starters:
                    starters[-1].subs.append(self._key)
                line.tips = [starters[-1].step_id] if starters else [*session.line("").tips]
            case "UserPromptSubmit" | "Stop" | "StopFailure" | "SessionStart" | "SessionEnd":
                line.close()
        return line.move(step_id)

    def _line(
        self, session: Session, step_id: str, parents: list[str], told: Told, needs_approval: bool = False
    ) -> bytes:
        path = self.event.get("agent_transcript_path") or self.event.get("transcript_path")
        read = transcript.read(session, path)
        meta: Json = {
            "trace_id": canonical_id(trace_id_of_session(self.session_id)),
            "step_id": step_id,
            "session_id": self.session_id,
            "parent_step_id": parents[0] if parents else None,
            "cluster_id": os.environ.get("OBSERVATORY_CLUSTER") or "local",
        }
        if len(parents) > 1:
            meta["parent_step_ids"] = parents
        identity = {
            "agent_id": session.agent_id,
            "agent_type": events.AGENT_TYPE,
            "capability_version": "1.0.0",
            "provider": "anthropic",
        }
        fields: Json = {
            "tokens_consumed": read.tokens,
            "reasoning_chain": read.thoughts or None,
            **told.fields,
        }
        if self.name == "SessionEnd" and session.unknown:
            counts = ", ".join(f"{what}: {n}" for what, n in session.unknown.items())
            fields["tool_output_summary"] = f"not understood: {counts}"
        if self._is_unjudged:
            fields["gateway_away"] = True
        if self._key:
            fields["strategy_used"] = f"sub-agent {self.event.get('agent_type') or self._key}"
        if read.model is not None:
            identity["model"] = read.model
        return write_log(meta, identity, None, told.intent, **fields, hitl_required=needs_approval)

    def _thoughts(self, read: list[str]) -> list[str] | None:
        """What was thought before; the answer itself is no thought about it."""
        said = self.event.get("last_assistant_message")
        return [one for one in read if one != said] or None

    def _say(self, line: bytes, within: float) -> Answer | None:
        try:
            return self.wire.say(line, within)
        except Away:
            return None

    def _left_s(self) -> float:
        return self._began + self.options.box_s - time.monotonic()

    # Listening.

    def _look(self, within: float) -> bool:
        """Hear what waits; False if the gateway did not say: then what is on disk holds."""
        try:
            self._hear(self.wire.inbox(within))
        except Away:
            self._hear([])
            return False
        return True

    def _hear(self, items: list[Received]) -> None:
        verdicts = {item.delivery_id: self._verdict_for(item) for item in items if item.kind == "verdict"}
        with self.memory.orders(self.orders):
            for item in items:
                if verdicts.get(item.delivery_id, "us") == "us":
                    self.orders.take(item)
        self.heard_late += [item for item in items if verdicts.get(item.delivery_id) == "late"]
        nobody = [one for one, whom in verdicts.items() if whom == "nobody"]
        if acks := [*self.orders.take_acks(), *nobody]:
            self.wire.acknowledge(acks, self.options.box_s)

    def _verdict_for(self, item: Received) -> str:
        """Whose it is: ours, another hook's, too late for whoever gave up, or of what nobody waited for."""
        step_id = str(item.told("step_id"))
        if self.orders.expects(verdict_key(item.session_id, step_id)):
            return "us"
        if canonical_id(item.session_id or "") != self.session_id:
            return "another"
        with self.memory.session() as session:
            if step_id in session.waiting:
                return "another"
            return "late" if step_id in session.given_up else "nobody"

    def _ending(self) -> Json | None:
        if not self.orders.is_cancelled(self.session_id):
            return None
        return events.ended(self.event, _cancelled(self.orders, self.session_id))

    # The gate.

    def _gate(self) -> Json:
        until = self._began + self.options.wait_s
        self._look(self._left_s())
        if self.orders.is_held(self.session_id):
            self.is_shut = True
            if not self._wait(self._is_free, until):
                return self._no("the agent is paused or stopped, and nobody let it go on in time")
            # The box is for what comes now.
            self._began, self.is_shut = time.monotonic(), False
        if (ending := self._ending()) is not None:
            return ending
        step_id, line = self._request()
        try:
            answer, why = self._ask(line)
            self.is_shut = isinstance(why, NotAdmitted) or (
                answer is not None and (answer.state == "held" or answer.code in REFUSALS)
            )
            if answer is None:
                return self._unasked(why)
            if not answer.accepted:
                return self._refused(answer)
            return self._held(step_id, until) if answer.state == "held" else {}
        finally:
            with self.memory.session() as session:
                session.waiting = [one for one in session.waiting if one != step_id]

    def _held(self, step_id: str, until: float) -> Json:
        verdict = self._verdict(step_id, until)
        if verdict is not None:
            return self._judged(verdict, until)
        if (ending := self._ending()) is not None:
            self._retreat()
            return ending
        with self.memory.session() as session:
            session.given_up = [*session.given_up, step_id][-MOST_KEPT:]
        return self._no("nobody answered in time; the request stays open in the Observatory")

    def _request(self) -> tuple[str, bytes]:
        step_id = new_id()
        told = events.request_of(self.event)
        with self.memory.session() as session:
            session.waiting = [*session.waiting, step_id][-MOST_KEPT:]  # before anybody can answer it
            tool = Tool(step_id, events.tool_of(self.event))
            parents = session.line(self._key).begin(self._tool_key, tool)
            return step_id, self._line(session, step_id, parents, told, self.needs_approval)

    def _ask(self, line: bytes) -> tuple[Answer | None, Away]:
        within = GATE_BOX_S if self.needs_approval else self._left_s()
        try:
            return self.wire.say(line, within, keep=not self.needs_approval, is_asked=True), Away()
        except Away as why:
            return None, why

    def _unasked(self, why: Away) -> Json:
        """As `permit` has it: an absent gateway forbids nothing that needs no approval; but who was shut out
        may do nothing."""
        if isinstance(why, NotAdmitted):
            self._retreat()
            return events.denied(self.event, f"{events.tool_of(self.event)} was not run: {why}")
        if self.needs_approval:
            return self._no(f"it needs a person's approval, and {why}")
        if self.options.denies_away:
            return self._no(f"no tool may be run while the gateway is away, and {why}")
        with self.memory.session() as session:
            if (tool := session.line(self._key).open.get(self._tool_key)) is not None:
                tool.is_unjudged = True
        return {}

    def _verdict(self, step_id: str, until: float) -> Verdict | None:
        """What was said to it, also by who let go what had held it; None if nobody did, or all is over."""
        key = verdict_key(self.session_id, step_id)
        self.orders.expect(key)
        self._wait(lambda: bool(self.orders.answer(key)) or self.orders.is_cancelled(self.session_id), until)
        item = self.orders.answer(key)
        self.orders.forget(key)
        if item is None:
            return None
        given = self.event.get("tool_input")
        return verdict_of(item, events.tool_of(self.event), given)

    def _judged(self, verdict: Verdict, until: float) -> Json:
        if not verdict.approved:
            self._retreat()
            return events.denied(
                self.event, wording.refusal(events.tool_of(self.event), approval_of(verdict))
            )
        if not self._wait(self._is_free, until):  # approved, but paused meanwhile
            return self._no("the agent is paused or stopped, and nobody let it go on in time")
        return self._ending() or events.granted(self.event, approval_of(verdict))

    def _refused(self, answer: Answer) -> Json:
        """By a rule or a cap it is a no; for what is only our telemetry's fault the tool does not pay."""
        self._retreat()
        if answer.code not in REFUSALS and not self.needs_approval:
            with self.memory.session() as session:
                session.count(f"request refused with {answer.code} {answer.reason}")
            return {}
        refused = Approval(False, answer.reason, explain(answer) or None)
        return events.denied(self.event, wording.refusal(events.tool_of(self.event), refused))

    def _is_free(self) -> bool:
        return not self.orders.is_held(self.session_id)  # cancelled is not held

    def _wait(self, done: Callable[[], bool], until: float) -> bool:
        """Listen until it is done; False when the time is over. An absent gateway is tried again."""
        self._hear([])
        while True:
            with contextlib.suppress(Away):
                if done():
                    return True
                for item in self.wire.listen(until):
                    self._obey(item)
                    if done():
                        return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(AGAIN_S, left))

    def _obey(self, item: Hello | Received) -> None:
        if isinstance(item, Received):
            self._hear([item])
            return
        text = (item.instructions or {}).get("text")
        with self.memory.orders(self.orders):
            self.orders.hello(item.entity_id, item.paused, item.stopped, text, item.paused_everywhere)

    def _retreat(self) -> None:
        """Nothing hangs on a request that was not granted."""
        with self.memory.session() as session:
            session.line(self._key).end(self._tool_key, None)

    def _no(self, why: str) -> Json:
        """A no of our own: it is on the record, and the model is told."""
        self._retreat()
        step_id = new_id()
        refused = events.refused_of(self.event, why)
        with self.memory.session() as session:
            line = self._line(session, step_id, session.line(self._key).move(step_id), refused)
        self._say(line, self.options.box_s)
        return events.denied(self.event, f"{events.tool_of(self.event)} was not run: {why}.")


def approval_of(verdict: Verdict) -> Approval:
    told = verdict.note, verdict.by, verdict.content, None, verdict.tool_call, verdict.tool_input
    return Approval(verdict.approved, verdict.verdict, *told, gated=verdict.gated)


def _cancelled(orders: Orders, session_id: str) -> str:
    standing = orders.standing()
    told = standing.cancelled.get(session_id) or standing.cancelled_everywhere or ["", None]
    reason, by = told
    return f"Cancelled by {by or 'an operator'} in the Observatory" + (f": {reason}" if reason else "")


def _named_after_the_project(event: Json) -> str:
    folder = os.environ.get("CLAUDE_PROJECT_DIR") or str(event.get("cwd") or "")
    name = os.path.basename(folder.rstrip("/\\"))
    clean = "".join(one if one.isprintable() else "_" for one in name)[:100]
    return f"claude-code-{clean}" if clean else "claude-code"

"""`Hook`: processes one Claude Code hook event, from input to answer.

Rule: telemetry never exceeds its time limit and never blocks: if something fails, the agent continues and the
step waits on disk. A gate is the opposite: while a person has paused or stopped the agent, or a request is
held, the tool waits, and without an approval in time it does not run. The answer is empty unless a person or
a rule decided.
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
from observatory.sdk.credentials import GatewayCredentials, credentials_of_agent
from observatory.sdk.errors import explain
from observatory.sdk.integrations import wording
from observatory.sdk.integrations.claude_code import events, transcript
from observatory.sdk.integrations.claude_code.events import HookStep, Json
from observatory.sdk.integrations.claude_code.memory import MAX_KEPT, HookSession, HookStateStore, OpenTool
from observatory.sdk.integrations.claude_code.wire import Away, Hello, HookGateway, NotAdmitted
from observatory.sdk.orders import Orders, verdict_key, verdict_of
from observatory.sdk.received import Received, Verdict
from observatory.sdk.step import new_id, write_log

BOX_S = 5.0  # as long as `permit` waits for the gateway
WAIT_S = 590.0  # `install` gives the hook 600 s: a hook killed for being late cannot refuse
GATE_BOX_S = 10.0  # a tool that needs approval may wait longer for the gateway's first answer
RETRY_S = 1.0
STARTERS = ("Agent", "Task")
REFUSALS = (402, 403)  # by a cap, a rule or the key's binding
PAUSED = "The agent is paused or stopped; try again later."


class HookOptions(NamedTuple):
    agent: str | None = None
    ask: tuple[str, ...] = ()
    """Tools (names, globs) that wait for a person, whatever the gateway's rules are."""
    wait_s: float = WAIT_S
    box_s: float = BOX_S
    permissions: bool = False
    """Whether permission requests to the Claude Code user go to a person at the Observatory instead."""
    denies_away: bool = False
    """Whether tools are denied while the gateway is unreachable."""


class Hook:
    def __init__(self, event: Json, options: HookOptions, credentials: GatewayCredentials) -> None:
        self.event = event
        self.name = str(event["hook_event_name"])
        self.session_id = canonical_id(str(event["session_id"]))
        self.options = options
        self._began = time.monotonic()
        self.memory = HookStateStore(credentials.data, self.session_id)
        with self.memory.session() as session:
            session.agent_id = session.agent_id or options.agent or _default_agent_id(event)
            self.is_first = self._claim(session)
            for member in events.unknown_members(event):
                session.count(member)
            self._agent_id = session.agent_id
        self.orders = Orders(self._agent_id)
        self.wire = HookGateway(credentials_of_agent(credentials, self._agent_id), self._agent_id)
        self.late_verdicts: list[Received] = []
        self.is_shut = False
        """Whether a person or a rule holds or refused it: on any later failure it does not run."""
        self.is_answered = False
        self._is_unjudged = False
        """Whether the tool of this event ran without the gateway's verdict."""
        self._tool_key = str(event.get("tool_use_id") or new_id())

    def _claim(self, session: HookSession) -> bool:
        """A hook installed twice counts once; but one that asks a person always asks."""
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
        """The answer; the caller adds injected prompts."""
        if not self.is_first:
            return {}
        if self.name == "UserPromptSubmit":
            return self._prompt()
        if not self.is_gate:
            return self._record()
        answer = self._gate()
        if self.name == "PermissionRequest":  # the tool's own request is separate and gets the result
            self._retreat()
        return answer

    def _prompt(self) -> Json:
        """Before a model call, a paused agent waits as before a tool."""
        self._fetch_orders(self._left_s())
        if self.orders.is_held(self.session_id):
            self.is_shut = True
            if not self._wait(self._is_free, self._began + self.options.wait_s):
                return events.blocked(PAUSED)
            self._began, self.is_shut = time.monotonic(), False
        return self._record()

    # Telemetry.

    def _record(self) -> Json:
        step = events.step_of_event(self.event)
        if step is not None:
            step_id = new_id()
            with self.memory.session() as session:
                line = self._line(session, step_id, self._parents(session, step_id), step)
            self._send(line, self._left_s())
        elif self.name == "PostToolBatch":
            with self.memory.session() as session:
                session.line(self._key).close()
        if self.name in events.ACCEPTS_CONTEXT and self.name != "UserPromptSubmit":
            self._fetch_orders(self._left_s())
        if self.name == "SessionStart":
            self.memory.sweep()
        return self._ending() or {}

    @property
    def _key(self) -> str:
        """The key of the branch: the sub-agent's id, else empty for the session."""
        return str(self.event.get("agent_id") or "")

    def _parents(self, session: HookSession, step_id: str) -> list[str]:
        """The step's parents; moves the branch to this step."""
        line, tool_use_id = session.line(self._key), str(self.event.get("tool_use_id") or "")
        match self.name:
            case "PostToolUse" | "PostToolUseFailure" | "PermissionDenied":
                tool = line.open.get(tool_use_id)
                self._is_unjudged = tool is not None and tool.is_unjudged
                parents = [*line.tips] if tool is None else [tool.step_id]
                for sub in tool.subs if tool is not None else ():
                    if (ended := session.lines.pop(sub, None)) is not None:
                        parents += ended.tips
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
        self,
        session: HookSession,
        step_id: str,
        parents: list[str],
        step: HookStep,
        needs_approval: bool = False,
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
            **step.fields,
        }
        if self.name == "SessionEnd" and session.unknown:
            counts = ", ".join(f"{what}: {n}" for what, n in session.unknown.items())
            fields["tool_output_summary"] = f"unknown members: {counts}"
        if self._is_unjudged:
            fields["gateway_away"] = True
        if self._key:
            fields["strategy_used"] = f"sub-agent {self.event.get('agent_type') or self._key}"
        if read.model is not None:
            identity["model"] = read.model
        return write_log(meta, identity, None, step.intent, **fields, hitl_required=needs_approval)

    def _thoughts(self, read: list[str]) -> list[str] | None:
        """The thoughts before; the answer itself is not one of them."""
        answer = self.event.get("last_assistant_message")
        return [one for one in read if one != answer] or None

    def _send(self, line: bytes, within: float) -> Answer | None:
        try:
            return self.wire.send(line, within)
        except Away:
            return None

    def _left_s(self) -> float:
        return self._began + self.options.box_s - time.monotonic()

    # Listening.

    def _fetch_orders(self, within: float) -> bool:
        """Read the inbox; False if the gateway did not answer: then the stored state applies."""
        try:
            self._apply(self.wire.inbox(within))
        except Away:
            self._apply([])
            return False
        return True

    def _apply(self, items: list[Received]) -> None:
        verdicts = {item.delivery_id: self._verdict_for(item) for item in items if item.kind == "verdict"}
        with self.memory.orders(self.orders):
            for item in items:
                if verdicts.get(item.delivery_id, "ours") == "ours":
                    self.orders.take(item)
        self.late_verdicts += [item for item in items if verdicts.get(item.delivery_id) == "late"]
        unclaimed = [one for one, owner in verdicts.items() if owner == "none"]
        if acks := [*self.orders.take_acks(), *unclaimed]:
            self.wire.acknowledge(acks, self.options.box_s)

    def _verdict_for(self, item: Received) -> str:
        """Which hook a verdict belongs to: `ours`, `another`, `late` (its hook gave up), or `none`."""
        step_id = str(item.body_value("step_id"))
        if self.orders.expects(verdict_key(item.session_id, step_id)):
            return "ours"
        if canonical_id(item.session_id or "") != self.session_id:
            return "another"
        with self.memory.session() as session:
            if step_id in session.waiting:
                return "another"
            return "late" if step_id in session.given_up else "none"

    def _ending(self) -> Json | None:
        if not self.orders.is_cancelled(self.session_id):
            return None
        return events.ended(self.event, _cancelled(self.orders, self.session_id))

    # The gate.

    def _gate(self) -> Json:
        until = self._began + self.options.wait_s
        self._fetch_orders(self._left_s())
        if self.orders.is_held(self.session_id):
            self.is_shut = True
            if not self._wait(self._is_free, until):
                return self._refuse("the agent is paused or stopped and was not resumed in time")
            # The time limit applies from here.
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
                return self._unreachable(why)
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
            session.given_up = [*session.given_up, step_id][-MAX_KEPT:]
        return self._refuse("no verdict arrived in time; the request stays open in the Observatory")

    def _request(self) -> tuple[str, bytes]:
        step_id = new_id()
        request = events.request_of(self.event)
        with self.memory.session() as session:
            session.waiting = [*session.waiting, step_id][-MAX_KEPT:]  # before it can be answered
            tool = OpenTool(step_id, events.tool_of(self.event))
            parents = session.line(self._key).begin(self._tool_key, tool)
            return step_id, self._line(session, step_id, parents, request, self.needs_approval)

    def _ask(self, line: bytes) -> tuple[Answer | None, Away]:
        within = GATE_BOX_S if self.needs_approval else self._left_s()
        try:
            return self.wire.send(line, within, keep=not self.needs_approval, is_asked=True), Away()
        except Away as why:
            return None, why

    def _unreachable(self, why: Away) -> Json:
        """Like `permit`: an unreachable gateway forbids only what needs approval; a refused key forbids
        everything."""
        if isinstance(why, NotAdmitted):
            self._retreat()
            return events.denied(self.event, f"{events.tool_of(self.event)} was not run: {why}")
        if self.needs_approval:
            return self._refuse(f"it needs a person's approval, and {why}")
        if self.options.denies_away:
            return self._refuse(f"no tool may run while the gateway is unreachable, and {why}")
        with self.memory.session() as session:
            if (tool := session.line(self._key).open.get(self._tool_key)) is not None:
                tool.is_unjudged = True
        return {}

    def _verdict(self, step_id: str, until: float) -> Verdict | None:
        """The verdict, also from the end of a hold; None if there is none in time or the work was
        cancelled."""
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
            return self._refuse("the agent is paused or stopped and was not resumed in time")
        return self._ending() or events.granted(self.event, approval_of(verdict))

    def _refused(self, answer: Answer) -> Json:
        """A refusal by a rule or a cap denies the tool; a telemetry error does not."""
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
        """Listen until `done`; False on timeout. Retries an unreachable gateway."""
        self._apply([])
        while True:
            with contextlib.suppress(Away):
                if done():
                    return True
                for item in self.wire.listen(until):
                    self._handle(item)
                    if done():
                        return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(RETRY_S, left))

    def _handle(self, item: Hello | Received) -> None:
        if isinstance(item, Received):
            self._apply([item])
            return
        text = (item.instructions or {}).get("text")
        with self.memory.orders(self.orders):
            self.orders.hello(item.entity_id, item.paused, item.stopped, text, item.paused_everywhere)

    def _retreat(self) -> None:
        """A refused request gets no children."""
        with self.memory.session() as session:
            session.line(self._key).end(self._tool_key, None)

    def _refuse(self, why: str) -> Json:
        """A refusal by the hook itself: recorded, and returned to the model."""
        self._retreat()
        step_id = new_id()
        refused = events.refused_of(self.event, why)
        with self.memory.session() as session:
            line = self._line(session, step_id, session.line(self._key).move(step_id), refused)
        self._send(line, self.options.box_s)
        return events.denied(self.event, f"{events.tool_of(self.event)} was not run: {why}.")


def approval_of(verdict: Verdict) -> Approval:
    details = verdict.note, verdict.by, verdict.content, None, verdict.tool_call, verdict.tool_input
    return Approval(verdict.approved, verdict.verdict, *details, gated=verdict.gated)


def _cancelled(orders: Orders, session_id: str) -> str:
    state = orders.order_state()
    reason, by = state.cancelled.get(session_id) or state.cancelled_everywhere or ["", None]
    return f"Cancelled by {by or 'an operator'} in the Observatory" + (f": {reason}" if reason else "")


def _default_agent_id(event: Json) -> str:
    folder = os.environ.get("CLAUDE_PROJECT_DIR") or str(event.get("cwd") or "")
    name = os.path.basename(folder.rstrip("/\\"))
    clean = "".join(one if one.isprintable() else "_" for one in name)[:100]
    return f"claude-code-{clean}" if clean else "claude-code"

"""The orders one agent has received: pauses, stops, cancellations, prompts, messages.

Rule: an item counts once, however often it is delivered. An order is acknowledged when it is in force here; a
prompt or a message when the agent's code has taken it, so a killed agent receives it again. Queues are
bounded: an item that does not fit is neither accepted nor acknowledged and is delivered again. No network
here: the receiver calls `take`, agents' threads wait on `changed`.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from observatory.protocol.identity import canonical_id
from observatory.sdk.errors import Cancelled
from observatory.sdk.received import Prompt, Received, Verdict, action_of
from observatory.sdk.waiting import Observable

log = logging.getLogger("observatory.sdk")
MAX_WAITING = 1000  # prompts, and messages, that the agent has not fetched
MAX_KNOWN = 10_000  # delivery ids remembered so that a repeat counts once
UNREADABLE = Verdict("rejected", note="the gateway's verdict could not be read")
_Key = Hashable


def verdict_key(session_id: str | None, step_id: str | None) -> _Key:
    return "verdict", canonical_id(session_id or ""), canonical_id(step_id or "")


def message_key(session_id: str | None, step_id: object) -> _Key:
    return "message", canonical_id(session_id or ""), canonical_id(str(step_id or ""))


def decision_key(decision_id: object) -> _Key:
    return "decision", decision_id


class OrderState(msgspec.Struct):
    """The orders in force, as stored between two processes of one agent."""

    paused: list[str] = []
    paused_everywhere: bool = False
    cancelled: dict[str, list[str | None]] = {}
    cancelled_everywhere: list[str | None] | None = None
    stopped: bool = False
    last: dict[str, int] = {}
    instructions: str | None = None


class Orders(Observable):
    def __init__(self, name: str, on_instruction: Callable[[str], None] | None = None) -> None:
        self.name = name
        self.entity_id: str | None = None
        self.instructions: str | None = None
        self.on_acks: Callable[[], None] = lambda: None
        self._on_instruction = on_instruction
        self._paused: set[str | None] = set()
        self._cancelled: dict[str | None, tuple[str, str | None]] = {}
        self._stopped = False
        self._last: dict[str, int] = {}  # what an order changes -> number of the latest one obeyed
        self._reset()

    def _reset(self) -> None:
        super().__init__()
        self.connected = self.closed = False
        self._expected: dict[_Key, Received | None] = {}
        self._prompts: deque[Prompt] = deque()
        self._messages: deque[Received] = deque()
        self._waiting: set[str] = set()
        self._done: dict[_Key, None] = {}  # messages handled before they arrived
        self._known: dict[str, None] = {}
        self._acks: list[str] = []

    def reset_after_fork(self) -> None:
        """In a forked child: queued items belong to the parent; orders in force apply here too."""
        self._reset()

    # State in force, for an agent whose processes live for one call each.

    def order_state(self) -> "OrderState":
        with self.changed:
            ended = {session: [*why] for session, why in self._cancelled.items() if session is not None}
            everywhere = self._cancelled.get(None)
            return OrderState(
                paused=[one for one in self._paused if one is not None],
                paused_everywhere=None in self._paused,
                cancelled=ended,
                cancelled_everywhere=None if everywhere is None else [*everywhere],
                stopped=self._stopped,
                last={**self._last},
                instructions=self.instructions,
            )

    def restore(self, state: "OrderState") -> None:
        """Take over the state stored by another process of this agent; queued items stay."""
        with self.changed:
            self._paused = {*state.paused}
            if state.paused_everywhere:
                self._paused.add(None)
            self._cancelled = {one: (why[0] or "", why[1]) for one, why in state.cancelled.items()}
            if (why := state.cancelled_everywhere) is not None:
                self._cancelled[None] = why[0] or "", why[1]
            self._stopped = state.stopped
            self._last = {**state.last}
            self.instructions = state.instructions

    # Waiting.

    @property
    def is_free(self) -> bool:
        """No order is in force: a step has nothing to check (read without the lock)."""
        return not (self._paused or self._stopped or self._cancelled)

    def is_held(self, session_id: str) -> bool:
        """Whether a step in this session waits; False when it would raise instead."""
        return not self.closed and not self.is_cancelled(session_id) and self.is_in_force(session_id)

    def is_in_force(self, session_id: str) -> bool:
        """Whether a pause or a stop applies there, whatever else does."""
        return self._stopped or None in self._paused or canonical_id(session_id) in self._paused

    def refuse_cancelled(self, session_id: str, waited: bool = False) -> None:
        if (cancellation := self._cancellation(session_id)) is not None:
            raise Cancelled(session_id, *cancellation)
        if waited and self.closed:
            raise Cancelled(session_id, "the agent was closed while the step waited")

    def is_cancelled(self, session_id: str) -> bool:
        return self._cancellation(session_id) is not None

    def _cancellation(self, session_id: str) -> tuple[str, str | None] | None:
        return self._cancelled.get(canonical_id(session_id)) or self._cancelled.get(None)

    def wait_for(self, done: Callable[[], bool], timeout: float | None) -> bool:
        with self.changed:
            return self.changed.wait_for(done, timeout)

    # Called by the agent.

    def expect(self, key: _Key) -> None:
        with self.changed:
            self._expected.setdefault(key, None)

    def expects(self, key: _Key) -> bool:
        return key in self._expected

    def answer(self, key: _Key) -> Received | None:
        return self._expected.get(key)

    def forget(self, key: _Key) -> None:
        with self.changed:
            self._expected.pop(key, None)

    def take_prompts(self, session_id: str | None = None) -> list[Prompt]:
        """All waiting prompts, or those of one session; they count as read now."""
        with self.changed:
            session = canonical_id(session_id) if session_id is not None else None
            taken = [one for one in self._prompts if session is None or one.session_id in (session, None)]
            if taken:
                ids = {one.delivery_id for one in taken}
                self._prompts = deque(one for one in self._prompts if one.delivery_id not in ids)
                self._finish(*ids)
        return taken

    def take_messages(self, limit: int | None = None) -> list[Received]:
        with self.changed:
            n = len(self._messages) if limit is None else min(limit, len(self._messages))
            taken = [self._messages.popleft() for _ in range(n)]
            self._finish(*(one.delivery_id for one in taken))
        return taken

    def next_message(self) -> Received | None:
        """The oldest message, not yet acknowledged: `finish` marks it as handled."""
        with self.changed:
            return self._messages.popleft() if self._messages else None

    def finish(self, item: Received) -> None:
        with self.changed:
            self._finish(item.delivery_id)

    def settle_message(self, session_id: str | None, step_id: str | None) -> None:
        """This message was handled in this process: it counts as read, now or when it arrives."""
        key = message_key(session_id, step_id)
        with self.changed:
            for item in self._messages:
                if _key_of(item) == key:
                    self._messages.remove(item)
                    self._finish(item.delivery_id)
                    return
            self._done[key] = None
            while len(self._done) > MAX_KNOWN:
                del self._done[next(iter(self._done))]

    @property
    def has_messages(self) -> bool:
        return bool(self._messages)

    # Called by the receiver.

    def hello(
        self,
        entity_id: str | None,
        paused: list[str],
        stopped: bool,
        instructions: str | None = None,
        everywhere: bool = False,
    ) -> None:
        """The gateway's state for this agent, sent at the start of a connection."""
        with self.changed:
            is_news = instructions not in (None, self.instructions)
            self.instructions = instructions or self.instructions
            self.entity_id = entity_id or self.entity_id
            self._paused = {canonical_id(one) for one in paused}
            if everywhere:
                self._paused.add(None)
            self._stopped = stopped
            self.connected = True
            self._notify()
        if instructions is not None and is_news:
            self._notify_instruction(instructions)

    def set_connected(self, connected: bool) -> None:
        with self.changed:
            self.connected = connected
            self._notify()

    def set_entity_id(self, entity_id: str | None) -> None:
        with self.changed:
            self.entity_id = entity_id or self.entity_id
            self._notify()

    def take(self, item: Received) -> bool:
        """Apply or queue one item; False if it is known already or the queue is full."""
        with self.changed:
            if item.delivery_id in self._waiting:
                return False
            if item.delivery_id in self._known:  # the acknowledgement was lost
                self._acknowledge(item.delivery_id)
                return False
            taken = self._apply(item)
            if taken:
                self._notify()
        if taken and item.kind == "instruction":
            self._notify_instruction(str(item.body_value("text") or ""))
        return taken

    def _apply(self, item: Received) -> bool:
        session = canonical_id(item.session_id) if item.session_id is not None else None
        match item.kind:
            case "hold" | "resume":
                if self._is_news(f"pause {session}", item):
                    (self._paused.add if item.kind == "hold" else self._paused.discard)(session)
            case "stop" | "start":  # `start` is sent only when no other switch stops the agent
                if self._is_news("stop", item):
                    self._stopped = item.kind == "stop"
            case "cancel":
                self._cancelled[session] = str(item.body_value("reason") or ""), _text(item.body_value("by"))
            case "instruction":
                if self._is_news("instruction", item):
                    self.instructions = _text(item.body_value("text"))
            case "inject":
                return self._keep_prompt(item, session)
            case _:
                return self._queue_or_hand_over(item)
        self._finish(item.delivery_id)
        return True

    def _is_news(self, what: str, item: Received) -> bool:
        """False for a redelivered order that a later one has replaced."""
        if item.sequence_number < self._last.get(what, 0):
            return False
        self._last[what] = item.sequence_number
        return True

    def _keep_prompt(self, item: Received, session: str | None) -> bool:
        if len(self._prompts) >= MAX_WAITING:
            return False
        text, by = str(item.body_value("prompt") or ""), _text(item.body_value("by"))
        self._prompts.append(Prompt(text, by, session, item.delivery_id))
        self._waiting.add(item.delivery_id)
        return True

    def _queue_or_hand_over(self, item: Received) -> bool:
        """To the caller waiting for it, else to the message queue: a verdict outlives the agent that
        asked."""
        key = None
        if item.kind == "verdict":
            key = verdict_key(item.session_id, _text(item.body_value("step_id")))
        elif item.kind == "decision":
            key = decision_key(item.body_value("decision_id"))
        if key is not None and key in self._expected:
            self._expected[key] = item
            self._finish(item.delivery_id)
            return True
        if self._done and (done := _key_of(item)) in self._done:
            del self._done[done]
            self._finish(item.delivery_id)
            return True
        if len(self._messages) >= MAX_WAITING:
            return False
        self._messages.append(item)
        self._waiting.add(item.delivery_id)
        return True

    def _notify_instruction(self, instructions: str) -> None:
        """Call the agent's listener on a separate thread: it must not block the receiver."""
        if (listener := self._on_instruction) is None:
            return

        def notify() -> None:
            try:
                listener(instructions)
            except Exception:
                log.exception("%s: on_instruction failed", self.name)

        threading.Thread(target=notify, daemon=True).start()

    # Acknowledging.

    def _finish(self, *ids: str) -> None:
        for one in ids:
            self._waiting.discard(one)
            self._known[one] = None
            self._acknowledge(one)
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def _acknowledge(self, delivery_id: str) -> None:
        self._acks.append(delivery_id)
        if len(self._acks) == 1:
            self.on_acks()

    def take_acks(self) -> list[str]:
        with self.changed:
            acks, self._acks = self._acks, []
        return acks

    def give_back_acks(self, acks: list[str]) -> None:
        """They could not be sent: send them first next time."""
        with self.changed:
            self._acks[:0] = acks

    def close(self) -> None:
        """Wake all waiters."""
        with self.changed:
            self.closed, self.connected = True, False
            self._notify()


def _key_of(item: Received) -> _Key:
    meta = (item.message or {}).get("meta")
    return message_key(item.session_id, meta.get("step_id") if isinstance(meta, dict) else None)


def verdict_of(item: Received, tool_call: str | None = None, tool_input: Any = None) -> Verdict:
    """The person's verdict on a request with `tool_call` and `tool_input`."""
    try:
        verdict = msgspec.convert(item.body, Verdict)
        if verdict.content is not None:
            tool_call, tool_input = action_of(verdict.content)
    except msgspec.ValidationError:  # an unknown verdict allows nothing
        return UNREADABLE
    if verdict.verdict == "not_required" or (verdict.verdict == "edited" and verdict.content is None):
        return UNREADABLE  # a person never sends the first; the second lacks what was approved
    if not verdict.approved:
        tool_call = tool_input = None
    return msgspec.structs.replace(verdict, tool_call=tool_call, tool_input=tool_input)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)

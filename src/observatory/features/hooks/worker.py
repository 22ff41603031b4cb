"""Processes inbound webhook calls: from bytes to answer, and retries of calls left unfinished.

Law (S523–S530): nothing of a call is trusted before its signature is verified; nothing is answered 202 before
it is durable. A valid call is accepted under the tenant's lock together with the message it becomes; then
that message goes through the pipeline, and the outcome is stored. If the process is killed in between nothing
is lost: the caller retries and finds its call accepted, or `due` does. Judging and mapping run off the event
loop. A caller without a valid signature costs a hash and, a few times a minute, a row.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from observatory.errors import ObservatoryError
from observatory.features.hooks import commands_calls as hook_calls
from observatory.features.hooks.call_reader import CallResult, Headers, ReadCall, message_of, read_call
from observatory.features.hooks.commands import HOOK, Row
from observatory.features.hooks.commands_calls import HookCall, LoggedCall, RejectedCall
from observatory.features.hooks.signatures import SignatureCheck, Status
from observatory.features.hooks.types_mapping import Outcome
from observatory.features.hooks.types_rows import HookRows
from observatory.pipeline.state import Command, IncomingMessage, Principal, SubmissionResult
from observatory.protocol.responses import Accepted, Refused
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.worker_context import TenantWatch

EACH_A_MINUTE: Final = 10  # invalid calls of a hook that are logged; further ones are only counted
MINUTE_S: Final = 60.0
LATE_NS: Final = 30_000_000_000  # this long after it was accepted a call is no longer in progress
AT_ONCE: Final = 100
LONGEST_ID: Final = 64
TRIES: Final = 3  # when the hook is changed during a call


# Reported from the start, so that dashboards show zero instead of a gap.
ALWAYS_REPORTED: Final = (("valid", "forwarded"), ("invalid", "turned_away"), ("missing", "turned_away"))


class HooksContext(home.WorkerContext, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class CallReceipt(msgspec.Struct, kw_only=True):
    """The answer to a caller. `repeated`: this delivery was received before and gets the same answer."""

    call_id: str
    outcome: Outcome
    message_id: str | None = None
    session_id: str | None = None
    repeated: bool = False
    status: str = "received"


class HookReply(NamedTuple):
    code: int
    answer: Any
    retry_after_s: int | None = None


class _RejectedCalls:
    """Invalid calls of one hook in one minute."""

    def __init__(self, tenant_id: str, since: float) -> None:
        self.tenant_id, self.since = tenant_id, since
        self.kept = 0
        self.counted: Counter[Status] = Counter()


def is_hook_id(hook_id: str) -> bool:
    """Whether it could be one of our ids; others are not looked up."""
    return hook_id.startswith(HOOK) and len(hook_id) <= LONGEST_ID


def unknown_hook_reply() -> HookReply:
    return HookReply(404, Refused(reason="not_found", detail="no such webhook"))


class HookReceiver:
    def __init__(
        self, app: HooksContext, rows: HookRows, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._rows, self._clock = app, rows, clock
        self._watch = TenantWatch(app.store)
        self._rejected_calls: dict[str, _RejectedCalls] = {}
        self._calls: Counter[tuple[str, str]] = Counter(dict.fromkeys(ALWAYS_REPORTED, 0))
        self._repeats = 0

    async def is_open(self, hook_id: str) -> bool:
        """Whether an active hook has this id now."""
        hook = await self._rows.hook_by_id(hook_id) if is_hook_id(hook_id) else None
        return hook is not None and hook["state"] == "active"

    async def call(
        self, hook_id: str, headers: Headers, body: bytes, caller: str, may_pass: Callable[[str], bool]
    ) -> HookReply:
        """`may_pass` is called for the hook once its caller is known to have the secret."""
        for _ in range(TRIES):
            hook = await self._rows.hook_by_id(hook_id) if is_hook_id(hook_id) else None
            if hook is None or hook["state"] != "active":
                return unknown_hook_reply()
            now_ns = self._app.clock()
            read = await asyncio.to_thread(read_call, hook, headers, body, caller, now_ns)
            if read.meaning is None:
                return await self._turn_away(hook, read.call, read.judged)
            if not may_pass(hook_id):
                detail = "this webhook is called too often; retry later"
                return HookReply(429, Refused(reason="too_often", detail=detail), 1)
            reply = await self._take(hook, read, read.meaning, now_ns)
            if reply is not None:
                return reply
        return HookReply(503, Refused(reason="changing", detail="the webhook is being changed; retry"), 1)

    async def _take(self, hook: Row, read: ReadCall, meaning: CallResult, now_ns: int) -> HookReply | None:
        """None when the hook was changed meanwhile."""
        principal = self._app.gateway_principal(hook["tenant_id"])
        keys = hook_calls.delivery_keys(hook["hook_id"], hook["scheme"], read.call)
        arrival = None
        if meaning.mapped is not None:
            message_or_fault = await asyncio.to_thread(
                message_of, principal, hook, meaning.mapped, keys[0], now_ns
            )
            if isinstance(message_or_fault, IncomingMessage):
                arrival = message_or_fault
            else:
                meaning = CallResult("unmapped", "the mapping does not result in a valid message")
        command = hook_calls.receive(
            principal,
            hook,
            read.call,
            "taken" if arrival is not None else meaning.outcome,
            meaning.reason,
            read.body,
            arrival,
            keys if meaning.challenge is None else (),
            now_ns,
        )
        verdict = await self._submit(command)
        if isinstance(verdict.answer, Refused) and verdict.answer.reason == hook_calls.STALE:
            return None
        if not isinstance(verdict.answer, LoggedCall):
            return unknown_hook_reply() if verdict.code == 404 else HookReply(verdict.code, verdict.answer, 1)
        taken = verdict.answer
        if taken.repeated:
            return await self._again(principal, taken.call_id, now_ns)
        if taken.message is not None:
            return await self._send(principal, taken.call_id, taken.message, now_ns)
        self._calls["valid", meaning.outcome] += 1
        if meaning.challenge is not None:
            return HookReply(200, {"challenge": meaning.challenge})
        if meaning.outcome == "unmapped":
            return HookReply(422, Refused(reason="not_mapped", detail=meaning.reason))
        code = 200 if meaning.outcome == "answered" else 202
        return HookReply(code, CallReceipt(call_id=taken.call_id, outcome=meaning.outcome))

    async def _send(
        self, principal: Principal, call_id: str, message: bytes, now_ns: int, repeated: bool = False
    ) -> HookReply:
        """Submits the message and stores the verdict; a verdict that is not final is left to a retry."""
        arrival = await asyncio.to_thread(hook_calls.resubmitted, principal, message, now_ns)
        verdict = hook_calls.NO_MESSAGE
        if arrival is not None:
            (verdict,) = await self._app.committer.submit(principal.tenant_id, [arrival])
        if not hook_calls.is_settled(verdict):
            return HookReply(verdict.code, verdict.answer, 1)
        name = None if arrival is None else arrival.message.message_id
        seq = None
        if name is not None and not isinstance(verdict.answer, Accepted):  # refused, and archived as such?
            found = await self._app.store.message(principal.tenant_id, name)
            seq = None if found is None else found.sequence_number
        row = (await self._submit(hook_calls.store_outcome(principal, call_id, verdict, now_ns, seq))).answer
        if not isinstance(row, dict):  # the message is durable; a retry will store its outcome
            return HookReply(503, Refused(reason="not_durable", detail="retry later"), 1)
            return HookReply(503, Refused(reason="not_durable", detail="call again later"), 1)
        self._calls["valid", row["outcome"]] += 1
        return HookReply(202, _received(row, repeated))

    async def _again(self, principal: Principal, call_id: str, now_ns: int) -> HookReply:
        """A delivery that was accepted before gets the same answer, and becomes no second message."""
        verdict = await self._submit(hook_calls.count_repeat(principal, call_id, now_ns))
        if not isinstance(verdict.answer, dict):
            return HookReply(verdict.code, verdict.answer, 1)
        self._repeats += 1
        row = verdict.answer
        if row["outcome"] == "taken" and row["message"] is not None:
            return await self._send(principal, call_id, bytes(row["message"]), now_ns, True)
        return HookReply(202, _received(row, True))

    async def _turn_away(self, hook: Row, call: HookCall, judged: SignatureCheck) -> HookReply:
        self._calls[judged.status, "turned_away"] += 1
        rejected = self._rejected_calls.get(hook["hook_id"])
        if rejected is None:
            rejected = self._rejected_calls[hook["hook_id"]] = _RejectedCalls(
                hook["tenant_id"], self._clock()
            )
        if rejected.kept < EACH_A_MINUTE:
            rejected.kept += 1
            principal = self._app.gateway_principal(hook["tenant_id"])
            one = [RejectedCall(call, judged.detail)]
            command = hook_calls.reject_calls(principal, hook["hook_id"], one, {}, call.at_ns)
            if (await self._submit(command)).code >= 500:
                rejected.counted[judged.status] += 1
        else:
            rejected.counted[judged.status] += 1
        return HookReply(401, Refused(reason=f"signature_{judged.status}", detail=judged.detail))

    async def due(self, now_ns: int) -> None:
        """Logs calls that were only counted, and finishes calls that were accepted and left unfinished."""
        await self.count()
        for tenant_id, head in await self._watch.awake():
            left = await self._rows.calls_taken(tenant_id, now_ns, AT_ONCE)
            if not left:
                self._watch.rest(tenant_id, head)
            principal = self._app.gateway_principal(tenant_id)
            for row in left:
                if row["at_ns"] <= now_ns - LATE_NS and row["message"] is not None:
                    await self._send(principal, row["call_id"], bytes(row["message"]), now_ns)

    async def count(self, is_last: bool = False) -> None:
        """Writes the counts of minutes that are over; at shutdown, all of them."""
        now = self._clock()
        over = [
            name
            for name, rejected in self._rejected_calls.items()
            if is_last or now - rejected.since >= MINUTE_S
        ]
        for hook_id in over:
            rejected = self._rejected_calls.pop(hook_id)
            principal = self._app.gateway_principal(rejected.tenant_id)
            command = hook_calls.reject_calls(
                principal, hook_id, (), dict(rejected.counted), self._app.clock()
            )
            try:
                verdict = await self._submit(command)
                is_kept = verdict.code < 500
            except ObservatoryError:
                is_kept = False
            if not is_kept:  # the store is unavailable: keep counting in the same entry
                since = self._rejected_calls.setdefault(hook_id, rejected)
                since.counted += rejected.counted if since is not rejected else Counter()
            elif verdict.answer and isinstance(verdict.answer, int) and not is_last:
                self._rejected_calls.setdefault(
                    hook_id, _RejectedCalls(rejected.tenant_id, now)
                )  # reported in a minute

    async def drain(self) -> None:
        await self.count(is_last=True)

    async def _submit(self, command: Command) -> SubmissionResult:
        return (await self._app.committer.submit(command.principal.tenant_id, [command]))[0]

    def measures(self) -> list[Measure]:
        calls = [
            Measure(
                "observatory_hooks_calls_total",
                "counter",
                "Inbound webhook calls, by signature and outcome",
                number,
                {"signature": signature, "outcome": outcome},
            )
            for (signature, outcome), number in sorted(self._calls.items())
        ]
        waiting = sum(rejected.counted.total() for rejected in self._rejected_calls.values())
        return [
            *calls,
            Measure(
                "observatory_hooks_repeats_total",
                "counter",
                "Deliveries that were received before",
                self._repeats,
            ),
            Measure(
                "observatory_hooks_uncounted",
                "gauge",
                "Rejected calls that the log does not count yet",
                waiting,
            ),
        ]


def _received(row: Row, repeated: bool) -> CallReceipt:
    return CallReceipt(
        call_id=row["call_id"],
        outcome=row["outcome"],
        message_id=row["message_id"],
        session_id=row["session_id"],
        repeated=repeated,
    )

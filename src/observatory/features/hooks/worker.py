"""Webhooks in: what happens to one call, from its bytes to its answer, and what is left to do afterwards.

Law (S523–S530): nothing of a call is believed before its signature is; nothing is answered 202 before it is
durable. A valid call is taken under the tenant's lock together with the message it becomes; then that message
walks the corridor, and what comes of it is noted. Who is killed between the two has lost nothing: the caller
asks again and finds its call taken, or `due` does. Judging and mapping are done off the event loop. Who
calls without a valid signature costs a hash and, a few times a minute, a row.
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
from observatory.features.hooks.call_reader import Headers, Meaning, Read, message_of, read_call
from observatory.features.hooks.commands import HOOK, Row
from observatory.features.hooks.commands_calls import Call, Taken, TurnedAway
from observatory.features.hooks.types_mapping import Outcome
from observatory.features.hooks.types_rows import HookRows
from observatory.pipeline.state import Act, Arrival, Principal, Verdict
from observatory.protocol.answers import Accepted, Refused
from observatory.protocol.signatures import Judged, Status
from observatory.runtime import worker_context as home
from observatory.runtime.metrics import Measure
from observatory.runtime.worker_context import Watch

EACH_A_MINUTE: Final = 10  # calls of a hook that were not valid; of the others only the number is kept
MINUTE_S: Final = 60.0
LATE_NS: Final = 30_000_000_000  # so long after it was taken a call is not on its way any more
AT_ONCE: Final = 100
LONGEST_ID: Final = 64
TRIES: Final = 3  # when the hook is changed under a call


# Told of from the beginning, so that whoever watches sees a nought and not a gap.
USUAL: Final = (("valid", "forwarded"), ("invalid", "turned_away"), ("missing", "turned_away"))


class Home(home.Home, Protocol):
    @property
    def clock(self) -> Callable[[], int]: ...


class Received(msgspec.Struct, kw_only=True):
    """What a caller is told. `repeated`: this delivery had come before, and is answered as then."""

    call_id: str
    outcome: Outcome
    message_id: str | None = None
    session_id: str | None = None
    repeated: bool = False
    status: str = "received"


class Reply(NamedTuple):
    code: int
    answer: Any
    retry_after_s: int | None = None


class _Away:
    """Calls of one hook that were not valid, in one minute."""

    def __init__(self, tenant_id: str, since: float) -> None:
        self.tenant_id, self.since = tenant_id, since
        self.kept = 0
        self.counted: Counter[Status] = Counter()


def is_one(hook_id: str) -> bool:
    """Whether an id of ours could look so; what could not is asked of no database."""
    return hook_id.startswith(HOOK) and len(hook_id) <= LONGEST_ID


def unknown() -> Reply:
    return Reply(404, Refused(reason="not_found", detail="there is no such hook"))


class Hooks:
    def __init__(self, house: Home, rows: HookRows, clock: Callable[[], float] = time.monotonic) -> None:
        self._house, self._rows, self._clock = house, rows, clock
        self._watch = Watch(house.store)
        self._away: dict[str, _Away] = {}
        self._calls: Counter[tuple[str, str]] = Counter(dict.fromkeys(USUAL, 0))
        self._repeats = 0

    async def is_open(self, hook_id: str) -> bool:
        """Whether there is anything to be called under this name now."""
        hook = await self._rows.hook_by_id(hook_id) if is_one(hook_id) else None
        return hook is not None and hook["state"] == "active"

    async def call(
        self, hook_id: str, headers: Headers, body: bytes, caller: str, may_pass: Callable[[str], bool]
    ) -> Reply:
        """`may_pass` is asked about the hook once its caller is known to hold the secret."""
        for _ in range(TRIES):
            hook = await self._rows.hook_by_id(hook_id) if is_one(hook_id) else None
            if hook is None or hook["state"] != "active":
                return unknown()
            now_ns = self._house.clock()
            read = await asyncio.to_thread(read_call, hook, headers, body, caller, now_ns)
            if read.meaning is None:
                return await self._turn_away(hook, read.call, read.judged)
            if not may_pass(hook_id):
                detail = "this hook is called too often; call again later"
                return Reply(429, Refused(reason="too_often", detail=detail), 1)
            reply = await self._take(hook, read, read.meaning, now_ns)
            if reply is not None:
                return reply
        return Reply(503, Refused(reason="changing", detail="the hook is being changed; call again"), 1)

    async def _take(self, hook: Row, read: Read, meaning: Meaning, now_ns: int) -> Reply | None:
        """None when the hook was changed meanwhile."""
        who = self._house.principal_of_house(hook["tenant_id"])
        keys = hook_calls.delivery_keys(hook["hook_id"], hook["scheme"], read.call)
        arrival = None
        if meaning.mapped is not None:
            made = await asyncio.to_thread(message_of, who, hook, meaning.mapped, keys[0], now_ns)
            if isinstance(made, Arrival):
                arrival = made
            else:
                meaning = Meaning("unmapped", "what the mapping gives is no message the gateway takes")
        act = hook_calls.receive(
            who,
            hook,
            read.call,
            "taken" if arrival is not None else meaning.outcome,
            meaning.reason,
            read.body,
            arrival,
            keys if meaning.challenge is None else (),
            now_ns,
        )
        verdict = await self._submit(act)
        if isinstance(verdict.answer, Refused) and verdict.answer.reason == hook_calls.STALE:
            return None
        if not isinstance(verdict.answer, Taken):
            return unknown() if verdict.code == 404 else Reply(verdict.code, verdict.answer, 1)
        taken = verdict.answer
        if taken.repeated:
            return await self._again(who, taken.call_id, now_ns)
        if taken.message is not None:
            return await self._send(who, taken.call_id, taken.message, now_ns)
        self._calls["valid", meaning.outcome] += 1
        if meaning.challenge is not None:
            return Reply(200, {"challenge": meaning.challenge})
        if meaning.outcome == "unmapped":
            return Reply(422, Refused(reason="not_mapped", detail=meaning.reason))
        code = 200 if meaning.outcome == "answered" else 202
        return Reply(code, Received(call_id=taken.call_id, outcome=meaning.outcome))

    async def _send(
        self, who: Principal, call_id: str, message: bytes, now_ns: int, repeated: bool = False
    ) -> Reply:
        """Into the corridor, and what it said into the log. What it could not say is said by the next."""
        arrival = await asyncio.to_thread(hook_calls.again, who, message, now_ns)
        verdict = hook_calls.NO_MESSAGE
        if arrival is not None:
            (verdict,) = await self._house.committer.submit(who.tenant_id, [arrival])
        if not hook_calls.is_settled(verdict):
            return Reply(verdict.code, verdict.answer, 1)
        name = None if arrival is None else arrival.message.message_id
        seq = None
        if name is not None and not isinstance(verdict.answer, Accepted):  # refused, and archived as such?
            found = await self._house.store.message(who.tenant_id, name)
            seq = None if found is None else found.sequence_number
        row = (await self._submit(hook_calls.settle(who, call_id, verdict, now_ns, seq))).answer
        if not isinstance(row, dict):  # the message is durable; that it is noted, too, is found out later
            return Reply(503, Refused(reason="not_durable", detail="call again later"), 1)
        self._calls["valid", row["outcome"]] += 1
        return Reply(202, _received(row, repeated))

    async def _again(self, who: Principal, call_id: str, now_ns: int) -> Reply:
        """A delivery that was taken before is answered as then, and becomes no second message."""
        verdict = await self._submit(hook_calls.count_repeat(who, call_id, now_ns))
        if not isinstance(verdict.answer, dict):
            return Reply(verdict.code, verdict.answer, 1)
        self._repeats += 1
        row = verdict.answer
        if row["outcome"] == "taken" and row["message"] is not None:
            return await self._send(who, call_id, bytes(row["message"]), now_ns, True)
        return Reply(202, _received(row, True))

    async def _turn_away(self, hook: Row, call: Call, judged: Judged) -> Reply:
        self._calls[judged.status, "turned_away"] += 1
        away = self._away.get(hook["hook_id"])
        if away is None:
            away = self._away[hook["hook_id"]] = _Away(hook["tenant_id"], self._clock())
        if away.kept < EACH_A_MINUTE:
            away.kept += 1
            who = self._house.principal_of_house(hook["tenant_id"])
            one = [TurnedAway(call, judged.detail)]
            act = hook_calls.turn_away(who, hook["hook_id"], one, {}, call.at_ns)
            if (await self._submit(act)).code >= 500:
                away.counted[judged.status] += 1
        else:
            away.counted[judged.status] += 1
        return Reply(401, Refused(reason=f"signature_{judged.status}", detail=judged.detail))

    async def due(self, now_ns: int) -> None:
        """Tell of calls that were only counted, and bring to an end what was taken and left."""
        await self.count()
        for tenant_id, head in await self._watch.awake():
            left = await self._rows.calls_taken(tenant_id, now_ns, AT_ONCE)
            if not left:
                self._watch.rest(tenant_id, head)
            who = self._house.principal_of_house(tenant_id)
            for row in left:
                if row["at_ns"] <= now_ns - LATE_NS and row["message"] is not None:
                    await self._send(who, row["call_id"], bytes(row["message"]), now_ns)

    async def count(self, is_last: bool = False) -> None:
        """Write down the minutes that are over; at the end of the house, all of them."""
        now = self._clock()
        over = [name for name, away in self._away.items() if is_last or now - away.since >= MINUTE_S]
        for hook_id in over:
            away = self._away.pop(hook_id)
            who = self._house.principal_of_house(away.tenant_id)
            act = hook_calls.turn_away(who, hook_id, (), dict(away.counted), self._house.clock())
            try:
                verdict = await self._submit(act)
                is_kept = verdict.code < 500
            except ObservatoryError:
                is_kept = False
            if not is_kept:  # the store is away: they are counted with those that come meanwhile
                since = self._away.setdefault(hook_id, away)
                since.counted += away.counted if since is not away else Counter()
            elif verdict.answer and isinstance(verdict.answer, int) and not is_last:
                self._away.setdefault(hook_id, _Away(away.tenant_id, now))  # it is told in a minute

    async def drain(self) -> None:
        await self.count(is_last=True)

    async def _submit(self, act: Act) -> Verdict:
        return (await self._house.committer.submit(act.principal.tenant_id, [act]))[0]

    def measures(self) -> list[Measure]:
        told = [
            Measure(
                "observatory_hooks_calls_total",
                "counter",
                "Webhooks that came in, by signature and outcome",
                number,
                {"signature": signature, "outcome": outcome},
            )
            for (signature, outcome), number in sorted(self._calls.items())
        ]
        waiting = sum(away.counted.total() for away in self._away.values())
        return [
            *told,
            Measure(
                "observatory_hooks_repeats_total",
                "counter",
                "Deliveries that had come in before",
                self._repeats,
            ),
            Measure(
                "observatory_hooks_uncounted",
                "gauge",
                "Calls turned away that the log does not count yet",
                waiting,
            ),
        ]


def _received(row: Row, repeated: bool) -> Received:
    return Received(
        call_id=row["call_id"],
        outcome=row["outcome"],
        message_id=row["message_id"],
        session_id=row["session_id"],
        repeated=repeated,
    )

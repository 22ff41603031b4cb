"""OTLP in: `POST /v1/traces` and `POST /v1/logs`, protobuf or JSON, gzip or plain; what agents already emit.

Laws: as at the agents' own door, nothing is acknowledged before it is durable, and a body beyond the limits
is dropped unread. The answer is OTLP's: what was not recorded is counted in `partial_success` with a
sentence, what may be tried again is answered 429 or 503 with Retry-After, what never will be 4xx. What a span
said and no step holds is counted by name and told at `GET /v1/otlp`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any, Final, NamedTuple

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StoreError
from observatory.features.graph.loader import playback
from observatory.features.otlp import reader as otlp_read
from observatory.features.otlp.counters import Seen, Signal
from observatory.features.otlp.records import Form, NotOtlp
from observatory.features.otlp.replies import reply, trouble
from observatory.features.otlp.span_events import steps_of_logs
from observatory.features.otlp.span_values import Tally
from observatory.features.otlp.spans import Family, Recorded, Step
from observatory.features.otlp.wire import TooMuch
from observatory.http.app_state import House
from observatory.http.client_certificate import CERTIFICATE
from observatory.http.ingest import BodyError, Ingest, Receive, Scope, Send
from observatory.pipeline.state import Principal, Verdict
from observatory.protocol.certificates import Certificate

PATHS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs"}
FORMS: Final[dict[bytes, Form]] = {b"application/x-protobuf": "protobuf", b"application/json": "json"}
NOT_AGENTS: Final = (
    "{count} carry no agent's words (GenAI, OpenInference, OpenLLMetry or Claude Code) and were not recorded"
)


class Outcome(NamedTuple):
    rejected: int
    told: str


class OtlpIn:
    def __init__(self, house: House, ingest: Ingest) -> None:
        self._house, self._ingest = house, ingest

    async def post(self, scope: Scope, receive: Receive, send: Send) -> None:
        signal = PATHS[scope["path"]]
        headers = dict(scope["headers"])
        form = FORMS.get(headers.get(b"content-type", b"").partition(b";")[0].strip().lower())
        try:
            scope["observatory.who"] = who = await self.admit(headers, scope.get(CERTIFICATE))
            if form is None:
                detail = "send Content-Type application/x-protobuf or application/json"
                raise BodyError(415, "unsupported_media_type", detail)
            body = await self._ingest.body(headers, receive, scope)
            if body is None:
                return  # the client went away before it had said everything; nothing was taken
            outcome = await self.take(who, signal, body, form)
            await _answer(send, 200, reply(signal, form, outcome.rejected, outcome.told), form)
        except BodyError as error:
            told = error.answer
            await self._refuse(send, form, error.code, told.reason, told.detail or "")
        except NotOtlp as fault:
            await self._refuse(send, form, 400, "not_otlp", str(fault))
        except QueueFull as full:
            await self._refuse(send, form, 429, full.reason, str(full), full.retry_after_s)
        except (GatewayStopped, NotDurable) as stopped:
            await self._refuse(send, form, 503, "not_durable", str(stopped), 1)
        except NotStored as some:  # its records were counted one by one
            await _answer(send, 503, trouble(form, 503, "not_durable", str(some)), form, 1)

    async def _refuse(
        self, send: Send, form: Form | None, code: int, reason: str, detail: str, retry_s: int | None = None
    ) -> None:
        self.turned_away(code)
        await _answer(send, code, trouble(form, code, reason, detail), form, retry_s)

    async def take(self, who: Principal, signal: Signal, body: bytes, form: Form) -> Outcome:
        """All of a request, durable or told of; raises NotOtlp, QueueFull, GatewayStopped or NotStored."""
        most = self._house.settings.batch_lines
        try:
            # In a thread: a long batch read here would hold up every other client.
            if signal == "logs":
                steps, tally = await asyncio.to_thread(_logs, body, form, most, who.agent_id)
            else:
                family, names = await asyncio.to_thread(_family, body, form, most)
                record = await self._record(who.tenant_id, names)
                steps, tally = await asyncio.to_thread(family.steps, who.agent_id, record)
        except TooMuch as error:
            raise BodyError(413, "too_many", str(error)) from error
        wanted = [one for one in steps if one is not None]
        verdicts: list[Verdict] = []
        if wanted:
            judge = partial(self._judge, who, self._house.clock())
            sizes = [len(one.body) for one in wanted]
            verdicts = await self._house.committer.enqueue_bodies(who.tenant_id, wanted, judge, sizes)
            self._house.violators.note(who.key_id, verdicts)
        for code, times in Counter([verdict.code for verdict in verdicts]).items():
            self._house.doors.count(code, times)
        refused = [verdict for verdict in verdicts if verdict.code not in (200, 202)]
        if any(verdict.code == 503 for verdict in verdicts):
            # Sent again, what was stored is found and not stored twice; told as rejected, the rest were lost.
            raise NotStored("not everything can be made durable now; try again")
        self.seen(who.tenant_id).note(signal, len(steps), len(wanted) - len(refused), len(refused), tally)
        return Outcome(len(refused) + tally.not_agents, _told(refused, tally))

    async def _record(self, tenant_id: str, names: set[str]) -> dict[str, Recorded]:
        """What is on record of these steps. A commit that comes in between is for the corridor to judge."""
        if not names:
            return {}
        try:
            found = await playback(self._house).steps_recorded(tenant_id, names)
        except StoreError:
            return {}  # a record that cannot be read takes nothing either: the commit will say so
        return {name: Recorded(*one) for name, one in found.items()}

    def turned_away(self, code: int) -> None:
        """A whole request: nothing of it was looked at singly, so it counts as one answer."""
        self._house.doors.count(code)

    async def admit(self, headers: dict[bytes, bytes], shown: Certificate | None) -> Principal:
        return await self._ingest.admit(headers, shown)

    def _judge(self, who: Principal, now_ns: int, step: Step) -> Any:
        return self._ingest.judge(who, now_ns, step.context, step.body)

    def seen(self, tenant_id: str) -> Seen:
        return self._house.otlp_seen.setdefault(tenant_id, Seen())


class NotStored(Exception):
    """Not all of the request is durable; it may be sent again."""


def _logs(body: bytes, form: Form, most: int, bound: str | None) -> tuple[list[Step | None], Tally]:
    return steps_of_logs(otlp_read.logs(body, form, most), bound)


def _family(body: bytes, form: Form, most: int) -> tuple[Family, set[str]]:
    family = Family(otlp_read.spans(body, form, most))
    return family, family.asks()


def _told(refused: list[Verdict], tally: Tally) -> str:
    """Why some were not recorded, the commonest first."""
    reasons = Counter(_reason(verdict) for verdict in refused)
    told = [f"{count} refused: {reason}" for reason, count in reasons.most_common(3)]
    if tally.not_agents:
        told.append(NOT_AGENTS.format(count=tally.not_agents))
    return "; ".join(told)


def _reason(verdict: Verdict) -> str:
    answer = verdict.answer
    faults = getattr(answer, "faults", None)
    if faults:
        return f"{faults[0].path}: {faults[0].problem}"
    return getattr(answer, "detail", None) or str(getattr(answer, "reason", verdict.code))


async def _answer(
    send: Send, code: int, body: bytes, form: Form | None, retry_after_s: int | None = None
) -> None:
    kind = b"application/x-protobuf" if form == "protobuf" else b"application/json"
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    if retry_after_s is not None:
        headers.append((b"retry-after", str(retry_after_s).encode()))
    if code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})

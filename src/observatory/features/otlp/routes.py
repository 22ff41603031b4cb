"""OTLP ingest: `POST /v1/traces` and `POST /v1/logs`, protobuf or JSON, gzip or plain.

Laws: as with messages, nothing is acknowledged before it is durable, and a body beyond the limits is dropped
unread. The response is OTLP's: what was not recorded is counted in `partial_success` with a sentence, what
may be retried is answered 429 or 503 with Retry-After, permanent errors with 4xx. Attributes without a
counterpart in a step are counted by name and listed at `GET /v1/otlp`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any, Final, NamedTuple

from observatory.errors import GatewayStopped, NotDurable, QueueFull, StoreError
from observatory.features.graph.queries_session import playback
from observatory.features.otlp import reader as otlp_read
from observatory.features.otlp.counters import OtlpCounters, ReceivedCounts, Signal
from observatory.features.otlp.records import Form, NotOtlp
from observatory.features.otlp.replies import error_reply, reply
from observatory.features.otlp.span_events import steps_of_logs
from observatory.features.otlp.span_values import IngestTally
from observatory.features.otlp.spans import RecordedStep, SpanFamily, SpanStep
from observatory.features.otlp.wire import TooMuch
from observatory.http.app_state import AppState
from observatory.http.client_certificate import CERTIFICATE
from observatory.http.ingest import BodyError, Ingest, Receive, Scope, Send
from observatory.pipeline.state import Principal, SubmissionResult
from observatory.protocol.certificates import Certificate

PATHS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs"}
FORMS: Final[dict[bytes, Form]] = {b"application/x-protobuf": "protobuf", b"application/json": "json"}
NOT_AGENTS: Final = (
    "{count} without agent attributes (GenAI, OpenInference, OpenLLMetry or Claude Code) were not recorded"
)


class OtlpOutcome(NamedTuple):
    rejected: int
    detail: str


class OtlpIngest:
    def __init__(self, app: AppState, ingest: Ingest) -> None:
        self._app, self._ingest = app, ingest

    async def post(self, scope: Scope, receive: Receive, send: Send) -> None:
        signal = PATHS[scope["path"]]
        headers = dict(scope["headers"])
        form = FORMS.get(headers.get(b"content-type", b"").partition(b";")[0].strip().lower())
        try:
            scope["observatory.who"] = principal = await self.admit(headers, scope.get(CERTIFICATE))
            if form is None:
                detail = "send Content-Type application/x-protobuf or application/json"
                raise BodyError(415, "unsupported_media_type", detail)
            body = await self._ingest.body(headers, receive, scope)
            if body is None:
                return  # the client disconnected before the end of the body; nothing was recorded
            outcome = await self.take(principal, signal, body, form)
            await _answer(send, 200, reply(signal, form, outcome.rejected, outcome.detail), form)
        except BodyError as error:
            answer = error.answer
            await self._refuse(send, form, error.code, answer.reason, answer.detail or "")
        except NotOtlp as fault:
            await self._refuse(send, form, 400, "not_otlp", str(fault))
        except QueueFull as full:
            await self._refuse(send, form, 429, full.reason, str(full), full.retry_after_s)
        except (GatewayStopped, NotDurable) as stopped:
            await self._refuse(send, form, 503, "not_durable", str(stopped), 1)
        except NotStored as some:  # its records are already counted one by one
            await _answer(send, 503, error_reply(form, 503, "not_durable", str(some)), form, 1)

    async def _refuse(
        self, send: Send, form: Form | None, code: int, reason: str, detail: str, retry_s: int | None = None
    ) -> None:
        self.turned_away(code)
        await _answer(send, code, error_reply(form, code, reason, detail), form, retry_s)

    async def take(self, principal: Principal, signal: Signal, body: bytes, form: Form) -> OtlpOutcome:
        """Records a whole request; raises NotOtlp, QueueFull, GatewayStopped or NotStored."""
        most = self._app.settings.batch_lines
        try:
            # In a thread: parsing a large batch here would block every other client.
            if signal == "logs":
                steps, tally = await asyncio.to_thread(_logs, body, form, most, principal.agent_id)
            else:
                family, names = await asyncio.to_thread(_family, body, form, most)
                record = await self._record(principal.tenant_id, names)
                steps, tally = await asyncio.to_thread(family.steps, principal.agent_id, record)
        except TooMuch as error:
            raise BodyError(413, "too_many", str(error)) from error
        bodies = [one for one in steps if one is not None]
        verdicts: list[SubmissionResult] = []
        if bodies:
            judge = partial(self._judge, principal, self._app.clock())
            sizes = [len(one.body) for one in bodies]
            verdicts = await self._app.committer.enqueue_bodies(principal.tenant_id, bodies, judge, sizes)
            self._app.violators.note(principal.key_id, verdicts)
        for code, times in Counter([verdict.code for verdict in verdicts]).items():
            self._app.request_metrics.count(code, times)
        refused = [verdict for verdict in verdicts if verdict.code not in (200, 202)]
        if any(verdict.code == 503 for verdict in verdicts):
            # A retry finds what was stored and does not store it twice; reported as rejected, the rest
            # would be lost.
            raise NotStored("not everything can be made durable now; retry")
        self.seen(principal.tenant_id).note(
            signal, len(steps), len(bodies) - len(refused), len(refused), tally
        )
        return OtlpOutcome(len(refused) + tally.not_agents, _detail_of(refused, tally))

    async def _record(self, tenant_id: str, names: set[str]) -> dict[str, RecordedStep]:
        """The recorded versions of these steps. A commit in between is judged by the pipeline."""
        if not names:
            return {}
        try:
            found = await playback(self._app).steps_recorded(tenant_id, names)
        except StoreError:
            return {}  # a record that cannot be read cannot be written either: the commit will fail
        return {name: RecordedStep(*one) for name, one in found.items()}

    def turned_away(self, code: int) -> None:
        """A whole request was refused: nothing of it was read, so it counts as one answer."""
        self._app.request_metrics.count(code)

    async def admit(self, headers: dict[bytes, bytes], certificate: Certificate | None) -> Principal:
        return await self._ingest.admit(headers, certificate)

    def _judge(self, principal: Principal, now_ns: int, step: SpanStep) -> Any:
        return self._ingest.judge(principal, now_ns, step.context, step.body)

    def seen(self, tenant_id: str) -> ReceivedCounts:
        return self._app.service(OtlpCounters).of(tenant_id)


class NotStored(Exception):
    """Not all of the request is durable; it may be retried."""


def _logs(body: bytes, form: Form, most: int, bound: str | None) -> tuple[list[SpanStep | None], IngestTally]:
    return steps_of_logs(otlp_read.logs(body, form, most), bound)


def _family(body: bytes, form: Form, most: int) -> tuple[SpanFamily, set[str]]:
    family = SpanFamily(otlp_read.spans(body, form, most))
    return family, family.asks()


def _detail_of(refused: list[SubmissionResult], tally: IngestTally) -> str:
    """Why some were not recorded, the most frequent reasons first."""
    reasons = Counter(_reason(verdict) for verdict in refused)
    reasons_text = [f"{count} refused: {reason}" for reason, count in reasons.most_common(3)]
    if tally.not_agents:
        reasons_text.append(NOT_AGENTS.format(count=tally.not_agents))
    return "; ".join(reasons_text)


def _reason(verdict: SubmissionResult) -> str:
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

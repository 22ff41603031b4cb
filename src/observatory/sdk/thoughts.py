"""`think` and `proof`: what an agent decided and why, in the gateway's decision trail.

Law: unlike a step a thought is no telemetry. When `think` returns it is durable and has its place in the
chain; while the gateway is away it raises `NotAnswered` and keeps nothing to send later. The record's id is
chosen here, so thinking the same again under that id is safe: it is recorded once.

What is asked is written once, as a generator of requests; `run` and `run_async` carry them to the gateway.
"""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from urllib.parse import quote

import msgspec

from observatory.errors import ObservatoryError
from observatory.protocol.thoughts import MEMBERS
from observatory.protocol.thoughts import RecordedThought as Recorded
from observatory.sdk.answers import Answer
from observatory.sdk.client import NoChannel
from observatory.sdk.errors import NotAnswered, Rejected
from observatory.sdk.session import current_line
from observatory.sdk.step import new_id

if TYPE_CHECKING:
    from observatory.sdk.speaker import Speaker

T = TypeVar("T")
TIMEOUT_S = 10.0
Json = dict[str, Any]
Content = Mapping[str, Any] | str


class ChainBroken(ObservatoryError):
    """What is stored of a session is not what was recorded; nothing can be sealed over it."""

    def __init__(self, session_id: str, first_broken_index: int | None) -> None:
        self.session_id = session_id
        self.first_broken_index = first_broken_index
        super().__init__(f"the thoughts of {session_id} are broken at record {first_broken_index}")


class Request(NamedTuple):
    path: str
    body: Json
    what: str  # for a refusal's sentence


Asking = Generator[Request, Json, T]


def run(speaker: "Speaker", asking: Asking[T], timeout: float) -> T:
    answer: Any = None
    with contextlib.closing(asking):
        while True:
            try:
                request = asking.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                asked = speaker.ear.request(request.path, request.body, timeout)
                answer = _heard(request, *asked.result(timeout + 1))
            except (NoChannel, concurrent.futures.TimeoutError) as exc:
                raise _unheard(request) from exc


async def run_async(speaker: "Speaker", asking: Asking[T], timeout: float) -> T:  # noqa: ASYNC109 (as think says it)
    answer: Any = None
    with contextlib.closing(asking):
        while True:
            try:
                request = asking.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                asked = asyncio.wrap_future(speaker.ear.request(request.path, request.body, timeout))
                answer = _heard(request, *await asyncio.wait_for(asked, timeout + 1))
            except (NoChannel, TimeoutError) as exc:
                raise _unheard(request) from exc


def _unheard(request: Request) -> NotAnswered:
    return NotAnswered(f"the gateway did not answer to {request.what}; nothing is kept, ask again")


def _heard(request: Request, status: int, body: bytes) -> Json:
    try:
        told = msgspec.json.decode(body, type=Json)
    except msgspec.MsgspecError:
        told = {}
    if not 200 <= status < 300:
        reason, detail = (str(told[name]) if told.get(name) else None for name in ("reason", "detail"))
        raise Rejected(Answer(status, reason=reason or "", detail=detail), request.what)
    return told


def thinking(
    speaker: "Speaker",
    kind: str,
    content: Content,
    *,
    session_id: str,
    task_id: str | None = None,
    references: Sequence[str] = (),
    audit_event_ids: Sequence[str] = (),
    record_id: str | None = None,
) -> Asking[Recorded]:
    body = {
        "session_id": session_id,
        "task_id": task_id or f"tsk_{session_id}",
        "type": kind,
        "content": _written(kind, content),
        "references": [references] if isinstance(references, str) else list(references),
        "audit_event_ids": [audit_event_ids] if isinstance(audit_event_ids, str) else list(audit_event_ids),
        "record_id": record_id or f"rec_{new_id()}",
        "agent_id": speaker.agent_id,
    }
    answer = yield Request("/v1/thoughts", body, f"the thought {body['record_id']}")
    return msgspec.convert(answer, Recorded)


def _written(kind: str, content: Content) -> Mapping[str, Any]:
    """One text is all a plan or an analysis needs."""
    if not isinstance(content, str):
        return content
    members = MEMBERS.get(kind, ())
    if len(members) != 1:
        raise ValueError(f"a {kind} holds {', '.join(members) or 'nothing we know'}: give them by name")
    return {members[0]: content}


class Proving:
    """A proof-grade session as its agent sees it; `Proof` and `AsyncProof` give it its words."""

    def __init__(
        self,
        speaker: "Speaker",
        intent: str,
        task_id: str | None,
        session_id: str | None,
        predecessor: str | None,
        timeout: float,
    ) -> None:
        line = current_line()
        self._speaker, self._timeout = speaker, timeout
        self.session_id = session_id or (line.session_id if line is not None else f"ses_{new_id()}")
        self.task_id = task_id or f"tsk_{self.session_id}"
        self.genesis: str | None = None
        self.root: str | None = None
        """Of the seal, once the block was left."""
        self._closing: tuple[Json, Json] | None = None
        self._begun = {
            "intent": intent,
            "task_id": self.task_id,
            "session_id": self.session_id,
            "predecessor_session_id": predecessor,
            "agent_id": speaker.agent_id,
        }

    def conclude(
        self,
        *,
        happened: str | Sequence[str],
        proved: str | Sequence[str],
        uncertain: str | Sequence[str],
        **more: Any,
    ) -> None:
        """The closing reflection. It is recorded when the block is left, after the chain was verified."""
        more.setdefault("record_id", f"rec_{new_id()}")  # so that finishing again records it once
        self._closing = {"happened": happened, "proved": proved, "uncertain": uncertain}, more

    def _start(self) -> Asking[None]:
        answer = yield Request("/v1/thought-sessions", self._begun, f"the start of {self.session_id}")
        self.session_id, self.genesis = answer["session_id"], answer["genesis"]

    def _thought(self, kind: str, content: Content, more: Json) -> Asking[Recorded]:
        more = {"session_id": self.session_id, "task_id": self.task_id} | more
        return thinking(self._speaker, kind, content, **more)

    def _finish(self) -> Asking[None]:
        """The seed's writeback order: verify, the closing reflection, the seal, the end."""
        if self._closing is None:
            raise ValueError("a proof ends with its reflection: conclude(happened=, proved=, uncertain=)")
        path = f"/v1/sessions/{quote(self.session_id, safe='')}"
        found = yield Request(f"{path}/thoughts/verify", {}, f"the verification of {self.session_id}")
        if not found["valid"]:
            raise ChainBroken(self.session_id, found["first_broken_index"])
        yield from self._thought("reflection", *self._closing)
        sealed = yield Request(f"{path}/seal", {}, f"the seal of {self.session_id}")
        self.root = sealed["root"]
        yield Request(f"{path}/thoughts/end", {}, f"the end of {self.session_id}")


class Proof(Proving):
    """`with agent.proof("Deploy v2.3.1") as proof:` think in it, and `conclude`; then `proof.root` can be
    pinned. A block that fails leaves the session unsealed: nothing was proved."""

    def think(self, kind: str, content: Content, **more: Any) -> Recorded:
        """As `Agent.think`, in this session and for its task unless another is named."""
        return run(self._speaker, self._thought(kind, content, more), self._timeout)

    def __enter__(self) -> Self:
        run(self._speaker, self._start(), self._timeout)
        return self

    def finish(self) -> None:
        """Done when the block is left; may be asked for again when the gateway did not answer."""
        run(self._speaker, self._finish(), self._timeout)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()


class AsyncProof(Proving):
    """`Proof`, awaited."""

    async def think(self, kind: str, content: Content, **more: Any) -> Recorded:
        return await run_async(self._speaker, self._thought(kind, content, more), self._timeout)

    async def __aenter__(self) -> Self:
        await run_async(self._speaker, self._start(), self._timeout)
        return self

    async def finish(self) -> None:
        await run_async(self._speaker, self._finish(), self._timeout)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.finish()

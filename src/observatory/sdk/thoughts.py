"""`think` and `proof`: record what an agent decided and why in the gateway's decision trail.

Rule: unlike a step, a thought is not telemetry. When `think` returns, it is durable and part of the chain;
while the gateway is unreachable it raises `NotAnswered` and stores nothing to send later. The client chooses
the record id, so retrying with the same id is safe: the thought is recorded once.

Each operation is a generator of requests; `run` and `run_async` send them to the gateway.
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
from observatory.sdk.client import NoResponse
from observatory.sdk.errors import NotAnswered, Rejected
from observatory.sdk.session import current_line
from observatory.sdk.step import new_id

if TYPE_CHECKING:
    from observatory.sdk.sender import Sender

T = TypeVar("T")
TIMEOUT_S = 10.0
Json = dict[str, Any]
Content = Mapping[str, Any] | str


class ChainBroken(ObservatoryError):
    """The stored thoughts of a session are not those recorded; the session cannot be sealed."""

    def __init__(self, session_id: str, first_broken_index: int | None) -> None:
        self.session_id = session_id
        self.first_broken_index = first_broken_index
        super().__init__(f"the thoughts of {session_id} are broken at record {first_broken_index}")


class ThoughtCall(NamedTuple):
    path: str
    body: Json
    what: str  # for error messages


Requests = Generator[ThoughtCall, Json, T]


def run(sender: "Sender", requests: Requests[T], timeout: float) -> T:
    answer: Any = None
    with contextlib.closing(requests):
        while True:
            try:
                request = requests.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                response = sender.receiver.request(request.path, request.body, timeout)
                answer = _decoded(request, *response.result(timeout + 1))
            except (NoResponse, concurrent.futures.TimeoutError) as exc:
                raise _not_answered(request) from exc


async def run_async(sender: "Sender", requests: Requests[T], timeout: float) -> T:  # noqa: ASYNC109 (the signature of think)
    answer: Any = None
    with contextlib.closing(requests):
        while True:
            try:
                request = requests.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            try:
                response = asyncio.wrap_future(sender.receiver.request(request.path, request.body, timeout))
                answer = _decoded(request, *await asyncio.wait_for(response, timeout + 1))
            except (NoResponse, TimeoutError) as exc:
                raise _not_answered(request) from exc


def _not_answered(request: ThoughtCall) -> NotAnswered:
    return NotAnswered(f"the gateway did not answer {request.what}; nothing was stored, try again")


def _decoded(request: ThoughtCall, status: int, body: bytes) -> Json:
    try:
        answer = msgspec.json.decode(body, type=Json)
    except msgspec.MsgspecError:
        answer = {}
    if not 200 <= status < 300:
        reason, detail = (str(answer[name]) if answer.get(name) else None for name in ("reason", "detail"))
        raise Rejected(Answer(status, reason=reason or "", detail=detail), request.what)
    return answer


def record_thought(
    sender: "Sender",
    kind: str,
    content: Content,
    *,
    session_id: str,
    task_id: str | None = None,
    references: Sequence[str] = (),
    audit_event_ids: Sequence[str] = (),
    record_id: str | None = None,
) -> Requests[Recorded]:
    body = {
        "session_id": session_id,
        "task_id": task_id or f"tsk_{session_id}",
        "type": kind,
        "content": _written(kind, content),
        "references": [references] if isinstance(references, str) else list(references),
        "audit_event_ids": [audit_event_ids] if isinstance(audit_event_ids, str) else list(audit_event_ids),
        "record_id": record_id or f"rec_{new_id()}",
        "agent_id": sender.agent_id,
    }
    answer = yield ThoughtCall("/v1/thoughts", body, f"the thought {body['record_id']}")
    return msgspec.convert(answer, Recorded)


def _written(kind: str, content: Content) -> Mapping[str, Any]:
    """A plan or an analysis can be given as a single text."""
    if not isinstance(content, str):
        return content
    members = MEMBERS.get(kind, ())
    if len(members) != 1:
        raise ValueError(
            f"a {kind} has the members {', '.join(members) or '(unknown kind)'}: pass them by name"
        )
    return {members[0]: content}


class ProofSession:
    """Base class of `Proof` and `AsyncProof`: a proof-grade session of an agent."""

    def __init__(
        self,
        sender: "Sender",
        intent: str,
        task_id: str | None,
        session_id: str | None,
        predecessor: str | None,
        timeout: float,
    ) -> None:
        line = current_line()
        self._sender, self._timeout = sender, timeout
        self.session_id = session_id or (line.session_id if line is not None else f"ses_{new_id()}")
        self.task_id = task_id or f"tsk_{self.session_id}"
        self.genesis: str | None = None
        self.root: str | None = None
        """Root of the seal, set when the block has ended."""
        self._closing: tuple[Json, Json] | None = None
        self._start_request = {
            "intent": intent,
            "task_id": self.task_id,
            "session_id": self.session_id,
            "predecessor_session_id": predecessor,
            "agent_id": sender.agent_id,
        }

    def conclude(
        self,
        *,
        happened: str | Sequence[str],
        proved: str | Sequence[str],
        uncertain: str | Sequence[str],
        **more: Any,
    ) -> None:
        """Set the closing reflection. It is recorded when the block ends, after the chain is verified."""
        more.setdefault("record_id", f"rec_{new_id()}")  # so that a retry of `finish` records it once
        self._closing = {"happened": happened, "proved": proved, "uncertain": uncertain}, more

    def _start(self) -> Requests[None]:
        answer = yield ThoughtCall(
            "/v1/thought-sessions", self._start_request, f"the start of {self.session_id}"
        )
        self.session_id, self.genesis = answer["session_id"], answer["genesis"]

    def _thought(self, kind: str, content: Content, more: Json) -> Requests[Recorded]:
        more = {"session_id": self.session_id, "task_id": self.task_id} | more
        return record_thought(self._sender, kind, content, **more)

    def _finish(self) -> Requests[None]:
        """The seed's writeback order: verify, the closing reflection, the seal, the end."""
        if self._closing is None:
            raise ValueError("a proof needs its closing reflection: conclude(happened=, proved=, uncertain=)")
        path = f"/v1/sessions/{quote(self.session_id, safe='')}"
        report = yield ThoughtCall(f"{path}/thoughts/verify", {}, f"the verification of {self.session_id}")
        if not report["valid"]:
            raise ChainBroken(self.session_id, report["first_broken_index"])
        yield from self._thought("reflection", *self._closing)
        sealed = yield ThoughtCall(f"{path}/seal", {}, f"the seal of {self.session_id}")
        self.root = sealed["root"]
        yield ThoughtCall(f"{path}/thoughts/end", {}, f"the end of {self.session_id}")


class Proof(ProofSession):
    """`with agent.proof("Deploy v2.3.1") as proof:` call `think` and `conclude` in it; then `proof.root` can
    be pinned. A block that raises leaves the session unsealed: nothing was proved."""

    def think(self, kind: str, content: Content, **more: Any) -> Recorded:
        """Like `Agent.think`, in this session and for its task unless another is given."""
        return run(self._sender, self._thought(kind, content, more), self._timeout)

    def __enter__(self) -> Self:
        run(self._sender, self._start(), self._timeout)
        return self

    def finish(self) -> None:
        """Called when the block ends; may be called again when the gateway did not answer."""
        run(self._sender, self._finish(), self._timeout)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()


class AsyncProof(ProofSession):
    """The async version of `Proof`."""

    async def think(self, kind: str, content: Content, **more: Any) -> Recorded:
        return await run_async(self._sender, self._thought(kind, content, more), self._timeout)

    async def __aenter__(self) -> Self:
        await run_async(self._sender, self._start(), self._timeout)
        return self

    async def finish(self) -> None:
        await run_async(self._sender, self._finish(), self._timeout)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.finish()

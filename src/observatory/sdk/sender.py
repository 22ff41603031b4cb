"""`Sender`: the base class of `Agent` and `AsyncAgent`, with identity, outbox, orders and receiver."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from observatory.sdk.answers import Answer
from observatory.sdk.client import tls
from observatory.sdk.credentials import SYSTEM_TRUST, Trust, credentials_of_agent, find_credentials
from observatory.sdk.delivery import Delivery
from observatory.sdk.errors import Rejected
from observatory.sdk.orders import Orders
from observatory.sdk.outbox import Outbox
from observatory.sdk.received import Prompt
from observatory.sdk.receiver import Receiver, close_all
from observatory.sdk.session import SessionBranch, current_line, open_line
from observatory.sdk.step import Step

HEARTBEAT_S = 15.0
OnAway = Literal["allow", "deny"]


def _on_away(given: str | None) -> OnAway:
    """What an unreachable gateway means for tools: the argument, else the environment, else they may run."""
    match given or os.environ.get("OBSERVATORY_ON_AWAY") or "allow":
        case "allow":
            return "allow"
        case "deny":
            return "deny"
        case other:
            raise ValueError(f"on_away={other!r} must be allow or deny")


def _trust(*files: str | os.PathLike[str] | None) -> Trust:
    return Trust(*(None if one is None else os.fspath(one) for one in files))


class Sender:
    def __init__(
        self,
        agent_id: str,
        *,
        agent_type: str | None = None,
        version: str = "1.0.0",
        cluster: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        url: str | None = None,
        key: str | None = None,
        data: str | os.PathLike[str] | None = None,
        ca: str | os.PathLike[str] | None = None,
        cert: str | os.PathLike[str] | None = None,
        cert_key: str | os.PathLike[str] | None = None,
        delivery: Delivery | None = None,
        on_reject: Callable[[Rejected], None] | None = None,
        outbox: Outbox | None = None,
        control: bool = True,
        heartbeat_s: float | None = HEARTBEAT_S,
        on_instruction: Callable[[str], None] | None = None,
        on_away: OnAway | None = None,
    ) -> None:
        self.on_away = _on_away(on_away)
        self.agent_id = agent_id
        self.cluster = cluster or os.environ.get("OBSERVATORY_CLUSTER") or "local"
        self.identity: dict[str, Any] = {
            "agent_id": agent_id,
            "agent_type": agent_type or re.sub(r"[-_.]?\d+$", "", agent_id) or agent_id,
            "capability_version": version,
        }
        self.identity |= {k: v for k, v in (("model", model), ("provider", provider)) if v is not None}
        self._owns_outbox = outbox is None
        if outbox is None:
            credentials = find_credentials(
                url, key, data, trust=_trust(ca, cert, cert_key), agent_id=agent_id
            )
            if credentials.trust != SYSTEM_TRUST:
                tls(credentials.url, credentials.trust)  # an unusable file raises here, not in a thread
            outbox = Outbox(agent_id, credentials, delivery or Delivery(), on_reject=on_reject)
        else:
            credentials = credentials_of_agent(outbox.credentials, agent_id)
        self.outbox = outbox
        self.orders = Orders(agent_id, on_instruction)
        self._control = control
        self._state: dict[str, Any] = {}
        self.receiver = Receiver(
            agent_id, credentials, outbox.delivery, self.orders, self._pulse, heartbeat_s
        )
        outbox.receivers.add(self.receiver)
        self._own_line = SessionBranch(self, *open_line(None, None))

    def _line(self) -> SessionBranch:
        """The branch of a step recorded without a session: the current session's, else the agent's own."""
        return current_line() or self._own_line

    def _here(self) -> tuple[SessionBranch, "Sender"]:
        return self._line(), self

    @property
    def is_gateway_away(self) -> bool:
        """Whether the last request to the gateway failed: what is done now has no verdict."""
        return self.outbox.failures > 0

    @property
    def rejections(self) -> list[Rejected]:
        """The latest refusals (at most 1,000), newest last; of all agents that share the outbox."""
        with self.outbox.changed:
            return list(self.outbox.rejections)

    @property
    def instructions(self) -> str | None:
        """The latest instructions for agents of this type; None if there are none."""
        return self.orders.instructions

    def auto_listen(self) -> None:
        """Start listening with the first step, unless the agent was created with `control=False`."""
        if self._control and not self.receiver.is_open:
            self.receiver.open()

    def listen_now(self) -> None:
        """Start listening even with `control=False`: a caller waits for an answer."""
        if not self.receiver.is_open:
            self.receiver.open()

    def prompts(self) -> list[Prompt]:
        """Prompts injected since the last call, oldest first."""
        self.auto_listen()
        return self.orders.take_prompts()

    def context(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """A chat's messages followed by the injected prompts, as `{"role": "user", "content": …}`."""
        return [*messages, *({"role": "user", "content": prompt.text} for prompt in self.prompts())]

    def heartbeat(
        self,
        status: str | None = None,
        *,
        task: str | Mapping[str, Any] | None = None,
        progress: float | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """Report the agent's status now and with each automatic heartbeat from here on; returns at once.

        `task` is a description or the wire object; `progress` is in per cent.
        """
        current: dict[str, Any] = {"description": task} if isinstance(task, str) else {**(task or {})}
        if progress is not None:
            current["progress_pct"] = progress
        if current:
            current.setdefault("task_id", f"tsk_{self._own_line.session_id}")
        news = {"status": status, "current_task": current or None, "resource_usage": usage}
        self._state = self._state | {name: value for name, value in news.items() if value is not None}
        self.listen_now()
        self.receiver.pulse_now()

    def _pulse(self) -> dict[str, Any]:
        return {"type": "heartbeat", "agent_id": self.agent_id, "cluster_id": self.cluster} | self._state

    def _registration(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        known = {name: self.identity.get(name) for name in ("agent_id", "agent_type", "model", "provider")}
        body = {**known, "cluster_id": self.cluster, **fields}
        return {name: value for name, value in body.items() if value is not None}

    def _registered(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            answer = {}
        if not 200 <= status < 300:
            reasons = [str(answer[name]) for name in ("reason", "detail") if answer.get(name)]
            reason, detail = (*reasons, None, None)[:2]
            raise Rejected(Answer(status, reason=reason or "", detail=detail), None)
        self.orders.set_entity_id(answer.get("entity_id"))
        return answer

    def queue_raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Queue one message unchanged and unchecked: for envelopes, logs from other sources, and for testing
        what the gateway refuses. It must be one line."""
        line = body.encode() if isinstance(body, str) else body
        line = line if isinstance(line, bytes) else msgspec.json.encode(line)
        if not line.strip() or b"\n" in line or b"\r" in line:
            raise ValueError("a raw message must be one line, not blank")
        step = Step(self.outbox, None, None)
        self.outbox.put(line, step)
        return step

    def _close(self, timeout: float | None) -> bool:
        if self._owns_outbox:
            return self.outbox.close(timeout)
        close_all([self.receiver])
        self.outbox.receivers.discard(self.receiver)
        return self.outbox.flush(timeout)

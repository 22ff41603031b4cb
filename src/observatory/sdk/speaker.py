"""Who speaks and listens, by which way out and in; what the sync and the async agent share."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from observatory.sdk.answers import Answer
from observatory.sdk.client import tls
from observatory.sdk.credentials import NOTHING, Trust, find_door, own_door
from observatory.sdk.delivery import Delivery
from observatory.sdk.ear import Ear, close_all
from observatory.sdk.errors import Rejected
from observatory.sdk.orders import Orders
from observatory.sdk.outbox import Outbox
from observatory.sdk.received import Prompt
from observatory.sdk.session import Line, current_line, open_line
from observatory.sdk.step import Step

HEARTBEAT_S = 15.0
OnAway = Literal["allow", "deny"]


def _on_away(given: str | None) -> OnAway:
    """What an absent gateway means for tools: as given, else as the environment says, else they may run."""
    match given or os.environ.get("OBSERVATORY_ON_AWAY") or "allow":
        case "allow":
            return "allow"
        case "deny":
            return "deny"
        case word:
            raise ValueError(f"on_away={word!r} is neither allow nor deny")


def _trust(*files: str | os.PathLike[str] | None) -> Trust:
    return Trust(*(None if one is None else os.fspath(one) for one in files))


class Speaker:
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
            door = find_door(url, key, data, trust=_trust(ca, cert, cert_key), agent_id=agent_id)
            if door.trust != NOTHING:
                tls(door.url, door.trust)  # a file that cannot be used is told here, not in a thread
            outbox = Outbox(agent_id, door, delivery or Delivery(), on_reject=on_reject)
        else:
            door = own_door(outbox.door, agent_id)
        self.outbox = outbox
        self.orders = Orders(agent_id, on_instruction)
        self._control = control
        self._state: dict[str, Any] = {}
        self.ear = Ear(agent_id, door, outbox.delivery, self.orders, self._pulse, heartbeat_s)
        outbox.ears.add(self.ear)
        self._home = Line(self, *open_line(None, None))

    def _line(self) -> Line:
        """Where a step said without a session belongs: to the one this code runs in, else to our own."""
        return current_line() or self._home

    def _here(self) -> tuple[Line, "Speaker"]:
        return self._line(), self

    @property
    def is_alone(self) -> bool:
        """Whether the gateway did not answer when it was last asked: what is done now has no verdict."""
        return self.outbox.failures > 0

    @property
    def rejections(self) -> list[Rejected]:
        """The latest refusals (at most 1,000), newest last; of all its agents when an outbox is shared."""
        with self.outbox.changed:
            return list(self.outbox.rejections)

    @property
    def instructions(self) -> str | None:
        """The latest instructions for agents of this type; None while there are none."""
        return self.orders.instructions

    def hear(self) -> None:
        """With the first step the agent begins to listen, unless it was made with `control=False`."""
        if self._control and not self.ear.is_open:
            self.ear.open()

    def listen_now(self) -> None:
        """Who asks a person must hear the answer, `control=False` or not."""
        if not self.ear.is_open:
            self.ear.open()

    def prompts(self) -> list[Prompt]:
        """What people have injected since this was last asked, oldest first."""
        self.hear()
        return self.orders.take_prompts()

    def context(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """A chat's messages with what was injected at their end, as `{"role": "user", "content": …}`."""
        return [*messages, *({"role": "user", "content": prompt.text} for prompt in self.prompts())]

    def heartbeat(
        self,
        status: str | None = None,
        *,
        task: str | Mapping[str, Any] | None = None,
        progress: float | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """Say how the agent is, now and with each automatic pulse from here on; returns at once.

        `task` is a description, or the wire's own object; `progress` is in per cent.
        """
        told: dict[str, Any] = {"description": task} if isinstance(task, str) else {**(task or {})}
        if progress is not None:
            told["progress_pct"] = progress
        if told:
            told.setdefault("task_id", f"tsk_{self._home.session_id}")
        news = {"status": status, "current_task": told or None, "resource_usage": usage}
        self._state = self._state | {name: value for name, value in news.items() if value is not None}
        self.listen_now()
        self.ear.pulse_now()

    def _pulse(self) -> dict[str, Any]:
        return {"type": "heartbeat", "agent_id": self.agent_id, "cluster_id": self.cluster} | self._state

    def _registration(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        known = {name: self.identity.get(name) for name in ("agent_id", "agent_type", "model", "provider")}
        told = {**known, "cluster_id": self.cluster, **fields}
        return {name: value for name, value in told.items() if value is not None}

    def _registered(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            told: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            told = {}
        if not 200 <= status < 300:
            told_why = [str(told[name]) for name in ("reason", "detail") if told.get(name)]
            reason, detail = (*told_why, None, None)[:2]
            raise Rejected(Answer(status, reason=reason or "", detail=detail), None)
        self.orders.set_entity_id(told.get("entity_id"))
        return told

    def say_raw(self, body: bytes | str | Mapping[str, Any]) -> Step:
        """Queue one message as it is, unread: for envelopes, other people's logs, and for trying what the
        gateway refuses. It must be one line."""
        line = body.encode() if isinstance(body, str) else body
        line = line if isinstance(line, bytes) else msgspec.json.encode(line)
        if not line.strip() or b"\n" in line or b"\r" in line:
            raise ValueError("a raw message is one line that is not blank")
        step = Step(self.outbox, None, None)
        self.outbox.put(line, step)
        return step

    def _close(self, timeout: float | None) -> bool:
        if self._owns_outbox:
            return self.outbox.close(timeout)
        close_all([self.ear])
        self.outbox.ears.discard(self.ear)
        return self.outbox.flush(timeout)

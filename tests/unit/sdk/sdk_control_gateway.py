"""A small gateway that also controls: inbox, channel, verdicts, heartbeats, by the wire form agents rely on.

Real sockets, no part of the SDK: the handshake is done here, frames by the sans-I/O half of `websockets`.
Deliveries are kept until acknowledged and sent (again) to whoever connects or polls.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from websockets.frames import Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol

from observatory import Agent
from observatory.protocol.decoders import strict_decoder
from observatory.protocol.envelope import AnyEnvelope, Envelope
from observatory.sdk import Outbox
from tests.unit.sdk.sdk_gateway import PATIENCE_S, QUICK, FakeGateway

Json = dict[str, Any]
_decode_envelope = strict_decoder(cast(type[Envelope], AnyEnvelope)).decode
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


class ControlGateway(FakeGateway):
    def __init__(self) -> None:
        super().__init__()
        self.sockets_open = True  # False: it knows no WebSocket, as behind an old proxy
        self.hello: Json = {"paused": [], "stopped": False}
        self.pending: dict[str, Json] = {}
        self.acked: list[str] = []
        self.connections = 0
        self.pulses: list[Json] = []
        self.registered: list[Json] = []
        self.envelopes: list[Json] = []
        self.hold = True
        self._channels: list[_Channel] = []
        self._n = 0

    # The operator's side.

    def deliver(self, kind: str, body: Json, session_id: str | None = None, **more: Any) -> str:
        with self.changed:
            self._n += 1
            item: Json = {
                "delivery_id": f"dlv_{self._n}-1", "sequence_number": self._n, "kind": kind,
                "session_id": session_id, "created_at": "2026-02-16T14:32:00.000000000Z", "traceparent": None,
                "message_id": None, "message_type": None, "sender": None, "message": None, "body": body,
            } | more  # fmt: skip
            self.pending[item["delivery_id"]] = item
            for channel in self._channels:
                channel.send({"type": "delivery"} | item)
            self.changed.notify_all()
        return str(item["delivery_id"])

    def again(self) -> None:
        """The redelivery time has passed."""
        with self.changed:
            for channel in self._channels:
                for item in self.pending.values():
                    channel.send({"type": "delivery"} | item)

    def held(self) -> Json:
        """Wait for a message that waits at a gate."""
        self.wait_for(lambda: any(log["control"]["hitl_required"] for log in self.logs))
        return next(log for log in reversed(self.logs) if log["control"]["hitl_required"])

    def judge_gate(self, verdict: str, log: Json, **more: Any) -> str:
        meta = log["meta"]
        body = {
            "message_id": "msg_1", "step_id": meta["step_id"], "verdict": verdict, "note": None,
            "by": "usr_1", "action_digest": "sha256:0", "content": None,
        } | more  # fmt: skip
        return self.deliver("verdict", body, meta["session_id"])

    def wait_acked(self, *ids: str) -> None:
        self.wait_for(lambda: set(ids) <= set(self.acked))

    def wait_connected(self, n: int = 1) -> None:
        self.wait_for(lambda: self.connections >= n)

    def drop_channels(self) -> None:
        with self.changed:
            for channel in list(self._channels):
                channel.drop()

    # The wire's side.

    def _answer(self, line: bytes) -> bytes:
        message = json.loads(line)
        if "message_type" in message:
            self.envelopes.append(message)
            said = {
                "code": 202,
                "status": "accepted",
                "message_id": message["message_id"],
                "state": "forwarded",
            }
            return json.dumps(said).encode()
        answer = json.loads(super()._answer(line))
        if self.hold and answer["code"] == 202 and message["control"]["hitl_required"]:
            answer["state"] = "held"
        return json.dumps(answer).encode()

    def other(self, authorization: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if authorization != f"Bearer {self.key}":
            return 401, {}, b""
        parts = urlsplit(path)
        received = json.loads(body) if body else {}
        if parts.path == "/v1/heartbeat":
            return self._note(self.pulses, received, {"liveness": "healthy"})
        if parts.path == "/v1/agents":
            return self._note(
                self.registered, received, {"agent_id": received["agent_id"], "entity_id": "agt_1"}
            )
        if parts.path.endswith("/inbox/ack"):
            return 200, {}, json.dumps({"acked": self._acknowledge(received["ids"]), "unknown": []}).encode()
        if parts.path.endswith("/inbox"):
            wait = min(float(parse_qs(parts.query)["wait"][0]), 1.0)
            with self.changed:
                self.changed.wait_for(lambda: self.pending, wait)
                return 200, {}, json.dumps({"items": list(self.pending.values())}).encode()
        return 404, {}, b""

    def _note(self, where: list[Json], received: Json, answer: Json) -> tuple[int, dict[str, str], bytes]:
        with self.changed:
            where.append(received)
            self.changed.notify_all()
        return 200, {}, json.dumps(answer).encode()

    def _acknowledge(self, ids: list[str]) -> list[str]:
        with self.changed:
            self.acked += ids
            for one in ids:
                self.pending.pop(one, None)
            self.changed.notify_all()
        return ids

    def upgrade(self, handler: Any, authorization: str) -> None:
        if not self.sockets_open:
            handler.answer(404, {}, b"")
            return
        if authorization != f"Bearer {self.key}":
            handler.answer(401, {}, b"")
            return
        accept = hashlib.sha1(handler.headers["Sec-WebSocket-Key"].encode() + _MAGIC).digest()  # noqa: S324
        handler.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade")):
            handler.send_header(name, value)
        handler.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
        handler.end_headers()
        handler.wfile.flush()
        handler.close_connection = True
        channel = _Channel(handler)
        with self.changed:
            channel.send(
                {"type": "hello", "agent_id": "a", "entity_id": "agt_1", "instructions": None} | self.hello
            )
            for item in self.pending.values():
                channel.send({"type": "delivery"} | item)
            self._channels.append(channel)
            self.connections += 1
            self.changed.notify_all()
        try:
            for frame in channel.frames():
                if frame.get("op") == "ack":
                    channel.send({"type": "acked", "ids": self._acknowledge(frame["ids"])})
        finally:
            with self.changed:
                self._channels.remove(channel)


class _Channel:
    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self._socket = handler.connection
        self._protocol = ServerProtocol(state=State.OPEN)
        self._lock = threading.Lock()

    def send(self, frame: Json) -> None:
        with self._lock, suppress(OSError):
            self._protocol.send_text(json.dumps(frame).encode())
            self._flush()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._socket.sendall(data)

    def frames(self) -> Iterator[Json]:
        with suppress(OSError):
            while data := self._socket.recv(1 << 16):
                with self._lock:
                    self._protocol.receive_data(data)
                    self._flush()
                    events = self._protocol.events_received()
                for event in events:
                    if getattr(event, "opcode", None) is Opcode.TEXT:
                        yield json.loads(bytes(event.data))  # type: ignore[union-attr]
                if self._protocol.state is not State.OPEN:
                    return

    def drop(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(2)


@contextmanager
def controlling() -> Iterator[ControlGateway]:
    gateway = ControlGateway()
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.let_go()
        gateway.stop()


def agent_at(gateway: ControlGateway, data: Path, **more: Any) -> Agent:
    return Agent("a", outbox=Outbox("a", gateway.credentials(data), QUICK), **more)


def home(agent: Agent) -> str:
    """The agent's own session, begun with its first step."""
    session_id = agent.step("first").session_id
    assert session_id is not None
    return session_id


__all__ = ["PATIENCE_S", "ControlGateway", "agent_at", "controlling", "home"]

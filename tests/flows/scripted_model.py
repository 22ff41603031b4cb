"""A model that says what a test tells it to: the Messages API of Anthropic, streamed, on a port of its own.

Law: only the model is scripted. What asks it (Claude Code, the Agent SDK) is the real thing, so what the
model was sent (`asked`) is what a real one would have been. A turn is a list of blocks, each a text or a tool
and its input, or something to be done that gives one. Requests without tools are the client's own small
questions (titles and the like) and are answered with a word; they use up no turn.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Block = str | tuple[str, Json]
Turn = list[Block]
Script = Turn | Callable[[], Turn]
USAGE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 3,
    "output_tokens": 7,
}


class ScriptedModel:
    """`turns` are answered in order; when they are used up, the last word is "done"."""

    def __init__(self, *turns: Script) -> None:
        self.turns = [*turns]
        self.asked: list[Json] = []
        self._lock = threading.Lock()
        self._n = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_turn(self, asked: Json) -> tuple[int, Turn]:
        with self._lock:
            self._n += 1
            if not asked.get("tools"):
                return self._n, ["ok"]
            self.asked.append(asked)
            n, turn = self._n, self.turns.pop(0) if self.turns else None
        if turn is None:
            return n, ["done"]
        return n, turn if isinstance(turn, list) else turn()

    def sent(self, n: int = -1) -> str:
        """All the words of one request that had tools, as one text."""
        return json.dumps(self.asked[n]["messages"], ensure_ascii=False)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *received: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self._say(200, b"", "application/json")

            def do_GET(self) -> None:
                self._say(404, b"{}", "application/json")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if "/count_tokens" in self.path:
                    self._say(200, b'{"input_tokens": 100}', "application/json")
                    return
                if not self.path.startswith("/v1/messages"):
                    self._say(404, b"{}", "application/json")
                    return
                asked = json.loads(body)
                n, turn = model.next_turn(asked)
                if asked.get("stream"):
                    events = b"".join(_events(n, turn, asked.get("model", "scripted")))
                    self._say(200, events, "text/event-stream")
                else:
                    self._say(
                        200, json.dumps(_message(n, turn, asked.get("model"))).encode(), "application/json"
                    )

            def _say(self, code: int, body: bytes, kind: str) -> None:
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler


def _message(n: int, turn: Turn, model: Any) -> Json:
    content = [_block(n, i, block) for i, block in enumerate(turn)]
    return _head(n, model) | {"content": content, "stop_reason": _reason(turn), "usage": USAGE}


def _head(n: int, model: Any) -> Json:
    return {
        "id": f"msg_scripted_{n}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE | {"output_tokens": 1},
    }


def _reason(turn: Turn) -> str:
    return "tool_use" if any(not isinstance(block, str) for block in turn) else "end_turn"


def _block(n: int, i: int, block: Block) -> Json:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "tool_use", "id": f"toolu_scripted_{n}_{i}", "name": block[0], "input": block[1]}


def _events(n: int, turn: Turn, model: Any) -> Iterator[bytes]:
    yield _event("message_start", message=_head(n, model))
    for i, block in enumerate(turn):
        whole = _block(n, i, block)
        if isinstance(block, str):
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block}
        else:
            start = whole | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block[1])}
        yield _event("content_block_start", index=i, content_block=start)
        yield _event("content_block_delta", index=i, delta=delta)
        yield _event("content_block_stop", index=i)
    ended = {"stop_reason": _reason(turn), "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=USAGE)
    yield _event("message_stop")


def _event(kind: str, **received: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **received})}\n\n".encode()

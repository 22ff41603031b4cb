"""`observatory mcp` as a program: lines in, lines out, and what it says where there is no gateway."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.flows.databases import ALONE
from tests.flows.mcp_ways import call, trail
from tests.flows.server import COMMAND, Server, clean_environment

Json = dict[str, Any]
LIST = {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}


class Bridge:
    """The process and its three streams."""

    def __init__(self, tmp_path: Path, *options: str, **environment: str) -> None:
        self._errors = tmp_path / "bridge.err"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*COMMAND, "mcp", *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=clean_environment(HOME=str(tmp_path), **environment),
            )

    def say(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def ask(self, message: Any) -> Json:
        self.say(message)
        assert self._process.stdout is not None
        found: Json = json.loads(self._process.stdout.readline())
        return found

    @property
    def errors(self) -> str:
        return self._errors.read_text("utf-8")

    def end(self) -> tuple[int, bytes]:
        """stdin is closed; the exit code, and what else came out."""
        rest, _ = self._process.communicate(timeout=30)
        return self._process.returncode, rest

    def __enter__(self) -> Bridge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()


def test_without_a_gateway_it_says_what_to_do_and_finds_one_that_comes_s414(tmp_path: Path) -> None:
    """S414, S413: never started, started, killed; the client is answered all the time."""
    folder = tmp_path / "data"
    with Bridge(tmp_path, "--data", str(folder)) as bridge:
        for _ in range(2):
            received = bridge.ask(LIST)
            assert received["id"] == "a" and "observatory serve" in received["error"]["message"]
        assert bridge.errors.count("observatory serve") == 1, "once on stderr"
        with Server(folder, environment=ALONE) as server:
            assert len(bridge.ask(LIST)["result"]["tools"]) == 11
            assert bridge.ask(call("list_pending_decisions"))["result"]["isError"] is False
            assert [one["outcome"] for one in trail(server)] == ["ok"]
            server.kill()
            away = bridge.ask(call("list_pending_decisions"))
            assert "no Observatory is reachable" in away["error"]["message"]
        assert bridge.end() == (0, b"")


def test_lines_that_are_no_message_are_answered_and_the_bridge_goes_on_s415(
    server: Server, tmp_path: Path
) -> None:
    """S415, S413: stdout holds one JSON line for each request and nothing else."""
    with Bridge(tmp_path, "--url", server.url, OBSERVATORY_KEY=server.key("operator")) as bridge:
        for line in (b"{", b"\xff", b'{"a": ' + b"x" * (5 << 20), b"[" * 5_000):
            received = bridge.ask(line)
            assert (received["id"], received["error"]["code"]) == (None, -32700), received
        bridge.say(b"")
        bridge.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert bridge.ask(b"[]")["error"]["code"] == -32600
        assert bridge.ask({"jsonrpc": "2.0", "id": 5, "method": 5})["id"] == 5
        assert bridge.ask({"jsonrpc": "2.0", "id": 6, "method": "no/such"})["error"]["code"] == -32601
        named = call("no_such_tool", ident=9)
        named["params"]["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        assert bridge.ask(named)["error"]["code"] == -32602
        named["params"]["name"] = "ünknown\ntool"
        assert "there is no such tool" in bridge.ask(named)["error"]["message"]
        assert bridge.ask(LIST)["result"]["tools"]
        assert bridge.end() == (0, b"")
        assert bridge.errors == ""


def test_a_key_the_gateway_does_not_take_is_told_s414(server: Server, tmp_path: Path) -> None:
    """S414: and an address where something else answers."""
    with Bridge(tmp_path, "--url", server.url, OBSERVATORY_KEY="obs_" + "A" * 50) as bridge:
        received = bridge.ask(call("list_pending_decisions", ident=3))
        assert received["id"] == 3 and "does not accept this key" in received["error"]["message"]
        assert "does not accept this key" in bridge.errors
        assert bridge.end() == (0, b"")
    with Bridge(tmp_path, "--url", server.url, OBSERVATORY_KEY="obs_ü") as bridge:
        assert "a key is obs_" in bridge.ask(LIST)["error"]["message"]
    elsewhere = f"{server.url}/docs"
    with Bridge(tmp_path, "--url", elsewhere, OBSERVATORY_KEY=server.key("operator")) as bridge:
        assert "check --url" in bridge.ask(LIST)["error"]["message"]

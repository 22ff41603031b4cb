"""A real OTLP backend for tests and measurements, in a process of its own, made of the official parts.

`python -m tests.flows.otlp_backend FOLDER`: gRPC by the official `LogsServiceServicer`, HTTP by a plain
server; both decode with the official messages and write one JSON line for each request into FOLDER/heard.
`FOLDER/mood` says how it answers, read anew for each request; without it, it takes all. The ports are written
into FOLDER/ports when it listens; with FOLDER/tls.key and tls.crt there is one for gRPC over TLS. Nothing of
the house is imported: it is a stranger.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """An AnyValue as Python has it."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "kvlist_value":
        return members(value.kvlist_value.values)
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    return getattr(value, kind)


def members(pairs: Any) -> Json:
    return {pair.key: plain(pair.value) for pair in pairs}


def clock(ns: int) -> str:
    whole, rest = divmod(ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:09d}Z"


def event_of(resource: Any, record: Any) -> Json:
    """The audit event a LogRecord was made of; of a record without a chain, what it says."""
    attributes = members(record.attributes)
    chain = {name: attributes.pop(f"av.hash_chain.{name}", None) for name in CHAIN}
    return {
        "audit_event_id": attributes.pop("av.audit_event_id", None),
        "timestamp": clock(record.time_unix_nano),
        "observed_timestamp": clock(record.observed_time_unix_nano),
        "trace_id": record.trace_id.hex(),
        "span_id": record.span_id.hex(),
        "parent_span_id": attributes.pop("av.parent_span_id", None),
        "trace_flags": record.flags,
        "severity_number": record.severity_number,
        "severity_text": record.severity_text,
        "body": plain(record.body),
        "resource": members(resource.attributes),
        "attributes": attributes,
        "hash_chain": chain,
    }


CHAIN = ("event_hash", "previous_hash", "sequence_number")


def events_of(request: Any) -> list[Json]:
    """Of an ExportLogsServiceRequest."""
    return [
        event_of(block.resource, record)
        for block in request.resource_logs
        for scope in block.scope_logs
        for record in scope.log_records
    ]


class Backend:
    """`mood`: `code` to answer with, `retry_after`, `poison` (a type of event it refuses), `partial`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._heard = (folder / "heard").open("a")
        self._lock = threading.Lock()

    def mood(self) -> Json:
        try:
            found: Json = json.loads((self.folder / "mood").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return found

    def judge(self, way: str, request: Any, headers: Json) -> tuple[Any, Json]:
        """(what to refuse with or None, mood); whatever is taken is written down first."""
        mood = self.mood()
        if mood.get("count"):  # only how many: when it is measured how fast they come
            taken: Any = sum(len(one.log_records) for b in request.resource_logs for one in b.scope_logs)
        else:
            taken = events_of(request)
        code = mood.get("code")
        poison = mood.get("poison")
        if code is None and poison and any(one["body"]["event_type"] == poison for one in taken):
            code = mood.get("poison_code", "INVALID_ARGUMENT" if way == "grpc" else 400)
        if code is None:
            with self._lock:
                received = {"way": way, "headers": headers, "events": taken, "at": time.time()}
                self._heard.write(json.dumps(received) + "\n")
                self._heard.flush()
        return code, mood


def serve(folder: Path) -> None:
    import grpc
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as service

    backend = Backend(folder)

    class Logs(service.LogsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the official name
            headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
            code, mood = backend.judge("grpc", request, headers | {"peer": context.peer()})
            if code is not None:
                if mood.get("details"):
                    details = ("grpc-status-details-bin", bytes.fromhex(mood["details"]))
                    context.set_trailing_metadata((details,))
                context.abort(getattr(grpc.StatusCode, code), mood.get("said", "not now"))
            return answer(mood)

    def answer(mood: Json) -> Any:
        made = logs.ExportLogsServiceResponse()
        if mood.get("partial"):
            made.partial_success.rejected_log_records = mood["partial"]
            made.partial_success.error_message = mood.get("said", "some were too old")
        return made

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            request = logs.ExportLogsServiceRequest.FromString(body)
            headers = {name.lower(): value for name, value in self.headers.items()} | {"path": self.path}
            code, mood = backend.judge("http", request, headers)
            if mood.get("hang"):
                time.sleep(mood["hang"])
            received = answer(mood).SerializeToString() if code is None else mood.get("said", "").encode()
            self.send_response(code or 200)
            self.send_header("content-type", mood.get("kind", "application/x-protobuf"))
            if mood.get("retry_after"):
                self.send_header("retry-after", str(mood["retry_after"]))
            if mood.get("location"):
                self.send_header("location", mood["location"])
            self.send_header("content-length", str(len(received)))
            self.end_headers()
            self.wfile.write(received)

        def log_message(self, format: str, *args: Any) -> None:
            """Said in `heard`."""

    server = grpc.server(ThreadPoolExecutor(4))
    add: Any = service.add_LogsServiceServicer_to_server
    add(Logs(), server)
    ports = {"grpc": server.add_insecure_port("127.0.0.1:0")}
    if (folder / "tls.key").exists():
        pair = ((folder / "tls.key").read_bytes(), (folder / "tls.crt").read_bytes())
        ports["tls"] = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    web = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    (folder / "ports.new").write_text(json.dumps(ports | {"http": web.server_port}))
    (folder / "ports.new").replace(folder / "ports")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    web.serve_forever()


class OtlpBackend:
    """The process, as tests see it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0
        self._requests: list[Json] = []

    def __enter__(self) -> OtlpBackend:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.flows.otlp_backend", str(self.folder)]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
        deadline = time.monotonic() + 20
        while not (self.folder / "ports").exists():
            assert self._process.poll() is None and time.monotonic() < deadline, "the backend did not start"
            time.sleep(0.02)
        self.ports: dict[str, int] = json.loads((self.folder / "ports").read_text())
        self.http, self.grpc = (f"http://127.0.0.1:{self.ports[name]}" for name in ("http", "grpc"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)

    def mood(self, **mood: Any) -> None:
        beside = self.folder / "mood.new"
        beside.write_text(json.dumps(mood))
        beside.replace(self.folder / "mood")

    @property
    def requests(self) -> list[Json]:
        """What it took, in the order it came."""
        with (self.folder / "heard").open("rb") as file:
            file.seek(self._read)
            for line in file:
                if line.endswith(b"\n"):
                    self._read += len(line)
                    self._requests.append(json.loads(line))
        return self._requests

    def events(self, **where: Any) -> list[Json]:
        """Of the requests whose headers hold these."""
        return [
            event
            for request in self.requests
            if all(request["headers"].get(name.replace("_", "-")) == value for name, value in where.items())
            for event in request["events"]
        ]


if __name__ == "__main__":
    serve(Path(sys.argv[1]))

"""`python -m bench.export [--quick]`: OTLP out: what encoding costs, how fast a backlog goes, keeping up.

The backend is the one of the tests, a process of its own that decodes every request with the official
package. Catching up is measured with the gateway otherwise idle; keeping up while 5,000 messages a second
come in. Encoding is measured beside the official package doing the same work.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import sqlite3
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.gateway import Gateway
from bench.load import Client
from bench.messages import Mesh
from bench.rates import measure, ndjson
from bench.report import OUT, Figure, Report, shown
from observatory.features.exporters import otlp
from observatory.protocol.clock import to_ns
from tests.flows.otlp_backend import OtlpBackend

ASKED, LINES, HANDS = 5_000, 200, 4
WAYS = ("http", "grpc")
ALLOW = {"insight": "false", "egress_allow": "127.0.0.1"}


def export(report: Report, folder: Path) -> None:
    messages = 10_000 if report.quick else 60_000
    with OtlpBackend(folder / "backend") as backend:
        backend.mood(count=True)
        with Gateway(folder / "export", settings=ALLOW) as gateway:
            with Client() as client:
                found = measure(gateway, client, ndjson(gateway, messages))
            report.say(f"  {found.line}")
            for way in WAYS:
                catch_up(report, gateway, backend, way, found.tally.rate)
        encoding(report, folder / "export" / "observatory.db")
        for ways in ((), ("http",), ("grpc",), WAYS):
            with Gateway(folder / f"to-{len(ways)}{''.join(ways)}", settings=ALLOW) as gateway:
                keep_up(report, gateway, backend, ways)


def ask(gateway: Gateway, method: str, path: str, body: Any = None) -> Any:
    key = json.loads((gateway.folder / "credentials.json").read_text())["admin_key"]
    request = urllib.request.Request(
        f"http://127.0.0.1:{gateway.port}/v1/exporters{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def add(gateway: Gateway, backend: OtlpBackend, way: str, start: str) -> str:
    body = {"name": f"{way} {start}", "protocol": way, "url": getattr(backend, way), "from": start}
    made: str = ask(gateway, "POST", "", body)["exporter_id"]
    return made


def caught_up(gateway: Gateway, name: str) -> Any:
    while (now := ask(gateway, "GET", f"/{name}"))["status"] != "caught_up":
        assert now["status"] != "failing", now["problem"]
        time.sleep(0.05)
    return now


def catch_up(report: Report, gateway: Gateway, backend: OtlpBackend, way: str, ingested: float) -> None:
    """A backlog, with nothing else to do: from the first event that is taken to the last."""
    cpu, first = gateway.cpu_s(), len(backend.requests)
    name = add(gateway, backend, way, "start")
    sent = caught_up(gateway, name)["sent"]
    cpu = gateway.cpu_s() - cpu
    ask(gateway, "DELETE", f"/{name}")
    heard = backend.requests[first:]
    took = heard[-1]["at"] - heard[0]["at"]
    rate = (sent - heard[0]["events"]) / took
    report.say(
        f"  {way}: {sent:,} events in {len(heard)} requests, {took:.2f} s; CPU of the gateway "
        f"{cpu / sent * 1e6:.1f} µs an event; {rate / ingested * 100:.0f} % of the rate they came in"
    )
    report.add(Figure(f"OTLP out over {way}, a backlog", "events/s", rate, ASKED))


def encoding(report: Report, path: Path) -> None:
    """Records of the real table: read, encoded and grouped; beside it the official messages."""
    rows = sqlite3.connect(path)
    records = [bytes(one) for (one,) in rows.execute("SELECT record FROM audit_log LIMIT 20000")]
    rows.close()
    began = time.process_time()
    for at in range(0, len(records), 512):
        otlp.export_request([otlp.encode_event(otlp.read(one)) for one in records[at : at + 512]])
    ours = (time.process_time() - began) / len(records) * 1e6
    theirs = official(records[:5_000])
    report.say(f"  encoding: {ours:.1f} µs an event; with the official messages {theirs:.1f} µs")
    report.add(Figure("encoding an event", "µs", ours))


def official(records: list[bytes]) -> float:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

    def pairs(mapping: dict[str, Any]) -> list[KeyValue]:
        return [KeyValue(key=key, value=value(item)) for key, item in mapping.items()]

    def value(item: Any) -> AnyValue:
        if isinstance(item, str):
            return AnyValue(string_value=item)
        if isinstance(item, int):
            return AnyValue(int_value=item)
        return AnyValue(kvlist_value=KeyValueList(values=pairs(item))) if item else AnyValue()

    began = time.process_time()
    for at in range(0, len(records), 512):
        request = ExportLogsServiceRequest()
        group = request.resource_logs.add().scope_logs.add()
        for raw in records[at : at + 512]:
            event = otlp.read(raw)
            chain = event.hash_chain
            more = {
                "av.audit_event_id": event.audit_event_id,
                "av.hash_chain.event_hash": chain.event_hash,
                "av.hash_chain.previous_hash": chain.previous_hash,
                "av.hash_chain.sequence_number": chain.sequence_number,
            }
            record = LogRecord(
                time_unix_nano=to_ns(event.timestamp),
                observed_time_unix_nano=to_ns(event.observed_timestamp),
                trace_id=bytes.fromhex(event.trace_id),
                span_id=bytes.fromhex(event.span_id),
                severity_number=event.severity_number,  # type: ignore[arg-type]
                severity_text=event.severity_text,
                body=value(event.body),
                attributes=pairs(event.attributes | more),
            )
            group.log_records.append(record)
        request.SerializeToString()
    return (time.process_time() - began) / len(records) * 1e6


def keep_up(report: Report, gateway: Gateway, backend: OtlpBackend, ways: tuple[str, ...]) -> None:
    """While messages come at the rate asked for: how far behind it ever was, and how it ended.

    Without an exporter it measures what this machine can take in at all.
    """
    seconds = 4 if report.quick else 12
    names = [add(gateway, backend, way, "now") for way in ways]
    lags, over = [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            lags.append(gateway.metrics()["observatory_export_lag_seconds"])

    watcher, cpu = threading.Thread(target=watch), gateway.cpu_s()
    watcher.start()
    began = time.monotonic()
    rate = pour(gateway, seconds)
    took = time.monotonic() - began
    left = max((ask(gateway, "GET", f"/{name}")["lag_events"] for name in names), default=0)
    for name in names:
        caught_up(gateway, name)
    rest = time.monotonic() - began - took
    over.set()
    watcher.join()
    cost = (gateway.cpu_s() - cpu) / (rate * took) * 1e6
    what = " and ".join(ways) or "nobody"
    report.say(
        f"  to {what}: {shown(rate)} msg/s came in for {took:.1f} s; {left:,} events were left, sent in "
        f"{rest:.2f} s; the oldest ever {max(lags):.2f} s; CPU of the gateway {cost:.0f} µs a message"
    )
    if ways:
        kept = 100 * took / (took + rest)
        report.add(Figure(f"OTLP out over {what}, of what came in", "%", kept, 95, note=f"({shown(rate)}/s)"))
        report.add(Figure(f"OTLP out over {what}, oldest event", "s", max(lags), 5, is_limit=True))


def pour(gateway: Gateway, seconds: float) -> float:
    """Batches of 200 at even distances over four connections; the rate that was reached."""
    mesh = Mesh(200, seed=time.time_ns())
    count = int(ASKED * seconds / LINES)
    bodies = [b"\n".join(mesh.logs(LINES)) + b"\n" for _ in range(count)]
    headers = {"Authorization": f"Bearer {gateway.key}", "Content-Type": "application/x-ndjson"}
    began = time.monotonic()

    def hand(first: int) -> None:
        wire = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        for number in range(first, count, HANDS):
            time.sleep(max(0.0, began + number * LINES / ASKED - time.monotonic()))
            wire.request("POST", "/v1/messages", bodies[number], headers)
            answer = wire.getresponse()
            assert answer.status == 200 and answer.read().count(b'"code":202,') == LINES
        wire.close()

    hands = [threading.Thread(target=hand, args=(first,)) for first in range(HANDS)]
    for one in hands:
        one.start()
    for one in hands:
        one.join()
    return count * LINES / max(seconds, time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer events, shorter")
    report = Report(parser.parse_args().quick)
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=OUT))
    try:
        export(report, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.say("\n" + report.table())


if __name__ == "__main__":
    main()

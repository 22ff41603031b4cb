"""A minimal OTLP backend: prints a line for every audit event that arrives over OTLP/HTTP.

    python examples/otel-collector/listen.py 4318
    OBSERVATORY_EGRESS_ALLOW=127.0.0.1:4318 observatory serve
    observatory exporters add here http://127.0.0.1:4318 --from start

It decodes with the official package (`pip install opentelemetry-proto`) and does not import Observatory.
"""

import gzip
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)


class Listener(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        for block in ExportLogsServiceRequest.FromString(body).resource_logs:
            resource = {one.key: one.value.string_value for one in block.resource.attributes}
            for record in block.scope_logs[0].log_records:
                fields = {one.key: one.value.string_value for one in record.body.kvlist_value.values}
                number = next(
                    (a.value.int_value for a in record.attributes if a.key.endswith("sequence_number")), 0
                )
                tenant = resource.get("av.tenant.id", "")
                print(f"{number:>6} {record.severity_text:5} {tenant} {fields.get('event_type')}", flush=True)
        answer = ExportLogsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Suppress the access log."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 4318), Listener)
    print(f"listening at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

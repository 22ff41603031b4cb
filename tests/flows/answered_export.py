"""One of each answer of the doors of exporters: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.flows.tenant import Tenant

Answers = Iterator[tuple[str, Any]]


def exported(own: Tenant) -> Answers:
    """Made, refused for every reason, steered, tested in vain (nobody lives there), and removed."""
    http = own.http("admin")
    body = {"name": "there", "url": "https://192.0.2.1", "headers": {"x-key": "x"}, "from": "start"}
    made = http.post("/v1/exporters", json=body)
    yield "create_exporter", made
    yield "create_exporter", http.post("/v1/exporters", json=body)
    yield "create_exporter", http.post("/v1/exporters", json=body | {"url": "http://192.0.2.1"})
    path = f"/v1/exporters/{made.json()['exporter_id']}"
    yield "list_exporters", http.get("/v1/exporters")
    yield "otlp_status", http.get("/v1/otlp")
    for name in ("otlp_traces", "otlp_logs"):
        door = f"/v1/{name.removeprefix('otlp_')}"
        yield name, http.post(door, json={})
        yield name, http.post(door, content=b"{", headers={"content-type": "application/json"})
        yield name, http.post(door, content=b"", headers={"content-type": "application/x-protobuf"})
    yield "get_exporter", http.get(path)
    yield "get_exporter", http.get("/v1/exporters/none")
    yield "change_exporter", http.patch(path, json={"filters": {"agents": ["ada"]}})
    yield "change_exporter", http.patch(path, json={"url": "nowhere"})
    yield "pause_exporter", http.post(f"{path}/pause")
    yield "resume_exporter", http.post(f"{path}/resume")
    yield "resume_exporter", http.post("/v1/exporters/none/resume")
    yield "rewind_exporter", http.post(f"{path}/rewind", json={"to": 1})
    yield "rewind_exporter", http.post(f"{path}/rewind", json={"to": 0})
    yield "test_exporter", http.post(f"{path}/test")
    yield "remove_exporter", http.delete(path)
    yield "remove_exporter", http.delete(path)

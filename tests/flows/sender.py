"""A tenant that exports, as flow tests of OTLP see it: its exporters, its trail, and what the backend has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.flows.otlp_backend import OtlpBackend
from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]


def certify(folder: Path) -> None:
    """A certificate for `localhost` by nobody but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    began = datetime.now(UTC) - timedelta(days=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, began, began + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "tls.key").write_bytes(secret)
    (folder / "tls.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))


class Sender:
    """A tenant of its own, and what the backend has of it."""

    def __init__(self, gateway: Server, backend: OtlpBackend, folder: Path) -> None:
        self.backend, self.tenant = backend, Tenant(gateway, folder)
        self.http = self.tenant.http("admin")

    def add(self, way: str = "http", **more: Any) -> Json:
        body = {"name": f"to {way}", "protocol": way, "url": getattr(self.backend, way), "from": "start"}
        made = self.http.post("/v1/exporters", json=body | more)
        assert made.status_code == 201, made.text
        answer: Json = made.json()
        return answer

    def do(self, exporter: Json, verb: str, **body: Any) -> Json:
        path = f"/v1/exporters/{exporter['exporter_id']}/{verb}"
        answer = self.http.post(path, json=body) if body else self.http.post(path)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def now(self, exporter: Json) -> Json:
        found: Json = self.http.get(f"/v1/exporters/{exporter['exporter_id']}").json()
        return found

    def until(self, exporter: Json, status: str) -> Json:
        """Its state, once that is so."""
        return until(lambda: one if (one := self.now(exporter))["status"] == status else {})

    def send(self, count: int = 1, **more: Any) -> None:
        for _ in range(count):
            sent = self.tenant.send(decision_log(**more))
            assert sent.status_code == 202, sent.text

    @property
    def trail(self) -> list[Json]:
        """Every event there is, oldest first."""
        answer = self.http.get("/v1/audit/tenant", params={"limit": 1_000})
        items: list[Json] = answer.json()["items"]
        return items[::-1]

    def had(self, way: str | None = None) -> list[Json]:
        """What the backend took of this tenant by number, tests left out; in a request it is by resource."""
        found = [
            event
            for request in self.backend.requests
            if way in (None, request["way"])
            for event in request["events"]
            if event["resource"].get("av.tenant.id") == self.tenant.tenant_id and event["audit_event_id"]
        ]
        return sorted(found, key=lambda event: int(event["hash_chain"]["sequence_number"]))

    def numbers(self, way: str | None = None) -> list[int]:
        return [event["hash_chain"]["sequence_number"] for event in self.had(way)]

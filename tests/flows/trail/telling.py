"""A tenant in which an agent worked, thought about it and sealed its thoughts; and the bundle of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.flows.answered_thoughts import thought_of
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.samples import decision_log
from tests.waiting import until

Json = dict[str, Any]
# A true key, of somebody else.
FOREIGN_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"


class RecordedTrail:
    def __init__(self, server: Server, folder: Path) -> None:
        self.tenant = Tenant(server, folder / "tenant")
        # Something signed from before the session: what its log must go on from.
        until(lambda: self.tenant.http("admin").get("/v1/audit/log").json()["size"])
        sent = [self.tenant.send(decision_log()).json() for _ in range(2)]
        self.session_id: str = sent[0]["session_id"]
        http, path = self.tenant.http("agent"), f"/v1/sessions/{self.session_id}"
        # Provenance in another session: it must come along.
        other = sent[1]["session_id"]
        trail = self.tenant.http("admin").get(f"/v1/audit/trace/{other}").json()["items"]
        event_id = trail[-1]["audit_event_id"]
        begun = {"intent": "Ship it", "task_id": "tsk_1", "session_id": self.session_id}
        assert http.post("/v1/thought-sessions", json=begun).status_code == 201
        for kind in ("plan", "analysis", "decision"):
            thought = thought_of(kind, "tsk_1", audit_event_ids=[event_id])
            assert http.post(f"{path}/thoughts", json=thought).status_code == 201
        assert http.post(f"{path}/thoughts/verify").json()["valid"]
        assert http.post(f"{path}/thoughts", json=thought_of("reflection", "tsk_1")).status_code == 201
        self.root: str = http.post(f"{path}/seal").json()["root"]
        assert http.post(f"{path}/thoughts/end").status_code == 200
        self.bundle = folder / "evidence.zip"
        run = observatory(
            "export", "--bundle", self.session_id, "-o", str(self.bundle), "--data", str(self.tenant.folder)
        )
        assert run.returncode == 0, run.stderr
        self.log: Json = self.tenant.http("admin").get("/v1/audit/log").json()

    @property
    def vkey(self) -> str:
        found: str = self.log["vkey"]
        return found

"""A tenant of its own on a gateway that others use too: its rules, caps and kill-switches bind nobody else.

To a test it is a `Server` that was just started: nothing in it but two admins, an operator, a key of
agents, and a folder whose `credentials.json` the terminal reads and whose `agent.json` the SDK does. It
cannot be stopped or killed.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.flows.server import Server


class Tenant(Server):
    def __init__(self, host: Server, folder: Path) -> None:
        super().__init__(folder)
        self.url, self.port = host.url, host.port
        made = host.http("admin").post("/v1/tenants", json={"display_name": "Of one test"})
        assert made.status_code == 201, made.text
        self.tenant_id: str = made.json()["tenant_id"]
        folder.mkdir(parents=True, mode=0o700)
        self._know(url=host.url, admin_key=made.json()["key"])
        user = self.http("admin").post("/v1/users", json={"name": "operator", "role": "operator"})
        self._know(operator_key=self._new_key(role="operator", user_id=user.json()["user_id"]))
        # By a person of its own: who makes an agent's key does not approve what is sent with it.
        maker = self.http("admin").post("/v1/users", json={"name": "keymaker", "role": "admin"})
        self._know(maker_key=self._new_key(role="admin", user_id=maker.json()["user_id"]))
        self._know(agent_key=self._new_key("maker", role="agent"))
        known = {"url": host.url, "agent_key": self.credentials["agent_key"]}
        (folder / "agent.json").write_text(json.dumps(known))

    def _new_key(self, maker: str = "admin", **asked: str) -> str:
        made = self.http(maker).post("/v1/keys", json=asked)
        assert made.status_code == 201, made.text
        key: str = made.json()["key"]
        return key

    def _know(self, **more: str) -> None:
        file = self.folder / "credentials.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | more))

    def start(self) -> Server:
        raise AssertionError("a tenant's gateway is everybody's; take a fresh one to stop, kill or start it")

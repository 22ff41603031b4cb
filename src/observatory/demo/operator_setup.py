"""The demo operator's setup: jobs, webhooks both ways, alerts, a witness, rules.

Law: as in `operator.py`, everything goes through the gateway's API and is recorded; on a folder that was
used before, only what is missing is created. `open_desk` runs before the agents start, `begin`
after that, in its own thread, so that it does not delay the demo.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import msgspec

from observatory.cli.gateway_client import GatewayApi
from observatory.cli.terminal import CommandFailed
from observatory.demo.receivers import WITNESS_PATH, DemoReceivers
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.identity import agent_entity_id
from observatory.sdk.client import tls

OLD_TERMINAL = "old-terminal-1"
RULES: tuple[dict[str, Any], ...] = (
    {
        "effect": "deny",
        # By its id too: the schedule addresses an agent by that, and of one that never came no name is known.
        "match": {"recipient": ["old-terminal-*", agent_entity_id(HOME_TENANT, OLD_TERMINAL)]},
        "note": "Atlas: the old terminal is switched off; nothing is sent there",
    },
    {
        "effect": "deny",
        "match": {"tool": ["delete_portfolio"]},
        "note": "Atlas: no agent deletes a portfolio",
    },
)
# A working receiver, one that takes nothing at the first try, one that is broken for good. Rare events: each
# delivery that fails for good is a dead letter.
ENDPOINTS: tuple[dict[str, Any], ...] = (
    {
        "name": "Desk feed",
        "path": "/desk",
        "events": ["hitl_intervention", "job_fired", "agent_evicted", "thought_session_sealed"],
    },
    {
        "name": "Risk desk",
        "path": "/risk",
        "events": ["hitl_intervention", "agent_evicted"],
        "schedule_s": [3.0, 30.0, 120.0],
    },
    {
        "name": "Report archive",
        "path": "/archive",
        "events": ["thought_session_sealed", "instruction_issued"],
        "schedule_s": [1.0, 3.0],
    },
)
JOBS: tuple[dict[str, Any], ...] = (
    {
        "name": "Hourly cost report",
        "cron": "0 * * * *",
        "zone": "Europe/Zurich",
        "target": {"kind": "agent", "name": "analyst-alpha-1"},
        "intent": "Write the cost report of the last hour",
        "payload": {"report": "cost", "by": "branch"},
    },
    {
        "name": "Watch the filings API",
        "cron": "*/2 * * * *",
        "target": {"kind": "capability", "name": "filings_reader"},
        "intent": "Ask the filings API for news",
        "payload": {"source": "filings.example"},
        "overlap": "skip",
    },
    {
        "name": "Morning briefing",
        "cron": "0 7 * * 1-5",
        "zone": "Europe/Zurich",
        "target": {"kind": "agent", "name": "planner-alpha-1"},
        "intent": "Plan the day's reports",
        "jitter_s": 120,
    },
    {
        "name": "Weekend archive",
        "cron": "0 3 * * 6",
        "zone": "Europe/Zurich",
        "target": {"kind": "cluster", "name": "onprem-zrh"},
        "intent": "Archive the week's reports",
    },
    {  # the rule above refuses it: a job that fails, and a dead letter
        "name": "Feed the old terminal",
        "cron": "*/10 * * * *",
        "target": {"kind": "agent", "name": OLD_TERMINAL},
        "intent": "Send the day's headlines to the old terminal",
        "payload": {"headlines": ["Helvar lifts its outlook", "Kastell delays its filing"]},
        "max_tries": 1,
    },
)
PAUSED = "Weekend archive"
RUN_AT_ONCE = ("Watch the filings API", "Hourly cost report", "Feed the old terminal")
HOOK: dict[str, Any] = {
    "name": "Pull requests of the models",
    "scheme": "github",
    "mapping": {
        "when": "pull_request",
        "intent": {"expression": "join('', ['Run the tests of ', pull_request.title])"},
        "target": {"capability": "code_runner"},
        "payload": "{title: pull_request.title, url: pull_request.html_url}",
        "session": "pull_request.html_url",
    },
}
PULL_REQUEST = {
    "action": "opened",
    "pull_request": {
        "title": "models/kstl.py: read total_debt from the filing",
        "html_url": "https://git.example/atlas/models/pull/118",
    },
}
INSTRUCTIONS = {
    "fact_checker": "Check every date and every figure against the filing itself, never against a summary.",
    "writer": "No adjective without a figure. Name the source of every number in the sentence that holds it.",
}
ALERTS: tuple[dict[str, Any], ...] = (
    {"name": "An agent breaks the schema", "condition": "violations", "threshold": 3.0, "window_s": 300},
    {"name": "The desk spends too fast", "condition": "burn_rate", "threshold": 25.0, "for_s": 60},
)
TRIGGER: dict[str, Any] = {
    "name": "More filings readers",
    "condition": "queue_depth",
    "scope": "capability",
    "target": "filings_reader",
    "threshold": 50,
    "direction": "up",
    "amount": 2,
}
CAP: dict[str, Any] = {
    "scope": "cluster",
    "target": "onprem-zrh",
    "soft": 1_500.0,
    "hard": 4_000.0,
    "period": "daily",
}
WITNESS = "Notary next door"
SIGNED_S = 10.0
Names = Mapping[str, dict[str, Any]]


def _named(client: GatewayApi, path: str, key: str = "name") -> Names:
    return {str(one.get(key)): one for one in client.items(path)}


def open_operator(client: GatewayApi, receivers: DemoReceivers) -> None:
    """Create what must exist before the agents start; `client` has an admin's key."""
    known = _named(client, "/v1/policies", "note")
    for rule in RULES:
        if rule["note"] not in known:
            client.ask("POST", "/v1/policies", rule)
    client.ask("PUT", "/v1/budgets", CAP)
    story_agents = _endpoints(client, receivers)
    for path, rules in (("/v1/alert-rules", ALERTS), ("/v1/scaling-triggers", (TRIGGER,))):
        known = _named(client, path)
        for rule in rules:
            if rule["name"] not in known:
                client.ask("POST", path, rule | {"endpoint_ids": [story_agents]})
    jobs = _named(client, "/v1/jobs")
    for job in JOBS:
        if job["name"] not in jobs:
            made = client.ask("POST", "/v1/jobs", job)
            if job["name"] == PAUSED:
                client.ask("POST", f"/v1/jobs/{made['job_id']}/pause")


def _endpoints(client: GatewayApi, receivers: DemoReceivers) -> str:
    """Where they are is another place after each start. The id of the one that works."""
    known = _named(client, "/v1/webhooks/out")
    ids = []
    for endpoint in ENDPOINTS:
        body = {name: value for name, value in endpoint.items() if name != "path"}
        body["url"] = receivers.url + endpoint["path"]
        found = known.get(endpoint["name"])
        path = "/v1/webhooks/out" + (f"/{found['endpoint_id']}" if found else "")
        ids.append(client.ask("PUT" if found else "POST", path, body)["endpoint_id"])
    return str(ids[0])


class SetupThread:
    """What is done while agents begin: a thread that ends with the demo."""

    def __init__(self, client: GatewayApi, receivers: DemoReceivers) -> None:
        """`client` has an admin's key, and is used only by this thread from here on."""
        self._client, self._receivers = client, receivers
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> SetupThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        acts: tuple[tuple[float, Callable[[], None]], ...] = (
            (1.0, self._be_witnessed),
            (2.0, self._step_back),  # the leader of the schedule resigns: its next run has another epoch
            (2.0, self._be_called),
            (2.0, self._instruct),
            (1.0, self._run_jobs),
            (20.0, self._run_jobs),
        )
        for wait_s, act in acts:
            if self._over.wait(wait_s):
                return
            try:
                act()
            except CommandFailed:  # it is stopping, or the setup was changed by a user: continue without
                continue

    def _be_witnessed(self) -> None:
        known = _named(self._client, "/v1/peers").get(WITNESS)
        if known is not None:
            self._client.ask("DELETE", f"/v1/peers/{known['peer_id']}")
        waited = 0.0
        while (vkey := self._client.ask("GET", "/v1/audit/log")["vkey"]) is None and waited < SIGNED_S:
            waited += 0.5
            if self._over.wait(0.5):
                return
        self._receivers.witness.vkey = vkey
        url = self._receivers.url + WITNESS_PATH.removesuffix("/add-checkpoint")
        peer = {"name": WITNESS, "vkey": self._receivers.witness.own_vkey, "url": url}
        made = self._client.ask("POST", "/v1/peers", peer)
        self._client.ask("POST", f"/v1/peers/{made['peer_id']}/offer", {})

    def _step_back(self) -> None:
        self._client.ask("POST", "/v1/scheduler/resign")

    def _be_called(self) -> None:
        """A call signed like GitHub's, one with a wrong signature, one without."""
        if HOOK["name"] in _named(self._client, "/v1/webhooks/in"):
            return
        made = self._client.ask("POST", "/v1/webhooks/in", HOOK)
        body = msgspec.json.encode(PULL_REQUEST)
        for number, secret in enumerate((made["secret"], "a guess", None)):
            headers = {"content-type": "application/json", "x-github-event": "pull_request"}
            headers["x-github-delivery"] = f"atlas-{number}"
            if secret is not None:
                signature = hmac.new(secret.encode(), body, "sha256").hexdigest()
                headers["x-hub-signature-256"] = f"sha256={signature}"
            self._call(f"{self._client.url}/v1/webhooks/{made['hook_id']}", headers, body)

    def _call(self, url: str, headers: dict[str, str], body: bytes) -> None:
        try:
            verify = tls(url, self._client.trust)
            httpx2.post(url, headers=headers, content=body, timeout=10, trust_env=False, verify=verify)
        except httpx2.TransportError as error:
            raise CommandFailed("the call was not answered") from error

    def _instruct(self) -> None:
        for agent_type, text in INSTRUCTIONS.items():
            there = self._client.ask("GET", "/v1/instructions")["items"]
            if not any(one["agent_type"] == agent_type for one in there):
                note = {"text": text, "note": "Atlas: the desk's house rules"}
                self._client.ask("PUT", f"/v1/instructions/{agent_type}", note)

    def _run_jobs(self) -> None:
        jobs = _named(self._client, "/v1/jobs")
        for name in RUN_AT_ONCE:
            if name in jobs:
                self._client.ask("POST", f"/v1/jobs/{jobs[name]['job_id']}/run")

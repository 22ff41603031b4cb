"""One of each answer of the doors of the schedule: (operation, answer) for whoever compares them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.flows.server import Server
from tests.flows.tenant import Tenant
from tests.waiting import until

Answers = Iterator[tuple[str, Any]]
JOB = {
    "name": "sweep",
    "cron": "0 6 29 2 *",
    "zone": "Europe/Berlin",
    "target": {"kind": "capability", "name": "sweeping"},
    "intent": "sweep the floor",
    "payload": {"room": 7},
    "max_tries": 1,
}
MUTE = {"effect": "deny", "match": {"sender": ["sys_scheduler"]}}


def scheduled(own: Tenant) -> Answers:
    """A job made, looked at, changed, stopped, run, given up on, tried again, let go, and removed."""
    http = own.http("operator")
    made = http.post("/v1/jobs", json=JOB)
    path = f"/v1/jobs/{made.json()['job_id']}"
    yield "create_job", made
    yield "create_job", http.post("/v1/jobs", json=JOB)  # 409
    yield "create_job", http.post("/v1/jobs", json=JOB | {"name": "x", "cron": "0 0 30 2 *"})  # 422
    yield "create_job", http.post("/v1/jobs", json=JOB | {"name": "x", "at": "2027-01-01T00:00:00Z"})  # 422
    yield "list_jobs", http.get("/v1/jobs", params={"state": "active", "reminders": False})
    yield "list_jobs", http.get("/v1/jobs", params={"cursor": "nonsense"})
    yield "get_job", http.get(path)
    yield "get_job", http.get("/v1/jobs/none")
    yield "change_job", http.put(path, json=JOB | {"intent": "sweep it well"})
    yield "change_job", http.put("/v1/jobs/none", json=JOB)
    yield (
        "preview_job",
        http.post("/v1/jobs/preview", json={"cron": "*/5 9-17 * * 1-5", "zone": "Asia/Tokyo"}),
    )
    yield "preview_job", http.post("/v1/jobs/preview", json={"cron": "soon"})
    yield "upcoming_jobs", http.get("/v1/jobs/upcoming", params={"hours": 8_784})
    yield "upcoming_jobs", http.get("/v1/jobs/upcoming", params={"hours": 0})
    for verb in ("pause", "pause", "resume", "resume"):
        yield f"{verb}_job", http.post(f"{path}/{verb}")
    rule = http.post("/v1/policies", json=MUTE).json()["rule_id"]
    for _ in range(3):
        yield "run_job", http.post(f"{path}/run")
    letters = until(lambda: _three(http.get("/v1/dead-letters").json()["items"]))
    http.delete(f"/v1/policies/{rule}")
    yield "run_job", http.post("/v1/jobs/none/run")
    yield (
        "list_dead_letters",
        http.get("/v1/dead-letters", params={"kind": "job", "state": "dead", "limit": 1}),
    )
    yield "list_dead_letters", http.get("/v1/dead-letters", params={"cursor": "nonsense"})
    one, two, three = (f"/v1/dead-letters/{letter['letter_id']}" for letter in letters)
    yield "get_dead_letter", http.get(one)
    yield "get_dead_letter", http.get("/v1/dead-letters/none")
    yield "retry_dead_letter", http.post(f"{one}/retry")
    yield "retry_dead_letter", http.post(f"{one}/retry")  # 409
    yield "discard_dead_letter", http.post(f"{two}/discard")
    yield "discard_dead_letter", http.post(f"{two}/discard")  # 409
    ids = [letter["letter_id"] for letter in letters]
    yield "retry_dead_letters", http.post("/v1/dead-letters/retry", json={"ids": ids})
    yield "discard_dead_letters", http.post("/v1/dead-letters/discard", json={"kind": "job", "limit": 10})
    both = {"kind": "job", "ids": ids}
    for verb in ("discard", "retry"):
        yield f"{verb}_dead_letters", http.post(f"/v1/dead-letters/{verb}", json=both)  # 422
    yield "get_dead_letter", http.get(three)
    yield "list_job_runs", http.get(f"{path}/runs", params={"limit": 1})
    yield "list_job_runs", http.get("/v1/jobs/none/runs")
    yield "job_timeline", http.get("/v1/jobs/timeline", params={"hours": 6, "bins": 24})
    yield "job_timeline", http.get("/v1/jobs/timeline", params={"hours": 0})
    yield "change_job", http.put(path, json=JOB | {"was": "2020-01-01T00:00:00Z"})  # 409
    yield "get_scheduler", http.get("/v1/scheduler")
    yield "resign_scheduler", own.http("admin").post("/v1/scheduler/resign")  # 403: of the house
    yield "schedule_from_now", http.post("/v1/scheduler/from-now")
    yield "remove_job", http.delete(path)
    yield "remove_job", http.delete(path)


def stepped_back(server: Server) -> Answers:
    """The lead, let go by who may; then it is not there to be let go."""
    http = server.http("admin")
    yield "resign_scheduler", http.post("/v1/scheduler/resign")
    yield "resign_scheduler", http.post("/v1/scheduler/resign")


def _three(items: list[Any]) -> list[Any]:
    return items if len(items) == 3 else []

"""Request and response types of the schedule's routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from observatory.features.schedule.cron import Misfire, Overlap
from observatory.features.schedule.queries_clock_health import ClockHealth
from observatory.http.answers import Was
from observatory.pipeline.system_message import TargetKind
from observatory.protocol.rules import Name, SessionId, Title

Intent = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=1_024,
        pattern=r"^[^\x00-\x1f\x7f-\x9f]*$(?!\n)",
        extra={"expects": "1 to 1024 characters without control characters"},
    ),
]
Cron = Annotated[
    str, msgspec.Meta(min_length=1, max_length=200, description="Five fields, or six with seconds")
]
Zone = Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="IANA name, e.g. Europe/Berlin")]
Moment = Annotated[str, msgspec.Meta(min_length=1, max_length=64, description="RFC 3339, for a one-time job")]
Outcome = Literal["sent", "held", "refused", "dead", "skipped", "missed"]


class JobTarget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An agent by its id, or any agent of a capability or cluster."""

    kind: TargetKind
    name: Name


class JobBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Either `cron` or `at`. `payload` reaches the agent as it is, in the message's `metadata.payload`."""

    name: Title
    target: JobTarget
    intent: Intent
    cron: Cron | None = None
    at: Moment | None = None
    zone: Zone = "UTC"
    payload: dict[str, Any] = {}
    session_id: SessionId | None = None
    misfire: Misfire = "run_once"
    overlap: Overlap = "allow"
    jitter_s: Annotated[int, msgspec.Meta(ge=0, le=86_400)] = 0
    grace_s: Annotated[
        int, msgspec.Meta(ge=1, le=86_400, description="Grace period (s): a run this late is still on time")
    ] = 60
    max_tries: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5


class ChangeJobBody(JobBody, kw_only=True, forbid_unknown_fields=True):
    was: Was | None = None


class PreviewBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    cron: Cron
    zone: Zone = "UTC"


class Previewed(msgspec.Struct, kw_only=True):
    """The line in English, and its next five times: in UTC, and in the zone's local time."""

    explained: str
    next: list[str]
    local: list[str]


class JobItem(msgspec.Struct, kw_only=True):
    """`next_for` is the scheduled time of the next run, `next_at` when it happens (later by its jitter).

    `asked_by` is the agent whose reminder this is. `failures` counts consecutive runs that failed for good;
    `waiting` are runs not sent yet. The payload of a sent reminder is null: it is released.
    """

    job_id: str
    name: str
    kind: Literal["cron", "once"]
    cron: str | None
    explained: str | None
    at: str | None
    zone: str
    target: JobTarget
    intent: str
    payload: Any
    session_id: str | None
    misfire: Misfire
    overlap: Overlap
    jitter_s: int
    grace_s: int
    max_tries: int
    state: Literal["active", "paused", "done"]
    next_for: str | None
    next_at: str | None
    last_outcome: Outcome | None
    last_at: str | None
    failures: int
    runs: int
    waiting: int
    asked_by: str | None
    created_at: str
    created_by: str
    updated_at: str
    updated_by: str


class JobPage(msgspec.Struct, kw_only=True):
    items: list[JobItem]
    next_cursor: str | None


class RemovedJob(msgspec.Struct, kw_only=True):
    job_id: str
    removed: bool


class RunItem(msgspec.Struct, kw_only=True):
    """`acknowledged_at` is when the agent acknowledged the message; null until then, and while it is held."""

    run_id: str
    job_id: str
    scheduled_for: str
    state: Literal["due", "queued", "sent", "held", "refused", "dead", "skipped"]
    manual: bool
    tries: int
    reason: str | None
    code: int | None
    message_id: str | None
    session_id: str | None
    next_try_at: str | None
    acknowledged_at: str | None
    created_at: str
    created_by: str
    ended_at: str | None


class RunPage(msgspec.Struct, kw_only=True):
    items: list[RunItem]
    next_cursor: str | None


class UpcomingItem(msgspec.Struct, kw_only=True):
    job_id: str
    name: str
    next_for: str
    next_at: str
    target: JobTarget


class Upcoming(msgspec.Struct, kw_only=True):
    items: list[UpcomingItem]
    next_cursor: None


class TimelineBin(msgspec.Struct, kw_only=True):
    """Runs scheduled from `at` on: sent, failed for good, missed, not settled yet, planned."""

    at: str
    sent: int
    failed: int
    missed: int
    waiting: int
    planned: int


class RecentRun(msgspec.Struct, kw_only=True):
    scheduled_for: str
    state: Literal["due", "queued", "sent", "held", "refused", "dead", "skipped"]
    manual: bool
    reason: str | None


class TimelineLane(msgspec.Struct, kw_only=True):
    """`recent` are its last runs, newest first, however old."""

    job_id: str
    name: str
    state: Literal["active", "paused", "done"]
    bins: list[TimelineBin]
    recent: list[RecentRun]


class Timeline(msgspec.Struct, kw_only=True, rename={"begins": "from"}):
    """A bin counts at most `most` planned or missed times. `more`: there are further, older jobs."""

    begins: str
    until: str
    now: str
    bin_s: int
    most: int
    lanes: list[TimelineLane]
    more: bool


class SchedulerLeader(msgspec.Struct, kw_only=True):
    """By the database's clock. `is_live`: its lease has not expired."""

    holder: str
    epoch: int
    expires_at: str
    last_tick_at: str
    is_live: bool
    is_this_gateway: bool


class SchedulerItem(msgspec.Struct, kw_only=True):
    """`lag_s` is how overdue this tenant's next job or run is; 0 when nothing is overdue."""

    leader: SchedulerLeader | None
    last_look_at: str | None
    next_at: str | None
    lag_s: float
    clock: ClockHealth
    dead_letters: int


class FromNowAnswer(msgspec.Struct, kw_only=True):
    """How many schedules continue from now, and how many waiting runs are retried at once."""

    jobs: int
    runs: int
    scheduler: SchedulerItem


class DeadLetterItem(msgspec.Struct, kw_only=True):
    """`source_id` is the job or endpoint, `subject_id` its run or delivery; `preview` the payload's start."""

    letter_id: str
    kind: Literal["job", "webhook"]
    source_id: str
    source_name: str
    subject_id: str
    reason: str
    preview: str
    state: Literal["dead", "retried", "discarded"]
    created_at: str
    ended_at: str | None
    ended_by: str | None


class DeadLetterPage(msgspec.Struct, kw_only=True):
    items: list[DeadLetterItem]
    next_cursor: str | None


class LettersBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Letters by id; or the dead ones of a kind, of a source, or all, newest first, up to `limit`."""

    ids: Annotated[list[Name], msgspec.Meta(max_length=100)] | None = None
    kind: Literal["job", "webhook"] | None = None
    source_id: Name | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 100


class NotDone(msgspec.Struct, kw_only=True):
    letter_id: str
    reason: str


class LettersDone(msgspec.Struct, kw_only=True):
    """`more`: there are further letters of this kind; repeat the request."""

    done: list[str]
    refused: list[NotDone]
    more: bool


SCHEDULE_ANSWERS: dict[str, Any] = {
    "create_job": JobItem,
    "list_jobs": JobPage,
    "get_job": JobItem,
    "change_job": JobItem,
    "remove_job": RemovedJob,
    "pause_job": JobItem,
    "resume_job": JobItem,
    "run_job": RunItem,
    "list_job_runs": RunPage,
    "upcoming_jobs": Upcoming,
    "job_timeline": Timeline,
    "preview_job": Previewed,
    "get_scheduler": SchedulerItem,
    "resign_scheduler": SchedulerItem,
    "schedule_from_now": FromNowAnswer,
    "list_dead_letters": DeadLetterPage,
    "get_dead_letter": DeadLetterItem,
    "retry_dead_letter": DeadLetterItem,
    "discard_dead_letter": DeadLetterItem,
    "retry_dead_letters": LettersDone,
    "discard_dead_letters": LettersDone,
}

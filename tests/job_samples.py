"""A job as plain as one can be; tests say what of it is otherwise."""

from observatory.features.schedule.commands import JobSpec

SPEC = JobSpec(
    name="sweep",
    kind="cron",
    cron="*/10 * * * *",
    zone="UTC",
    at_ns=None,
    target_kind="agent",
    target_name="sweeper",
    intent="sweep the floor",
    payload='{"room": 7}',
    session_id=None,
    misfire="run_once",
    overlap="allow",
    jitter_s=0,
    grace_s=60,
    max_tries=3,
)

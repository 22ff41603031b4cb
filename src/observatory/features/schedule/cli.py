"""`observatory jobs` and `observatory dead-letters`: the schedule, and the dead-letter queue."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, GatewayApi, GatewayOptions
from observatory.cli.prompts import Json, Yes, api_session, confirm, one_of, path_of, print_result, when
from observatory.cli.terminal import InvalidArguments, note, say, show_json, show_table

Row = dict[str, Any]
LISTED = "`observatory jobs list`"
LETTERS = "`observatory dead-letters list`"
Job = Annotated[str, Parameter(help="The job's name, its id, or a prefix of the id.")]
Letter = Annotated[str, Parameter(help="The dead letter's id, or a prefix of it.")]
Limit = Annotated[int, Parameter(help="Show at most this many.")]

jobs = App(
    name="jobs",
    help="The schedule: list, show, add, preview, pause, resume, run, runs, next, leader, from-now, resign, "
    "remove.",
)
dead_letters = App(
    name="dead-letters", help="Dead letters, deliveries that failed for good: list, show, retry, discard."
)


@jobs.command(name="list")
def list_jobs(
    *,
    reminders: Annotated[bool, Parameter(negative=(), help="List agents' reminders instead.")] = False,
    limit: Limit = 100,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List jobs with their next run and last outcome."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/jobs", reminders=str(reminders).lower(), limit=limit)
    if json:
        show_json(answer)
        return
    lines = [
        (
            row["job_id"],
            row["name"],
            row["state"],
            _when(row),
            when(row["next_at"]),
            row["last_outcome"],
            row["failures"],
        )
        for row in answer["items"]
    ]
    columns = ("JOB", "NAME", "STATE", "WHEN", "NEXT", "LAST", "FAILURES")
    show_table(columns, lines, "nothing is scheduled")


def _when(row: Row) -> str:
    return f"{row['cron']} {row['zone']}" if row["cron"] else str(row["at"])


def _resolve(client: GatewayApi, job: str) -> Row:
    """Jobs and reminders are listed separately: many reminders would otherwise hide the few jobs."""
    rows = list[Row]()
    for reminders in ("false", "true"):
        rows += client.ask("GET", "/v1/jobs", limit=1_000, reminders=reminders)["items"]
    return one_of(rows, job, ("name", "job_id"), LISTED)


@jobs.command(name="show")
def show(job: Job, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one job in full."""
    with api_session(gateway, json) as client:
        row = _resolve(client, job)
    if json:
        show_json(row)
        return
    to = row["target"]
    say(
        f"job       {row['job_id']}  {row['name']}  {row['state']}",
        f"when      {_when(row)}" + (f"  ({row['explained']})" if row["explained"] else ""),
        f"to        {to['kind']} {to['name']}: {row['intent']}",
        f"payload   {msgspec.json.encode(row['payload']).decode()}",
        f"settings  misfire {row['misfire']}, overlap {row['overlap']}, jitter {row['jitter_s']} s, "
        f"grace {row['grace_s']} s, tries {row['max_tries']}",
        f"next      {when(row['next_at']) or 'never'}",
        f"last      {row['last_outcome'] or 'nothing yet'} {when(row['last_at'])}".rstrip(),
        f"so far    {_count(row['runs'], 'run')}, {_count(row['failures'], 'failure')} in a row, "
        f"{row['waiting']} waiting",
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@jobs.command(name="add")
def add(
    name: Annotated[str, Parameter(help="The job's name.")],
    *,
    to: Annotated[str, Parameter(help="An agent's id, type:CAPABILITY or cluster:ID.")],
    intent: Annotated[str, Parameter(help="What the agent is asked to do.")],
    cron: Annotated[str | None, Parameter(help="A cron expression in quotes; or --at.")] = None,
    at: Annotated[str | None, Parameter(help="One moment, RFC 3339; or --cron.")] = None,
    zone: Annotated[str, Parameter(help="The time zone of the cron expression.")] = "UTC",
    payload: Annotated[str | None, Parameter(help="A JSON object sent with the message.")] = None,
    misfire: Annotated[
        Literal["skip", "run_once", "run_all"], Parameter(help="What to do about missed runs.")
    ] = "run_once",
    overlap: Annotated[
        Literal["allow", "skip", "queue"], Parameter(help="While the previous run is still in progress.")
    ] = "allow",
    jitter: Annotated[int, Parameter(help="Delay each run by up to this many seconds.")] = 0,
    tries: Annotated[int, Parameter(help="Attempts before the run becomes a dead letter.")] = 5,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Create a job. Check its run times first with `observatory jobs preview`."""
    body = {
        "name": name,
        "target": _target(to),
        "intent": intent,
        "cron": cron,
        "at": at,
        "zone": zone,
        "payload": _object(payload),
        "misfire": misfire,
        "overlap": overlap,
        "jitter_s": jitter,
        "max_tries": tries,
    }
    with api_session(gateway, json) as client:
        answer = client.ask("POST", "/v1/jobs", body)
    print_result(answer, json, f"{answer['job_id']}: {answer['name']} fires next {when(answer['next_at'])}")


def _target(to: str) -> Row:
    for prefix, kind in (("type:", "capability"), ("cluster:", "cluster")):
        if to.startswith(prefix):
            return {"kind": kind, "name": to.removeprefix(prefix)}
    return {"kind": "agent", "name": to}


def _object(text: str | None) -> Row:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        raise InvalidArguments("--payload is not a JSON object") from None


@jobs.command(name="preview")
def preview(
    cron: Annotated[str, Parameter(help="A cron expression in quotes.")],
    *,
    zone: Annotated[str, Parameter(help="The time zone of the cron expression.")] = "UTC",
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Explain a cron expression and show its next five times."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", "/v1/jobs/preview", {"cron": cron, "zone": zone})
    print_result(answer, json, answer["explained"], *(f"  {at}" for at in answer["local"]))


@jobs.command(name="pause")
def pause(job: Job, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Pause a job until it is resumed; runs that fall into the pause are not made up for."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", f"{path_of('jobs', _resolve(client, job)['job_id'])}/pause")
    print_result(answer, json, f"{answer['name']} is paused")


@jobs.command(name="resume")
def resume(job: Job, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Resume a paused job."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", f"{path_of('jobs', _resolve(client, job)['job_id'])}/resume")
    print_result(answer, json, f"{answer['name']} fires next {when(answer['next_at'])}")


@jobs.command(name="run")
def run(job: Job, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Run a job once now, off schedule; also while it is paused."""
    with api_session(gateway, json) as client:
        answer = client.ask("POST", f"{path_of('jobs', _resolve(client, job)['job_id'])}/run")
    print_result(answer, json, f"{answer['run_id']}: it is sent by the scheduler's next poll")


@jobs.command(name="runs")
def runs(job: Job, *, limit: Limit = 20, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """List a job's runs, newest first."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", f"{path_of('jobs', _resolve(client, job)['job_id'])}/runs", limit=limit)
    if json:
        show_json(answer)
        return
    lines = [
        (
            row["scheduled_for"],
            row["state"],
            row["tries"],
            when(row["acknowledged_at"]),
            row["reason"],
            row["session_id"],
        )
        for row in answer["items"]
    ]
    show_table(("FOR", "STATE", "TRIES", "ACKNOWLEDGED", "REASON", "SESSION"), lines, "no runs yet")


@jobs.command(name="next")
def next_(
    *,
    hours: Annotated[int, Parameter(help="How far ahead.")] = 24,
    limit: Limit = 50,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List upcoming runs in order."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/jobs/upcoming", hours=hours, limit=limit)
    if json:
        show_json(answer)
        return
    lines = [
        (row["next_at"], row["name"], f"{row['target']['kind']} {row['target']['name']}")
        for row in answer["items"]
    ]
    show_table(("AT", "NAME", "TO"), lines, f"no runs within {hours} h")


@jobs.command(name="leader")
def leader(*, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show which gateway leads the schedule, and its lag."""
    with api_session(gateway, json) as client:
        answer = client.ask("GET", "/v1/scheduler")
    if json:
        show_json(answer)
        return
    lease = answer["leader"]
    if lease is None or not lease["is_live"]:
        note("no leader now: no job fires until a gateway takes the lead")
    if lease is not None:
        say(f"leader  {lease['holder']}  epoch {lease['epoch']}  last tick {when(lease['last_tick_at'])}")
    say(f"lag     {answer['lag_s']} s", f"next    {when(answer['next_at']) or 'nothing'}")
    say(f"dead letters  {answer['dead_letters']}")
    if answer["clock"]["status"] != "ok":
        note(f"clock  {answer['clock']['text']}")


@jobs.command(name="from-now")
def from_now(*, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """After a clock error: confirm the clock is right, and continue schedules from now."""
    with api_session(gateway, json) as client:
        clock = client.ask("GET", "/v1/scheduler")["clock"]
        if not json:
            say(f"clock   {clock['text']}")
        confirm(f"The gateway's clock shows {when(clock['shows'])}. Continue from there?", yes)
        answer = client.ask("POST", "/v1/scheduler/from-now")
    if json:
        show_json(answer)
        return
    say(f"schedules continued from now: {answer['jobs']}; waiting runs retried now: {answer['runs']}")


@jobs.command(name="resign")
def resign(*, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Let another gateway lead the schedule, e.g. before this one is stopped."""
    with api_session(gateway, json) as client:
        confirm("Let this gateway give up the lead of the schedule?", yes)
        answer = client.ask("POST", "/v1/scheduler/resign")
    if json:
        show_json(answer)
        return
    say("this gateway no longer leads; see `observatory jobs leader`")


@jobs.command(name="remove")
def remove(job: Job, *, yes: Yes = False, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Remove a job; its runs stay on record."""
    with api_session(gateway, json) as client:
        row = _resolve(client, job)
        confirm(f"Remove the job {row['name']}?", yes)
        answer = client.ask("DELETE", path_of("jobs", row["job_id"]))
    print_result(answer, json, f"{row['name']} is removed")


@dead_letters.command(name="list")
def list_letters(
    *,
    kind: Annotated[Literal["job", "webhook"] | None, Parameter(help="Only of this kind.")] = None,
    every: Annotated[
        bool, Parameter(name="--all", negative=(), help="Also retried and discarded ones.")
    ] = False,
    limit: Limit = 100,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """List dead letters, newest first: what the gateway could not deliver."""
    with api_session(gateway, json) as client:
        state = None if every else "dead"
        answer = client.ask("GET", "/v1/dead-letters", limit=limit, kind=kind, state=state)
    if json:
        show_json(answer)
        return
    lines = [
        (
            row["letter_id"],
            row["kind"],
            row["source_name"],
            row["state"],
            when(row["created_at"]),
            row["reason"],
        )
        for row in answer["items"]
    ]
    show_table(("LETTER", "KIND", "SOURCE", "STATE", "FAILED AT", "REASON"), lines, "no dead letters")


def _letter(client: GatewayApi, letter: str) -> Row:
    rows = client.ask("GET", "/v1/dead-letters", limit=1_000)["items"]
    return one_of(rows, letter, ("letter_id",), LETTERS)


@dead_letters.command(name="show")
def show_letter(letter: Letter, *, json: Json = False, gateway: GatewayOptions = ANY) -> None:
    """Show one dead letter with the beginning of its payload."""
    with api_session(gateway, json) as client:
        row = _letter(client, letter)
    print_result(
        row,
        json,
        f"letter   {row['letter_id']}  {row['state']}  failed at {when(row['created_at'])}",
        f"source   {row['kind']} {row['source_name']} ({row['source_id']}), {row['subject_id']}",
        f"reason   {row['reason']}",
        f"payload  {row['preview']}",
    )


Which = Annotated[str | None, Parameter(help="One dead letter; or --all.")]
Every = Annotated[bool, Parameter(name="--all", negative=(), help="Up to a hundred dead letters.")]
Kind = Annotated[Literal["job", "webhook"] | None, Parameter(help="With --all: only this kind.")]


@dead_letters.command(name="retry")
def retry(
    letter: Which = None,
    *,
    every: Every = False,
    kind: Kind = None,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Retry a dead letter."""
    _end("retry", letter, every, kind, yes, json, gateway)


@dead_letters.command(name="discard")
def discard(
    letter: Which = None,
    *,
    every: Every = False,
    kind: Kind = None,
    yes: Yes = False,
    json: Json = False,
    gateway: GatewayOptions = ANY,
) -> None:
    """Discard a dead letter for good; the audit record stays."""
    _end("discard", letter, every, kind, yes, json, gateway)


def _end(
    verb: str,
    letter: str | None,
    every: bool,
    kind: str | None,
    yes: bool,
    json: bool,
    gateway: GatewayOptions,
) -> None:
    if (letter is None) != every:
        raise InvalidArguments("give a letter, or --all and no letter")
    with api_session(gateway, json) as client:
        if letter is not None:
            row = _letter(client, letter)
            if verb == "discard":
                confirm(f"Discard the dead letter of {row['source_name']}?", yes)
            answer = client.ask("POST", f"{path_of('dead-letters', row['letter_id'])}/{verb}")
            print_result(answer, json, f"{answer['letter_id']} {answer['state']}")
            return
        confirm(f"{verb.capitalize()} up to a hundred dead letters?", yes)
        answer = client.ask("POST", f"/v1/dead-letters/{verb}", {"kind": kind})
    rest = "; there are more" if answer["more"] else ""
    print_result(answer, json, f"{len(answer['done'])} done, {len(answer['refused'])} refused{rest}")

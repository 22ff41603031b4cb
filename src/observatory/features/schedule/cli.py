"""`observatory jobs` and `observatory dead-letters`: the schedule, and what was given up on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from observatory.cli.gateway_client import ANY, Api, Gateway
from observatory.cli.prompts import Json, Yes, confirm, hand, one_of, path_of, tell, when
from observatory.cli.terminal import Misused, note, say, show_json, show_table

Row = dict[str, Any]
LISTED = "`observatory jobs list`"
LETTERS = "`observatory dead-letters list`"
Job = Annotated[str, Parameter(help="The job's name, its id, or a beginning of the id.")]
Letter = Annotated[str, Parameter(help="The letter's id, or a beginning of it.")]
Limit = Annotated[int, Parameter(help="How many at most.")]

jobs = App(
    name="jobs",
    help="The schedule: list, show, add, preview, pause, resume, run, runs, next, leader, from-now, resign, "
    "remove.",
)
dead_letters = App(name="dead-letters", help="What was given up on: list, show, retry, discard.")


@jobs.command(name="list")
def list_jobs(
    *,
    reminders: Annotated[bool, Parameter(negative=(), help="What agents asked for, instead.")] = False,
    limit: Limit = 100,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Every job: when it fires next, and what came of it last."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/jobs", reminders=str(reminders).lower(), limit=limit)
    if json:
        show_json(answer)
        return
    shown = [
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
    show_table(columns, shown, "nothing is scheduled")


def _when(row: Row) -> str:
    return f"{row['cron']} {row['zone']}" if row["cron"] else str(row["at"])


def _found(door: Api, job: str) -> Row:
    """People's jobs and agents' reminders are asked for apart: the many would hide the few."""
    rows = list[Row]()
    for reminders in ("false", "true"):
        rows += door.ask("GET", "/v1/jobs", limit=1_000, reminders=reminders)["items"]
    return one_of(rows, job, ("name", "job_id"), LISTED)


@jobs.command(name="show")
def show(job: Job, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One job whole."""
    with hand(gateway, json) as door:
        row = _found(door, job)
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
        f"so far    {row['runs']} runs, {row['failures']} failures in a row, {row['waiting']} waiting",
    )


@jobs.command(name="add")
def add(
    name: Annotated[str, Parameter(help="What you call it.")],
    *,
    to: Annotated[str, Parameter(help="An agent's id, type:CAPABILITY or cluster:ID.")],
    intent: Annotated[str, Parameter(help="What the agent is asked for.")],
    cron: Annotated[str | None, Parameter(help="A cron line in quotes; or --at.")] = None,
    at: Annotated[str | None, Parameter(help="One moment, RFC 3339; or --cron.")] = None,
    zone: Annotated[str, Parameter(help="The cron line's zone.")] = "UTC",
    payload: Annotated[str | None, Parameter(help="A JSON object that goes along.")] = None,
    misfire: Annotated[
        Literal["skip", "run_once", "run_all"], Parameter(help="What becomes of times that were missed.")
    ] = "run_once",
    overlap: Annotated[
        Literal["allow", "skip", "queue"], Parameter(help="While the run before is still at work.")
    ] = "allow",
    jitter: Annotated[int, Parameter(help="Up to so many seconds later, spread.")] = 0,
    tries: Annotated[int, Parameter(help="So often before it is a dead letter.")] = 5,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Put a job on the schedule. Look at its times before with `observatory jobs preview`."""
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
    with hand(gateway, json) as door:
        answer = door.ask("POST", "/v1/jobs", body)
    tell(answer, json, f"{answer['job_id']}: {answer['name']} fires next {when(answer['next_at'])}")


def _target(to: str) -> Row:
    for place, kind in (("type:", "capability"), ("cluster:", "cluster")):
        if to.startswith(place):
            return {"kind": kind, "name": to.removeprefix(place)}
    return {"kind": "agent", "name": to}


def _object(text: str | None) -> Row:
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Misused("--payload is no JSON object") from None


@jobs.command(name="preview")
def preview(
    cron: Annotated[str, Parameter(help="A cron line in quotes.")],
    *,
    zone: Annotated[str, Parameter(help="The zone it is meant in.")] = "UTC",
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """A cron line in plain words, and its next five times."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", "/v1/jobs/preview", {"cron": cron, "zone": zone})
    tell(answer, json, answer["explained"], *(f"  {at}" for at in answer["local"]))


@jobs.command(name="pause")
def pause(job: Job, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Fire no more until it is resumed; what falls into the pause is not made up for."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", f"{path_of('jobs', _found(door, job)['job_id'])}/pause")
    tell(answer, json, f"{answer['name']} is paused")


@jobs.command(name="resume")
def resume(job: Job, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Fire again, from now on."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", f"{path_of('jobs', _found(door, job)['job_id'])}/resume")
    tell(answer, json, f"{answer['name']} fires next {when(answer['next_at'])}")


@jobs.command(name="run")
def run(job: Job, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """Fire once now, beside its times; also while it is paused."""
    with hand(gateway, json) as door:
        answer = door.ask("POST", f"{path_of('jobs', _found(door, job)['job_id'])}/run")
    tell(answer, json, f"{answer['run_id']}: it goes out with the next look of the schedule")


@jobs.command(name="runs")
def runs(job: Job, *, limit: Limit = 20, json: Json = False, gateway: Gateway = ANY) -> None:
    """What came of a job's firings, newest first."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", f"{path_of('jobs', _found(door, job)['job_id'])}/runs", limit=limit)
    if json:
        show_json(answer)
        return
    shown = [
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
    show_table(("FOR", "STATE", "TRIES", "ACKNOWLEDGED", "REASON", "SESSION"), shown, "it has not fired yet")


@jobs.command(name="next")
def next_(
    *,
    hours: Annotated[int, Parameter(help="How far ahead.")] = 24,
    limit: Limit = 50,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What fires next, in order."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/jobs/upcoming", hours=hours, limit=limit)
    if json:
        show_json(answer)
        return
    shown = [
        (row["next_at"], row["name"], f"{row['target']['kind']} {row['target']['name']}")
        for row in answer["items"]
    ]
    show_table(("AT", "NAME", "TO"), shown, f"nothing fires within {hours} h")


@jobs.command(name="leader")
def leader(*, json: Json = False, gateway: Gateway = ANY) -> None:
    """Which gateway leads the schedule, and whether it is behind."""
    with hand(gateway, json) as door:
        answer = door.ask("GET", "/v1/scheduler")
    if json:
        show_json(answer)
        return
    lease = answer["leader"]
    if lease is None or not lease["is_live"]:
        note("nobody leads the schedule now: nothing fires until a gateway does")
    if lease is not None:
        say(f"leader  {lease['holder']}  epoch {lease['epoch']}  last tick {when(lease['last_tick_at'])}")
    say(f"behind  {answer['lag_s']} s", f"next    {when(answer['next_at']) or 'nothing'}")
    say(f"dead letters  {answer['dead_letters']}")
    if answer["clock"]["status"] != "ok":
        note(f"clock  {answer['clock']['text']}")


@jobs.command(name="from-now")
def from_now(*, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """After a wrong clock: say that it is right now, and let schedules go on from the present."""
    with hand(gateway, json) as door:
        clock = door.ask("GET", "/v1/scheduler")["clock"]
        if not json:
            say(f"clock   {clock['text']}")
        confirm(f"The gateway's clock shows {when(clock['shows'])}. Go on from there?", yes)
        answer = door.ask("POST", "/v1/scheduler/from-now")
    if json:
        show_json(answer)
        return
    say(f"schedules go on from now: {answer['jobs']}; waiting runs tried at once: {answer['runs']}")


@jobs.command(name="resign")
def resign(*, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Let another gateway lead the schedule: before this one is stopped for a while."""
    with hand(gateway, json) as door:
        confirm("Let the gateway that answers here give up the lead of the schedule?", yes)
        answer = door.ask("POST", "/v1/scheduler/resign")
    if json:
        show_json(answer)
        return
    say("it does not lead any more; see `observatory jobs leader`")


@jobs.command(name="remove")
def remove(job: Job, *, yes: Yes = False, json: Json = False, gateway: Gateway = ANY) -> None:
    """Take a job off the schedule; its runs stay on record."""
    with hand(gateway, json) as door:
        found = _found(door, job)
        confirm(f"Remove the job {found['name']}?", yes)
        answer = door.ask("DELETE", path_of("jobs", found["job_id"]))
    tell(answer, json, f"{found['name']} fires no more")


@dead_letters.command(name="list")
def list_letters(
    *,
    kind: Annotated[Literal["job", "webhook"] | None, Parameter(help="Only of this kind.")] = None,
    every: Annotated[bool, Parameter(name="--all", negative=(), help="Also what was dealt with.")] = False,
    limit: Limit = 100,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """What the house could not send and gave up on, newest first."""
    with hand(gateway, json) as door:
        state = None if every else "dead"
        answer = door.ask("GET", "/v1/dead-letters", limit=limit, kind=kind, state=state)
    if json:
        show_json(answer)
        return
    shown = [
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
    show_table(("LETTER", "KIND", "OF", "STATE", "SINCE", "REASON"), shown, "no dead letters")


def _letter(door: Api, letter: str) -> Row:
    rows = door.ask("GET", "/v1/dead-letters", limit=1_000)["items"]
    return one_of(rows, letter, ("letter_id",), LETTERS)


@dead_letters.command(name="show")
def show_letter(letter: Letter, *, json: Json = False, gateway: Gateway = ANY) -> None:
    """One letter, and the beginning of what it carried."""
    with hand(gateway, json) as door:
        row = _letter(door, letter)
    tell(
        row,
        json,
        f"letter   {row['letter_id']}  {row['state']}  since {when(row['created_at'])}",
        f"of       {row['kind']} {row['source_name']} ({row['source_id']}), {row['subject_id']}",
        f"reason   {row['reason']}",
        f"carried  {row['preview']}",
    )


Which = Annotated[str | None, Parameter(help="One letter; without it, --all.")]
Every = Annotated[bool, Parameter(name="--all", negative=(), help="Up to a hundred dead ones.")]
Kind = Annotated[Literal["job", "webhook"] | None, Parameter(help="Of all, only of this kind.")]


@dead_letters.command(name="retry")
def retry(
    letter: Which = None,
    *,
    every: Every = False,
    kind: Kind = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Try it once more."""
    _end("retry", letter, every, kind, yes, json, gateway)


@dead_letters.command(name="discard")
def discard(
    letter: Which = None,
    *,
    every: Every = False,
    kind: Kind = None,
    yes: Yes = False,
    json: Json = False,
    gateway: Gateway = ANY,
) -> None:
    """Let it go for good; that it was is on record."""
    _end("discard", letter, every, kind, yes, json, gateway)


def _end(
    verb: str, letter: str | None, every: bool, kind: str | None, yes: bool, json: bool, gateway: Gateway
) -> None:
    if (letter is None) != every:
        raise Misused("give a letter, or --all and no letter")
    with hand(gateway, json) as door:
        if letter is not None:
            found = _letter(door, letter)
            if verb == "discard":
                confirm(f"Discard what {found['source_name']} could not send?", yes)
            answer = door.ask("POST", f"{path_of('dead-letters', found['letter_id'])}/{verb}")
            tell(answer, json, f"{answer['letter_id']} {answer['state']}")
            return
        confirm(f"{verb.capitalize()} up to a hundred dead letters?", yes)
        answer = door.ask("POST", f"/v1/dead-letters/{verb}", {"kind": kind})
    rest = "; there are more" if answer["more"] else ""
    tell(answer, json, f"{len(answer['done'])} done, {len(answer['refused'])} refused{rest}")

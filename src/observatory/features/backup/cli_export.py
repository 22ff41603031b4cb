"""`observatory export`: a tenant's trail as a file that `verify --export` and `import` read.

From the database when a folder or a URL of one is given; from a running gateway, over its live channel,
when `--url` or only its credentials are. Either way the file is whole or not there at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.cli.gateway_client import Api, Gateway, GatewayRefused, door_of
from observatory.cli.live import Frame, feed, item_of
from observatory.cli.prompts import path_of
from observatory.cli.terminal import CommandFailed, progress, say, show_json
from observatory.features.backup.export_file import manifest_path, put, write_lines, written
from observatory.features.verification import cli_evidence as evidence
from observatory.features.verification import verify_log_root as log_check
from observatory.features.verification.verify_log_root import Claimed
from observatory.features.verification.verify_rows import open_trail
from observatory.ledger import export as form
from observatory.ledger.canonical import sha256_text
from observatory.ledger.export import Archived, End, Entry, Manifest, Tally
from observatory.ledger.verify import GENESIS
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.settings import VERSION

Pages = Iterator[list[Entry]]


class Source(msgspec.Struct, frozen=True):
    """Where entries come from: the tenant, where its chain stood, and its pages for a range."""

    tenant_id: str
    head: End
    checkpoint: str | None = None
    vkeys: tuple[str, ...] = ()


def export(
    *,
    out: Annotated[
        Path,
        Parameter(
            name=("--out", "-o"),
            help="FILE.jsonl or FILE.jsonl.gz, its manifest is written beside it; of a bundle FILE.zip.",
        ),
    ],
    bundle: Annotated[
        str | None, Parameter(help="Only this session, with every proof, as one zip; asks the gateway.")
    ] = None,
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of a folder.")] = None,
    url: Annotated[str | None, Parameter(help="Ask this gateway instead of reading a database.")] = None,
    key: str | None = None,
    tenant: Annotated[str | None, Parameter(help="Without it: the key's tenant, or tnt_default.")] = None,
    from_: Annotated[int, Parameter(name="--from", help="First sequence number.")] = 1,
    to: Annotated[int | None, Parameter(help="Last sequence number; without it: the head.")] = None,
    payloads: Annotated[bool, Parameter(help="Include the messages' bytes.")] = True,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Write a tenant's audit trail and messages to a file with a manifest, or the evidence of one session."""
    if bundle is not None:
        if db is not None or tenant is not None or from_ != 1 or to is not None:
            raise CommandFailed(
                "a bundle is of one session, through its gateway; leave --db, --tenant, --from and --to out"
            )
        return evidence.fetch(Gateway(data=data, url=url, key=key), bundle, out)
    if from_ < 1 or (to is not None and to < from_):
        raise CommandFailed("--from is at least 1, and --to not before it")
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise CommandFailed("--out ends in .jsonl or .jsonl.gz")
    taken = next((path for path in (out, manifest_path(out)) if path.exists()), None)
    if taken is not None:
        raise CommandFailed(f"{taken} exists already; choose another --out or remove it")
    if not out.absolute().parent.is_dir():
        raise CommandFailed(f"the folder {out.absolute().parent} does not exist; create it first")
    source = settings_module.load({"data": data, "db": db})
    by_gateway = url or (data is None and db is None and os.environ.get("OBSERVATORY_URL"))
    if by_gateway:
        manifest = _from_gateway(Gateway(data=data, url=url, key=key), out, tenant, (from_, to), payloads)
    else:
        manifest = _from_database(source.database_url, out, tenant or HOME_TENANT, (from_, to), payloads)
    if json:
        show_json(manifest)
        return
    span = f"{manifest.from_sequence:,}–{manifest.to_sequence:,}"
    counts = f"{manifest.events:,} events ({span}) and {manifest.messages:,} messages"
    say(
        f"exported {counts} of {manifest.tenant_id}",
        f"  data      {out} ({manifest.bytes:,} bytes, {manifest.sha256})",
        f"  manifest  {manifest_path(out)}",
        f"  check it  observatory verify --export {out}",
    )


def _from_database(
    url: str, out: Path, tenant_id: str, span: tuple[int, int | None], payloads: bool
) -> Manifest:
    trail = open_trail(url)
    try:
        heads = {head.tenant_id: head for head in trail.heads()}
        if tenant_id not in heads:
            raise CommandFailed(
                f"this database has no tenant {tenant_id}; it has: {', '.join(heads) or 'none'}"
            )
        head = End(heads[tenant_id].sequence_number, heads[tenant_id].event_hash)
        start, end = _range(span, head)
        pages = trail.entries(tenant_id, start, end)
        claim = log_check.claimed(trail.log(tenant_id))
        source = _source(tenant_id, head, claim, (start, end))
        return _write(out, pages, source, (start, end), payloads)
    finally:
        trail.close()


def _from_gateway(
    gateway: Gateway, out: Path, tenant: str | None, span: tuple[int, int | None], payloads: bool
) -> Manifest:
    door = door_of(gateway)
    try:
        me = door.ask("GET", "/v1/whoami")
        if tenant not in (None, me["tenant_id"]):
            raise CommandFailed(f"this key belongs to {me['tenant_id']}; use a key of {tenant}")
        if "export" not in me["permissions"]:
            raise CommandFailed(f"the role {me['role']} may not export; use an auditor's or an admin's key")
        told = door.ask("GET", "/v1/audit/log")
        newest = door.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    except BaseException:
        door.close()
        raise
    head = End(0, GENESIS)
    if newest:
        head = End(newest[0]["hash_chain"]["sequence_number"], newest[0]["hash_chain"]["event_hash"])
    start, end = _range(span, head)
    try:
        with feed(door.url, door.key, ("messages", "events"), start - 1, door.trust) as connection:
            pages = _live_pages(iter(lambda: connection.frame(60), None), start, end, door)
            claim = log_check.claimed_by(told["checkpoint"], [key["vkey"] for key in told["vkeys"]])
            source = _source(me["tenant_id"], head, claim, (start, end))
            return _write(out, pages, source, (start, end), payloads)
    finally:
        door.close()


def _source(tenant_id: str, head: End, claim: Claimed, span: tuple[int, int]) -> Source:
    """With the log's checkpoint, if the export holds every event that was signed by it."""
    newest = claim.checkpoint
    if newest is None or claim.note is None or span[0] != 1 or newest.size > span[1]:
        return Source(tenant_id, head)
    return Source(tenant_id, head, claim.note.decode("utf-8"), tuple(key.vkey for key in claim.keys))


def _live_pages(frames: Iterator[Frame], start: int, end: int, door: Api) -> Pages:
    """Of each page the messages come first, then the events with which it is complete."""
    beside: dict[int, Archived] = {}
    for frame in frames:
        if frame.type == "resync":
            raise CommandFailed(
                "the gateway cut the export short because it fell behind; try again, or use --data"
            )
        if frame.topic == "messages":
            for item in map(item_of, frame.items):
                raw = bytes(item.message)
                gone = raw == b"null"
                beside[item.sequence_number] = Archived(
                    message_id=item.message_id,
                    session_id=item.session_id,
                    step_id=item.step_id,
                    message_type=item.message_type,
                    state=item.state,
                    parents=item.parents,
                    parent_inferred=item.parent_inferred,
                    raw=None if gone else raw,
                    shredded_by=None if item.shredded is None else item.shredded.event,
                )
            continue
        first = frame.seq - len(frame.items) + 1
        page = [
            _live_entry(number, bytes(record), beside.get(number), door)
            for number, record in enumerate(frame.items, first)
            if start <= number <= end
        ]
        beside.clear()
        if page:
            yield page
        if frame.seq >= end:
            return


class _Body(msgspec.Struct):
    event_type: str
    command: str | None = None
    intervention_id: str | None = None
    held_sequence_number: int | None = None
    session_id: str | None = None
    index: int | None = None


class _Attributes(msgspec.Struct):
    digest: str | None = msgspec.field(default=None, name="av.message.digest")


class _Record(msgspec.Struct):
    body: _Body
    attributes: _Attributes


_read = msgspec.json.Decoder(_Record).decode


def _live_entry(number: int, record: bytes, archived: Archived | None, door: Api) -> Entry:
    """The live channel shows a message's present state; its row has the one it was archived with."""
    event = _read(record)
    body, digest = event.body, event.attributes.digest
    if archived is not None and archived.raw is not None and digest != sha256_text(archived.raw):
        # Shown is what a person put there, and without blanks around it; archived is what the agent sent.
        exact = door.bytes(f"/v1/messages/{archived.message_id}", raw=True)
        archived = msgspec.structs.replace(archived, raw=exact)
    if archived is not None and body.event_type == "message_held":
        archived = msgspec.structs.replace(archived, state="held")
    rewritten = None
    if body.event_type == "hitl_intervention" and body.command in ("rewrite", "edit"):
        rewritten = _put_there(door, body.intervention_id)
    return Entry(number, record, None, archived, rewritten, words_of(door, body))


def _put_there(door: Api, intervention_id: str | None) -> bytes:
    """What a person put in the place of a message; nothing once it was shredded."""
    try:
        return door.bytes(f"/v1/interventions/{intervention_id}/content")
    except GatewayRefused as refusal:
        if refusal.reason != "shredded":
            raise
        return b""


def _range(span: tuple[int, int | None], head: End) -> tuple[int, int]:
    start, end = span[0], head.sequence_number if span[1] is None else span[1]
    if start > end or end > head.sequence_number:
        raise CommandFailed(
            f"the trail ends at event {head.sequence_number}; choose --from and --to within it"
        )
    return start, end


def _write(out: Path, pages: Pages, source: Source, span: tuple[int, int], payloads: bool) -> Manifest:
    start, end = span
    tally, wanted = Tally(start), end - start + 1
    with written(out) as (file, digest, beside), progress(f"exporting {source.tenant_id}", wanted) as advance:
        write_lines(file, pages if payloads else map(form.bare, pages), tally, advance)
        if tally.events != wanted:
            raise CommandFailed(
                f"the trail ended after {tally.events:,} of {wanted:,} events; nothing was exported, "
                "run `observatory verify`"
            )
    manifest = Manifest(
        format=form.FORMAT,
        tenant_id=source.tenant_id,
        from_sequence=start,
        to_sequence=end,
        events=tally.events,
        messages=tally.messages,
        payloads=payloads,
        shredded=tally.shredded,
        file=out.name,
        bytes=digest.bytes,
        sha256=digest.text,
        after_hash=tally.after_hash or GENESIS,
        first_hash=tally.first_hash,
        last_hash=tally.last_hash,
        head=source.head,
        created_at=from_ns(time.time_ns()),
        tool=f"observatory {VERSION}",
        checkpoint=source.checkpoint,
        vkeys=source.vkeys,
    )
    put(out, beside, manifest)
    return manifest


class _Thinker(msgspec.Struct):
    intent: str


class _Thought(msgspec.Struct):
    content: msgspec.Raw


class _Thoughts(msgspec.Struct):
    session: _Thinker
    items: list[_Thought]


def words_of(door: Api, body: _Body) -> bytes | None:
    """What the event holds only the hash of: a thought, byte for byte, or the intent of its session."""
    if body.event_type not in ("thought_recorded", "thought_session_started") or body.session_id is None:
        return None
    path = path_of("sessions", body.session_id, "thoughts")
    found = msgspec.json.decode(door.bytes(path, start=body.index or 0, limit=1), type=_Thoughts)
    if body.event_type == "thought_session_started":
        return found.session.intent.encode()
    content = bytes(found.items[0].content)
    return b"" if content == b"null" else content  # shredded: nothing is left, as in the database

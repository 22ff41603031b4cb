"""`observatory export`: a tenant's trail as a file that `verify --export` and `import` read.

From the database when a folder or a URL of one is given; from a running gateway, over its live channel,
when `--url` or only its credentials are. Either way the file is complete or does not exist.
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
from observatory.cli.gateway_client import GatewayApi, GatewayOptions, GatewayRefused, open_api
from observatory.cli.live import LiveFrame, feed, item_of
from observatory.cli.prompts import path_of
from observatory.cli.terminal import CommandFailed, progress, say, show_json
from observatory.cli.verify import evidence
from observatory.cli.verify import log_root as log_check
from observatory.cli.verify.export import manifest_path, put, write_lines, written
from observatory.cli.verify.log_root import LogClaim
from observatory.cli.verify.rows import open_trail
from observatory.ledger import export as form
from observatory.ledger.canonical import sha256_text
from observatory.ledger.export import ChainEnd, ExportedMessage, ExportEntry, ExportManifest, ExportTally
from observatory.ledger.verify import GENESIS
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.clock import from_ns
from observatory.settings import VERSION

Pages = Iterator[list[ExportEntry]]


class ExportSource(msgspec.Struct, frozen=True):
    """Where entries come from: the tenant, where its chain stood, and its pages for a range."""

    tenant_id: str
    head: ChainEnd
    checkpoint: str | None = None
    vkeys: tuple[str, ...] = ()


def export(
    *,
    out: Annotated[
        Path,
        Parameter(
            name=("--out", "-o"),
            help="FILE.jsonl or FILE.jsonl.gz, with a manifest next to it; for a bundle FILE.zip.",
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
        return evidence.fetch(GatewayOptions(data=data, url=url, key=key), bundle, out)
    if from_ < 1 or (to is not None and to < from_):
        raise CommandFailed("--from is at least 1, and --to not before it")
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise CommandFailed("--out ends in .jsonl or .jsonl.gz")
    taken = next((path for path in (out, manifest_path(out)) if path.exists()), None)
    if taken is not None:
        raise CommandFailed(f"{taken} already exists; choose another --out or remove it")
    if not out.absolute().parent.is_dir():
        raise CommandFailed(f"the folder {out.absolute().parent} does not exist; create it first")
    source = settings_module.load({"data": data, "db": db})
    by_gateway = url or (data is None and db is None and os.environ.get("OBSERVATORY_URL"))
    if by_gateway:
        manifest = _from_gateway(
            GatewayOptions(data=data, url=url, key=key), out, tenant, (from_, to), payloads
        )
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
) -> ExportManifest:
    trail = open_trail(url)
    try:
        heads = {head.tenant_id: head for head in trail.heads()}
        if tenant_id not in heads:
            raise CommandFailed(
                f"this database has no tenant {tenant_id}; it has: {', '.join(heads) or 'none'}"
            )
        head = ChainEnd(heads[tenant_id].sequence_number, heads[tenant_id].event_hash)
        start, end = _range(span, head)
        pages = trail.entries(tenant_id, start, end)
        claim = log_check.database_claim(trail.log(tenant_id))
        source = _source(tenant_id, head, claim, (start, end))
        return _write(out, pages, source, (start, end), payloads)
    finally:
        trail.close()


def _from_gateway(
    gateway: GatewayOptions, out: Path, tenant: str | None, span: tuple[int, int | None], payloads: bool
) -> ExportManifest:
    client = open_api(gateway)
    try:
        me = client.ask("GET", "/v1/whoami")
        if tenant not in (None, me["tenant_id"]):
            raise CommandFailed(f"this key belongs to {me['tenant_id']}; use a key of {tenant}")
        if "export" not in me["permissions"]:
            raise CommandFailed(f"the role {me['role']} may not export; use an auditor's or an admin's key")
        log_info = client.ask("GET", "/v1/audit/log")
        newest = client.ask("GET", "/v1/audit/tenant", limit=1)["items"]
    except BaseException:
        client.close()
        raise
    head = ChainEnd(0, GENESIS)
    if newest:
        head = ChainEnd(newest[0]["hash_chain"]["sequence_number"], newest[0]["hash_chain"]["event_hash"])
    start, end = _range(span, head)
    try:
        with feed(client.url, client.key, ("messages", "events"), start - 1, client.trust) as connection:
            pages = _live_pages(iter(lambda: connection.frame(60), None), start, end, client)
            claim = log_check.export_claim(log_info["checkpoint"], [key["vkey"] for key in log_info["vkeys"]])
            source = _source(me["tenant_id"], head, claim, (start, end))
            return _write(out, pages, source, (start, end), payloads)
    finally:
        client.close()


def _source(tenant_id: str, head: ChainEnd, claim: LogClaim, span: tuple[int, int]) -> ExportSource:
    """The source, with the log's checkpoint if the export holds every event that it signs."""
    newest = claim.checkpoint
    if newest is None or claim.note is None or span[0] != 1 or newest.size > span[1]:
        return ExportSource(tenant_id, head)
    return ExportSource(tenant_id, head, claim.note.decode("utf-8"), tuple(key.vkey for key in claim.keys))


def _live_pages(frames: Iterator[LiveFrame], start: int, end: int, client: GatewayApi) -> Pages:
    """Entries from live frames: of each page the messages come first, then the events that complete it."""
    temporary: dict[int, ExportedMessage] = {}
    for frame in frames:
        if frame.type == "resync":
            raise CommandFailed(
                "the export fell behind and was ended by the gateway; try again, or use --data"
            )
        if frame.topic == "messages":
            for item in map(item_of, frame.items):
                raw = bytes(item.message)
                gone = raw == b"null"
                temporary[item.sequence_number] = ExportedMessage(
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
            _live_entry(number, bytes(record), temporary.get(number), client)
            for number, record in enumerate(frame.items, first)
            if start <= number <= end
        ]
        temporary.clear()
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


def _live_entry(
    number: int, record: bytes, archived: ExportedMessage | None, client: GatewayApi
) -> ExportEntry:
    """The live channel has a message's current state; its row has the state it was archived with."""
    event = _read(record)
    body, digest = event.body, event.attributes.digest
    if archived is not None and archived.raw is not None and digest != sha256_text(archived.raw):
        # The live channel has a person's rewrite, and trims blanks; archived is what the agent sent.
        exact = client.bytes(f"/v1/messages/{archived.message_id}", raw=True)
        archived = msgspec.structs.replace(archived, raw=exact)
    if archived is not None and body.event_type == "message_held":
        archived = msgspec.structs.replace(archived, state="held")
    rewritten = None
    if body.event_type == "hitl_intervention" and body.command in ("rewrite", "edit"):
        rewritten = _put_there(client, body.intervention_id)
    return ExportEntry(number, record, None, archived, rewritten, text_of(client, body))


def _put_there(client: GatewayApi, intervention_id: str | None) -> bytes:
    """A person's rewrite of a message; empty once it was shredded."""
    try:
        return client.bytes(f"/v1/interventions/{intervention_id}/content")
    except GatewayRefused as refusal:
        if refusal.reason != "shredded":
            raise
        return b""


def _range(span: tuple[int, int | None], head: ChainEnd) -> tuple[int, int]:
    start, end = span[0], head.sequence_number if span[1] is None else span[1]
    if start > end or end > head.sequence_number:
        raise CommandFailed(
            f"the trail ends at event {head.sequence_number}; choose --from and --to within it"
        )
    return start, end


def _write(
    out: Path, pages: Pages, source: ExportSource, span: tuple[int, int], payloads: bool
) -> ExportManifest:
    start, end = span
    tally, wanted = ExportTally(start), end - start + 1
    with (
        written(out) as (file, digest, temporary),
        progress(f"exporting {source.tenant_id}", wanted) as advance,
    ):
        write_lines(file, pages if payloads else map(form.without_payloads, pages), tally, advance)
        if tally.events != wanted:
            raise CommandFailed(
                f"the trail ended after {tally.events:,} of {wanted:,} events; nothing was exported, "
                "run `observatory verify`"
            )
    manifest = ExportManifest(
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
    put(out, temporary, manifest)
    return manifest


class _Thinker(msgspec.Struct):
    intent: str


class _Thought(msgspec.Struct):
    content: msgspec.Raw


class _Thoughts(msgspec.Struct):
    session: _Thinker
    items: list[_Thought]


def text_of(client: GatewayApi, body: _Body) -> bytes | None:
    """The text of which the event holds only the hash: a thought, byte for byte, or its session's intent."""
    if body.event_type not in ("thought_recorded", "thought_session_started") or body.session_id is None:
        return None
    path = path_of("sessions", body.session_id, "thoughts")
    found = msgspec.json.decode(client.bytes(path, start=body.index or 0, limit=1), type=_Thoughts)
    if body.event_type == "thought_session_started":
        return found.session.intent.encode()
    content = bytes(found.items[0].content)
    return b"" if content == b"null" else content  # shredded: empty, as in the database

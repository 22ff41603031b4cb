"""`observatory import`: restores an exported trail into an empty tenant, whole or not at all.

Everything is checked before anything is written: file, counts, every link, every payload. Then one single
transaction restores the exact rows; agents, sessions and members are rebuilt from the messages, read
by the interceptor as they were when they came. An interruption leaves the tenant as empty as before.
Keys, users and passwords are not part of a trail: the first start creates new ones, chained after it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from observatory import settings as settings_module
from observatory.bootstrap import locked_folder, open_store
from observatory.cli.terminal import Advance, CommandFailed, progress, say
from observatory.cli.verify.export import check_export, entries
from observatory.features.access.types_rows import tenant_rows
from observatory.features.rebuild.rows import Refold
from observatory.ledger.export import ExportEntry, ExportManifest
from observatory.pipeline.ports import Store, Transaction
from observatory.pipeline.state import ReadSet, TransactionChanges
from observatory.settings import Settings


def import_(
    *,
    in_: Annotated[Path, Parameter(name="--in", help="FILE.jsonl[.gz] with its manifest next to it.")],
    data: str | None = None,
    db: Annotated[str | None, Parameter(help="Database URL instead of the folder's own.")] = None,
    tenant: Annotated[str | None, Parameter(help="The tenant the export must be of.")] = None,
) -> None:
    """Restore an exported trail into an empty tenant; its chain continues from there."""
    manifest, found = check_export(in_)
    broken = found.first_break
    if broken is not None:
        raise CommandFailed(f"the export is broken and was not imported: {broken.sentence}")
    _refuse_parts(manifest, tenant)
    settings = settings_module.load({"data": data, "db": db})
    with nullcontext() if settings.is_postgres else locked_folder(settings.folder):
        asyncio.run(_import(settings, in_, manifest))
    say(
        f"imported {manifest.events:,} events and {manifest.messages:,} messages into {manifest.tenant_id}; "
        f"its chain continues from event {manifest.to_sequence:,}",
        "  keys and users are not part of a trail: `observatory serve` creates new ones for tnt_default",
    )


def _refuse_parts(manifest: ExportManifest, tenant: str | None) -> None:
    if tenant not in (None, manifest.tenant_id):
        raise CommandFailed(
            f"this export is of {manifest.tenant_id}, whose name is in every hash; it cannot become {tenant}"
        )
    if manifest.from_sequence != 1:
        raise CommandFailed(
            f"this export begins at event {manifest.from_sequence}; only a whole one can be imported"
        )
    if not manifest.payloads and manifest.messages:
        raise CommandFailed("this export was made with --no-payloads: it can be verified, not imported")


async def _import(settings: Settings, path: Path, manifest: ExportManifest) -> None:
    store = await open_store(settings)
    lane = store.lane(manifest.tenant_id)
    try:
        with progress(f"importing {manifest.tenant_id}", manifest.events) as advance:
            await asyncio.to_thread(_write, store, lane, path, manifest, advance)
    finally:
        await asyncio.to_thread(store.close_lane, lane)
        await store.stop()


def _write(store: Store, lane: int, path: Path, manifest: ExportManifest, advance: Advance) -> None:
    store.transact(lane, _unit(manifest, entries(path), advance))


def _unit(
    manifest: ExportManifest, pages: Iterator[list[ExportEntry]], advance: Advance
) -> Callable[[Transaction], None]:
    """One transaction for everything: whole or nothing, on SQLite and PostgreSQL."""

    def unit(transaction: Transaction) -> None:
        memory = transaction.load(manifest.tenant_id, ReadSet(), None)
        if memory.head.sequence_number:
            raise CommandFailed(
                f"the tenant {manifest.tenant_id} already has {memory.head.sequence_number:,} events here; "
                "import into a folder or database where it has none"
            )
        refold = Refold(memory)
        first = True
        for page in pages:
            changes = refold.changes(page)
            if first:
                created_ns, name = Refold.beginning(page[0])
                changes.writes[:0] = tenant_rows(memory, name, created_ns)
                first = False
            transaction.save(memory, changes)
            refold.saved()
            advance(len(page))
        refold.finish()
        transaction.save(memory, TransactionChanges(writes=[refold.mark(time.time_ns())]))
        if memory.head.event_hash != manifest.last_hash:
            raise CommandFailed("the export changed while it was read; nothing was imported")

    return unit

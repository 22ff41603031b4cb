"""The composition root: the only file that names concrete adapters, and the order of starting and stopping.

A folder belongs to one process: a second one is refused. What a first start makes is in `api.data_folder`.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec
import uvloop

from observatory.bus.memory import MemoryBus
from observatory.bus.nats import NatsBus
from observatory.bus.nats_line import NatsLine
from observatory.errors import NotDurable, StartupError, StoreError
from observatory.features.access.data_folder import (
    AGENT_FILE,
    CREDENTIALS,
    LINK_FILE,
    furnish,
    refuse_broken,
    refuse_empty,
    write_bytes_private,
)
from observatory.features.access.routes_sign_ins import make_login
from observatory.features.alerting.email import Email
from observatory.features.alerting.levels import Levels
from observatory.features.alerting.slack import Slack
from observatory.features.alerting.worker import Alerts
from observatory.features.certificates.worker import Certificates
from observatory.features.decisions import worker as deadlines
from observatory.features.exporters.worker import Exporter
from observatory.features.hooks.types_rows import HookRows
from observatory.features.hooks.worker import Hooks
from observatory.features.inbox.worker import Dispatcher
from observatory.features.kill_switch import worker as stager
from observatory.features.loops.worker import Alarms
from observatory.features.mcp.server import McpServer
from observatory.features.nats.requests import NatsDoor
from observatory.features.policies import stage as policy
from observatory.features.redaction.worker import EVERY_S, Keeper
from observatory.features.refusals import worker as refusals
from observatory.features.registry.worker import Due, Reaper
from observatory.features.relay import worker as gatekeeper
from observatory.features.schedule.commands_firing import LEASE as SCHEDULER_LEASE
from observatory.features.schedule.types_rows import Leases, Schedule
from observatory.features.schedule.worker import Scheduler
from observatory.features.transparency.log_key import Keyring, Marks
from observatory.features.transparency.types_log import LogRows
from observatory.features.transparency.worker import Sealer
from observatory.features.transparency.worker_federation import Federation
from observatory.features.webhooks.post import WebhookPost
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.features.webhooks.worker import Webhooks
from observatory.http import server
from observatory.http.app_state import House
from observatory.http.authentication import Auth
from observatory.ledger import note
from observatory.pipeline import quotas
from observatory.pipeline.committer import Committer
from observatory.pipeline.message_event import Service
from observatory.pipeline.ports import Bus, Listens, Store
from observatory.pipeline.quotas import Quotas
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.nats import BadAddress, address
from observatory.protocol.nats_wire import NoNats, check_installed, trusting
from observatory.runtime import logging as journal
from observatory.runtime.child_process import Child
from observatory.runtime.derived import Derived
from observatory.runtime.feed import Feed
from observatory.runtime.leader import Leader, presence
from observatory.runtime.outbound_http import Outward
from observatory.runtime.publisher import Publisher
from observatory.runtime.runner import Daemon, Runner
from observatory.runtime.tls import Tls
from observatory.runtime.worker_context import Watch
from observatory.settings import Settings
from observatory.store.derived_sqlite import SqliteDerived, beside
from observatory.store.migrate import is_empty, migrate_postgres, migrate_sqlite
from observatory.store.sqlite import SqliteStore

CUT_S = 20.0  # after the doors are closed
log = logging.getLogger("observatory")


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """The data folder, held by this process alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartupError(f"the data folder {folder} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise StartupError(
                f"another Observatory (process {holder}) is running on {folder}; stop it, or give this one "
                "another folder with --data"
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def with_password(url: str, environ: Mapping[str, str]) -> str:
    """The database's URL with the password that the environment names for it: the analyst has none."""
    password = environ.get("PGPASSWORD")
    if not password or not url.startswith(("postgres://", "postgresql://")) or urlsplit(url).password:
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode({'password': password})}"


async def open_store(settings: Settings) -> Store:
    """Migrated, checked, ready."""
    store: Store
    refuse_broken(settings)
    if await is_empty(settings.database_url):
        refuse_empty(settings)
    if settings.is_postgres:
        from observatory.store.postgres import PostgresStore

        await migrate_postgres(settings.database_url)
        store = PostgresStore(settings.database_url)
    else:
        path = Path(settings.database_url.removeprefix("sqlite:///"))
        await asyncio.to_thread(migrate_sqlite, path)
        store = SqliteStore(path)
    await store.start()
    return store


async def open_derived(settings: Settings, store: Store) -> Derived:
    """Made if it is not there, so that doors can read; filled by the analyst."""
    derived: Derived
    if settings.is_postgres:
        from observatory.store.derived_postgres import PostgresDerived
        from observatory.store.postgres import PostgresStore

        assert isinstance(store, PostgresStore)
        derived = PostgresDerived(store, settings.database_url)
    else:
        derived = SqliteDerived(beside(Path(settings.database_url.removeprefix("sqlite:///"))))
    try:
        await derived.start()
    except NotDurable as error:  # the record can be kept without; the analyst tries again
        log.warning("insight has nothing to read yet: %s", error)
    return derived


@asynccontextmanager
async def built(
    settings: Settings, serving: bool = False, accept_rollback: bool = False
) -> AsyncIterator[House]:
    """A running house: store, corridor, daemons. Stops in the opposite order, losing nothing.

    Only one that serves has an analyst.
    """
    line = open_line(settings) if serving else None
    policy.settle(settings.policy_default)
    quotas.settle(Quotas(settings.refusals_in_full, settings.agent_decisions, settings.agent_reminders))
    tls = Tls(settings) if serving and settings.is_tls else None  # refused before anything is touched
    store = await open_store(settings)
    derived = await open_derived(settings, store)
    local = MemoryBus()
    bus: Bus = local
    identity = partial(house_id, store)
    if line is not None:
        bus = nats_bus = NatsBus(line, local, store.head, identity)
    committer = Committer(
        store,
        Service(settings.service_name, settings.service_version, settings.environment),
        bus.publish,
        max_messages=settings.queue_messages,
        max_bytes=settings.queue_bytes,
        batch_size=settings.commit_batch,
        max_wait_s=settings.queue_wait_s,
    )
    publisher = Publisher(store, bus, settings.live_backlog)
    dispatcher = Dispatcher(store, bus, committer.submit, committer.enqueue, settings.redelivery_s)
    daemons: dict[str, Daemon] = {"publisher": publisher.run, "dispatcher": dispatcher.run}
    if isinstance(store, Listens):  # rows that other gateways commit on the same database
        daemons["listener"] = partial(store.listen, local.publish)
    # It signs nothing and sends nothing, so it need not know how.
    harmless = msgspec.structs.replace(
        settings, log_key_passphrase="", smtp_url="", bus="", db=with_password(settings.db, os.environ)
    )
    analyst = Child(msgspec.json.encode(harmless))
    if serving and settings.insight:
        daemons["analyst"] = analyst.run
    auth = Auth(store, settings)
    feed = Feed(store, bus, time.time_ns)
    daemons["feed"] = feed.run
    house = House(settings, store, committer, publisher, dispatcher, auth, derived, analyst, feed)
    house.certificates = Certificates(house, tls)
    auth.shown = house.certificates.note
    auth.used = house.note_use
    daemons["certificates"] = house.certificates.run
    if tls is not None:
        tls.told = auth.serve
        auth.serve(tls.names)
        daemons["TLS files"] = tls.run
    house.measured.append(house.certificates)
    house.mcp = mcp = McpServer(house.command, house.clock)
    daemons["mcp"] = mcp.run
    assert isinstance(store, HookRows)
    house.hooks = Hooks(house, store)
    house.measured.append(house.hooks)
    house.draining.append(house.hooks)
    reaper = Reaper(house, dues(house), house.wall.believed)
    daemons["clock"] = reaper.run
    house.measured += [publisher, dispatcher, feed, reaper]
    if "analyst" in daemons:
        alarms = Alarms(house, derived)
        daemons["alarms"] = alarms.run
        house.measured.append(alarms)
    if line is not None:
        door = NatsDoor(house, line, identity)
        house.nats = door
        house.measured.append(door)
        house.draining.append(door)
        daemons |= {"nats": line.run, "nats notices": nats_bus.run, "nats door": door.run}
    committer.start()
    try:
        house.sealer = await open_log(house, bus, accept_rollback)
        house.federation = Federation(
            house, house.sealer, store, Outward(settings.egress_allow, authority=settings.egress_ca)
        )
        house.sealer.ask(house.federation)
        house.measured += [house.sealer, house.federation]
        assert isinstance(store, Leases)
        assert isinstance(store, Schedule)
        house.schedule = store
        house.scheduler = Scheduler(house, store, Leader(store, SCHEDULER_LEASE), house.wall)
        house.measured.append(house.scheduler)
        assert isinstance(store, WebhookRows)
        post = WebhookPost(house.federation.outward, store)
        slack, mail = Slack(house.federation.outward), Email(settings.smtp_url, settings.smtp_from)
        transports = {"webhook": post, "slack": slack, "email": mail}
        house.webhooks = Webhooks(house, store, transports, Leader(store, "webhooks"))
        house.measured.append(house.webhooks)
        house.draining.append(house.webhooks)
        certified = house.certificates.readings
        levels = Levels(store, derived, house.sealer.refused, house.started_ns, certified)
        house.alerts = Alerts(house, levels, Leader(store, "alerts"), believed=house.wall.believed)
        house.measured.append(house.alerts)
        house.exporter = Exporter(house, house.federation.outward, Leader(store, "export"), bus)
        house.measured.append(house.exporter)
        if serving:
            daemons["sealer"] = house.sealer.run
            daemons["federation"] = house.federation.run
            daemons["scheduler"] = house.scheduler.run
            daemons["scheduler lease"] = house.scheduler.leader.keep
            daemons["presence"] = presence(store, settings.port).keep
            daemons["webhooks"] = house.webhooks.run
            daemons["alerts"] = house.alerts.run
            daemons["exporter"] = house.exporter.run
        runner = Runner(daemons)
        house.measured.append(runner)
        async with runner:
            await furnish(house)
            await gatekeeper.sweep(house, Watch(store), house.clock())
            yield house
    finally:
        await committer.stop()
        await derived.stop()
        await store.stop()


def examine(settings: Settings) -> None:
    """What of the settings cannot be served, before anything is touched; `observatory doctor` asks it too."""
    open_line(settings)
    if settings.is_tls:
        Tls(settings)
    try:
        note.check_name(f"{settings.log_name or 'observatory.local'}/{HOME_TENANT}")
    except note.BadNote as error:
        raise StartupError(f"the setting log_name is not usable: {error}") from error
    Outward(settings.egress_allow, authority=settings.egress_ca)
    Email(settings.smtp_url, settings.smtp_from)


def open_line(settings: Settings) -> NatsLine | None:
    """To NATS, if a bus is named; it need not be there yet."""
    if not settings.bus:
        return None
    try:
        check_installed()
        to = address(settings.bus)
        if to.agent_class:
            raise BadAddress("a class of agents behind its prefix is for agents, not for a gateway")
        if settings.bus_ca:
            trusting(settings.bus_ca)
        return NatsLine(to, authority=settings.bus_ca)
    except BadAddress as error:
        raise StartupError(f"the bus is not usable: {error}; leave --bus out for one process") from error
    except NoNats as error:
        raise StartupError(str(error)) from error


async def house_id(store: Store) -> str:
    """By the home tenant's first event: the same for every gateway of the house, wherever it is moved."""
    assert isinstance(store, LogRows)
    while True:
        with suppress(StoreError):
            if first := await store.hashes(HOME_TENANT, 0, 0, 1):
                return first.hex()
        await asyncio.sleep(0.1)  # the house is being furnished, or its database is away


async def open_log(house: House, bus: Bus, accept_rollback: bool) -> Sealer:
    """The key is made with the house; a house that was signed and has none here is not signed anew."""
    settings, store = house.settings, house.store
    assert isinstance(store, LogRows)
    path = settings.log_key_path
    keyring = Keyring.open(path, settings.log_key_passphrase)
    if keyring is None and (accept_rollback or not await store.rows(HOME_TENANT, "log_keys")):
        keyring = Keyring.make(path, settings.log_key_passphrase)
    marks = Marks(path.with_name(f"{path.name}.signed"))
    marks.load()
    return Sealer(house, bus, store, keyring, marks, accept_rollback)


def dues(house: House) -> list[Due]:
    """What happens by the clock, beside the registry's own."""
    store = house.store
    return [
        Due("gates and pauses", 1.0, partial(gatekeeper.answer, house, Watch(store))),
        Due("lines left standing", 30.0, partial(gatekeeper.sweep, house, Watch(store))),
        Due("decisions", 1.0, partial(deadlines.due, store, house.committer, Watch(store))),
        Due("kill-switch stages", 0.5, partial(stager.stage, house, Watch(store))),
        Due("refusals", 5.0, partial(refusals.due, house, Watch(store))),
        Due("retention", EVERY_S, Keeper(house, Watch(store)).due),
        Due("webhooks in", 5.0, house.hooks.due),
    ]


def start(settings: Settings, accept_rollback: bool = False) -> None:
    """Serve until stopped, on uvloop: the event loop is half of what a message costs at the door."""
    uvloop.run(run(settings, accept_rollback))


async def run(settings: Settings, accept_rollback: bool = False) -> None:
    """Serve until stopped. The port is taken first: nothing is touched when it cannot be."""
    journal.begin(settings)
    asyncio.get_running_loop().set_exception_handler(journal.on_loop_failure)
    os.umask(0o077)  # whatever is written is the owner's alone: database, log, safety copies
    examine(settings)
    Keyring.open(settings.log_key_path, settings.log_key_passphrase)
    listener = server.bind(settings.host, settings.port)
    settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
    with owned(settings.folder):
        async with built(settings, True, accept_rollback) as house:
            operator = (await house.store.rows(HOME_TENANT, "users", name="operator"))[0]
            link = await make_login(house, house.principal_of_house(HOME_TENANT), operator["user_id"])
            kept = _keep_link(settings, link)
            await server.serve(house, listener, lambda: _welcome(house, link if kept is None else None))
            if kept is not None:
                kept.unlink(missing_ok=True)
            _cut_off()


def _cut_off() -> None:
    """Everybody was answered. What still hangs now, a name server or a disk, must not keep the process."""
    last = threading.Timer(CUT_S, os._exit, (1,))
    last.daemon = True
    last.start()


def _keep_link(settings: Settings, link: str) -> Path | None:
    """Where the link is, if it may not be printed: what is no terminal may be a log of many readers."""
    path = settings.folder / LINK_FILE
    if settings.print_login or sys.stdout.isatty():
        path.unlink(missing_ok=True)
        return None
    write_bytes_private(path, link.encode() + b"\n")
    return path


def _welcome(house: House, link: str | None) -> None:
    folder = house.settings.folder
    print(f"Hypervisor Observatory is ready at {house.url}", flush=True)
    if link is None:
        print(f"  sign in as operator (once): the link in {folder / LINK_FILE}", flush=True)
    else:
        print(f"  sign in as operator (once): {link}", flush=True)
    print(f"  sign in as admin:           observatory login --user admin --data {folder}", flush=True)
    print(f"  for agents:                 {folder / AGENT_FILE}", flush=True)
    print(f"  for people and scripts:     {folder / CREDENTIALS}", flush=True)

"""The composition root: the only file that names concrete adapters, and the order of starting and stopping.

A folder belongs to one process: a second one is refused. `features.access.data_folder` has the first start.
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
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec
import uvloop

from observatory.bus.memory import MemoryBus
from observatory.bus.nats import NatsBus
from observatory.bus.nats_link import NatsLink
from observatory.derived.ports import Derived
from observatory.derived.sqlite import derived_path_of
from observatory.errors import NotDurable, StartupError
from observatory.features import parts
from observatory.features.access.data_folder import (
    AGENT_FILE,
    CREDENTIALS,
    LINK_FILE,
    complete_first_start,
    refuse_broken,
    refuse_empty,
    write_bytes_private,
)
from observatory.features.access.routes_sign_ins import make_login
from observatory.features.relay import worker as gatekeeper
from observatory.features.transparency.queries import deployment_id
from observatory.features.webhooks.email import EmailTransport
from observatory.http import server
from observatory.http.app_state import AppState
from observatory.http.authentication import Auth
from observatory.ledger import note
from observatory.pipeline import policy, quotas
from observatory.pipeline.commit.committer import Committer
from observatory.pipeline.message_event import ServiceInfo
from observatory.pipeline.ports import Bus, Leases, Store, SupportsListen
from observatory.pipeline.quotas import Quotas
from observatory.pipeline.state import HOME_TENANT
from observatory.protocol.nats import InvalidNatsAddress, address
from observatory.protocol.nats_connection import NatsUnavailable, check_installed, ssl_context_for
from observatory.runtime import logging as journal
from observatory.runtime.child_process import AnalystProcess
from observatory.runtime.feed import LiveFeed
from observatory.runtime.leader import presence
from observatory.runtime.log_key import Keyring
from observatory.runtime.outbound_http import OutboundHttp
from observatory.runtime.publisher import Publisher
from observatory.runtime.runner import WorkerRunner
from observatory.runtime.tls import Tls
from observatory.runtime.worker_context import TenantWatch
from observatory.settings import Settings
from observatory.stages import WRITE_PATH
from observatory.store.migrations.migrate import is_empty, migrate_postgres, migrate_sqlite
from observatory.stores import postgres_derived, postgres_record, sqlite_derived, sqlite_record

CUT_S = 20.0  # after the listeners are closed
log = logging.getLogger("observatory")


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock the data folder for this process."""
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
    """The database URL with the password from the environment, which the analyst does not inherit."""
    password = environ.get("PGPASSWORD")
    if not password or not url.startswith(("postgres://", "postgresql://")) or urlsplit(url).password:
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode({'password': password})}"


async def open_store(settings: Settings) -> Store:
    """The store, migrated, checked and started."""
    store: Store
    refuse_broken(settings)
    if await is_empty(settings.database_url):
        refuse_empty(settings)
    if settings.is_postgres:
        await migrate_postgres(settings.database_url)
        store = postgres_record(settings.database_url)
    else:
        path = Path(settings.database_url.removeprefix("sqlite:///"))
        await asyncio.to_thread(migrate_sqlite, path)
        store = sqlite_record(path)
    await store.start()
    return store


async def open_derived(settings: Settings, store: Store) -> Derived:
    """Made if it is not there, so that endpoints can read; filled by the analyst."""
    derived: Derived
    if settings.is_postgres:
        derived = postgres_derived(store, settings.database_url)
    else:
        derived = sqlite_derived(derived_path_of(Path(settings.database_url.removeprefix("sqlite:///"))))
    try:
        await derived.start()
    except NotDurable as error:  # the record needs no derived store; the analyst retries
        log.warning("the derived store is not available yet: %s", error)
    return derived


@asynccontextmanager
async def running_gateway(
    settings: Settings, serving: bool = False, accept_rollback: bool = False
) -> AsyncIterator[AppState]:
    """A running gateway: store, pipeline, workers. Stops in the opposite order, losing nothing.

    Only one that serves HTTP has an analyst.
    """
    nats_line = open_line(settings) if serving else None
    policy.set_default_effect(settings.policy_default)
    quotas.set_quotas(Quotas(settings.refusals_in_full, settings.agent_decisions, settings.agent_reminders))
    tls = Tls(settings) if serving and settings.is_tls else None  # refused before anything is changed
    store = await open_store(settings)
    derived = await open_derived(settings, store)
    local = MemoryBus()
    bus: Bus = local
    if nats_line is not None:
        bus = NatsBus(nats_line, local, store.head, partial(deployment_id, store))
    committer = Committer(
        store,
        WRITE_PATH,
        ServiceInfo(settings.service_name, settings.service_version, settings.environment),
        bus.publish,
        max_messages=settings.queue_messages,
        max_bytes=settings.queue_bytes,
        batch_size=settings.commit_batch,
        max_wait_s=settings.queue_wait_s,
    )
    publisher = Publisher(store, bus, settings.live_backlog)
    # It signs nothing and sends nothing, so it need not know how.
    harmless = msgspec.structs.replace(
        settings, log_key_passphrase="", smtp_url="", bus="", db=with_password(settings.db, os.environ)
    )
    analyst = AnalystProcess(msgspec.json.encode(harmless))
    feed = LiveFeed(store, bus, time.time_ns)
    app = AppState(
        settings,
        store,
        committer,
        publisher,
        Auth(store, settings),
        derived,
        analyst,
        feed,
        bus=bus,
        outward=OutboundHttp(settings.egress_allow, authority=settings.egress_ca),
        features=tuple(part.FEATURE for part in parts("feature")),
        tls=tls,
        serving=serving,
        accept_rollback=accept_rollback,
    )
    app.auth.on_use = app.note_use
    app.workers |= {"publisher": publisher.run, "feed": feed.run}
    app.measured += [publisher, feed]
    if isinstance(store, SupportsListen):  # rows that other gateways commit on the same database
        app.workers["listener"] = partial(store.listen, local.publish)
    if serving and settings.insight:
        app.workers["analyst"] = analyst.run
    if tls is not None:
        tls.on_reload = app.auth.serve
        app.auth.serve(tls.names)
        app.workers["TLS files"] = tls.run
    committer.start()
    try:
        for feature in app.features:
            if feature.start is not None:
                await feature.start(app)
        if serving:
            app.workers["presence"] = presence(app.service(Leases), settings.port).keep
        runner = WorkerRunner(app.workers)
        app.measured.append(runner)
        async with runner:
            await complete_first_start(app)
            await gatekeeper.resume_releases(app, TenantWatch(store), app.clock())
            yield app
    finally:
        await committer.stop()
        await derived.stop()
        await store.stop()


def check_settings(settings: Settings) -> None:
    """Raise for settings that cannot work, before anything is changed; `observatory doctor` calls it too."""
    open_line(settings)
    if settings.is_tls:
        Tls(settings)
    try:
        note.check_name(f"{settings.log_name or 'observatory.local'}/{HOME_TENANT}")
    except note.BadNote as error:
        raise StartupError(f"the setting log_name is not usable: {error}") from error
    OutboundHttp(settings.egress_allow, authority=settings.egress_ca)
    EmailTransport(settings.smtp_url, settings.smtp_from)


def open_line(settings: Settings) -> NatsLink | None:
    """The NATS connection, if a bus is configured; the server need not be up yet."""
    if not settings.bus:
        return None
    try:
        check_installed()
        to = address(settings.bus)
        if to.agent_class:
            raise InvalidNatsAddress("an agent class after the prefix is for agents, not for a gateway")
        if settings.bus_ca:
            ssl_context_for(settings.bus_ca)
        return NatsLink(to, authority=settings.bus_ca)
    except InvalidNatsAddress as error:
        raise StartupError(f"the bus is not usable: {error}; leave --bus out for one process") from error
    except NatsUnavailable as error:
        raise StartupError(str(error)) from error


def start(settings: Settings, accept_rollback: bool = False) -> None:
    """Serve until stopped, on uvloop: the event loop is half of what a message costs over HTTP."""
    uvloop.run(run(settings, accept_rollback))


async def run(settings: Settings, accept_rollback: bool = False) -> None:
    """Serve until stopped. The port is bound first: nothing is changed when that fails."""
    journal.configure_logging(settings)
    asyncio.get_running_loop().set_exception_handler(journal.on_loop_failure)
    os.umask(0o077)  # files are for their owner only: database, log, safety copies
    check_settings(settings)
    Keyring.open(settings.log_key_path, settings.log_key_passphrase)
    listener = server.bind(settings.host, settings.port)
    settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
    with locked_folder(settings.folder):
        async with running_gateway(settings, True, accept_rollback) as app:
            operator = (await app.store.rows(HOME_TENANT, "users", name="operator"))[0]
            link = await make_login(app, app.gateway_principal(HOME_TENANT), operator["user_id"])
            link_path = _keep_link(settings, link)
            await server.serve(app, listener, lambda: _welcome(app, link if link_path is None else None))
            if link_path is not None:
                link_path.unlink(missing_ok=True)
            _cut_off()


def _cut_off() -> None:
    """Every client was answered. What still hangs now, a name server or a disk, must not keep the process."""
    last = threading.Timer(CUT_S, os._exit, (1,))
    last.daemon = True
    last.start()


def _keep_link(settings: Settings, link: str) -> Path | None:
    """The file of the link, if it may not be printed: stdout that is no terminal may be a shared log."""
    path = settings.folder / LINK_FILE
    if settings.print_login or sys.stdout.isatty():
        path.unlink(missing_ok=True)
        return None
    write_bytes_private(path, link.encode() + b"\n")
    return path


def _welcome(app: AppState, link: str | None) -> None:
    folder = app.settings.folder
    print(f"Hypervisor Observatory is ready at {app.url}", flush=True)
    if link is None:
        print(f"  sign in as operator (once): the link in {folder / LINK_FILE}", flush=True)
    else:
        print(f"  sign in as operator (once): {link}", flush=True)
    print(f"  sign in as admin:           observatory login --user admin --data {folder}", flush=True)
    print(f"  for agents:                 {folder / AGENT_FILE}", flush=True)
    print(f"  for people and scripts:     {folder / CREDENTIALS}", flush=True)

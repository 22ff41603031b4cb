"""What transparency registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.features.transparency.queries_health import unsigned
from observatory.features.transparency.routes import proof_log
from observatory.features.transparency.routes_peers import peers_router
from observatory.features.transparency.routes_witness import witness_router
from observatory.features.transparency.types import LOG_ANSWERS, LOG_PLAIN
from observatory.features.transparency.types_log import LogRows
from observatory.features.transparency.types_peers import (
    PEER_ANSWERS,
    PEER_PLAIN,
    PLAIN_BODY_OPERATIONS,
    WITNESS_OPERATIONS,
)
from observatory.features.transparency.worker import Sealer
from observatory.features.transparency.worker_federation import Federation
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.pipeline.state import HOME_TENANT
from observatory.runtime.log_key import Keyring, LogMarks


async def open_log(app: AppState) -> Sealer:
    """The key is made with the deployment; one that was signed before and has no key here gets no new one."""
    settings, store = app.settings, app.store
    assert isinstance(store, LogRows)
    path = settings.log_key_path
    keyring = Keyring.open(path, settings.log_key_passphrase)
    if keyring is None and (app.accept_rollback or not await store.rows(HOME_TENANT, "log_keys")):
        keyring = Keyring.make(path, settings.log_key_passphrase)
    marks = LogMarks(path.with_name(f"{path.name}.signed"))
    marks.load()
    return Sealer(app, app.bus, store, keyring, marks, app.accept_rollback)


def warning(app: AppState) -> str | None:
    return unsigned(app) if app.service(Sealer).refused else None


async def start(app: AppState) -> None:
    sealer = app.add(await open_log(app))
    federation = app.add(Federation(app, sealer, app.store, app.outward))
    sealer.ask(federation)
    app.measured += [sealer, federation]
    app.warnings.append(partial(warning, app))
    if app.serving:
        app.workers |= {"sealer": sealer.run, "federation": federation.run}


FEATURE = Feature(
    content_types=LOG_PLAIN | PEER_PLAIN,
    witness_operations=WITNESS_OPERATIONS,
    note_operations=PLAIN_BODY_OPERATIONS,
    start=start,
    routes=(
        proof_log,
        peers_router,
        witness_router,
    ),
    answers=LOG_ANSWERS | PEER_ANSWERS,
)

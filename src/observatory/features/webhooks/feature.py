"""What webhooks registers with the gateway."""

from __future__ import annotations

from observatory.features.webhooks.email import EmailTransport
from observatory.features.webhooks.post import WebhookTransport
from observatory.features.webhooks.routes import webhooks_router
from observatory.features.webhooks.routes_log import webhook_log_router
from observatory.features.webhooks.slack import SlackTransport
from observatory.features.webhooks.types import WEBHOOK_ANSWERS
from observatory.features.webhooks.types_rows import WebhookRows
from observatory.features.webhooks.worker import Transport, WebhookWorker
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.pipeline.ports import Leases
from observatory.runtime.leader import Leader


async def start(app: AppState) -> None:
    store, settings = app.store, app.settings
    assert isinstance(store, WebhookRows)
    transports: dict[str, Transport] = {
        "webhook": WebhookTransport(app.outward, store),
        "slack": SlackTransport(app.outward),
        "email": EmailTransport(settings.smtp_url, settings.smtp_from),
    }
    leader = Leader(app.service(Leases), "webhooks")
    webhooks = app.add(WebhookWorker(app, store, transports, leader))
    app.measured.append(webhooks)
    app.draining.append(webhooks)
    if app.serving:
        app.workers["webhooks"] = webhooks.run


FEATURE = Feature(
    start=start,
    routes=(
        webhook_log_router,
        webhooks_router,
    ),
    answers=WEBHOOK_ANSWERS,
)

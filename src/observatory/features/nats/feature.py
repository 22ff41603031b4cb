"""What nats registers with the gateway."""

from __future__ import annotations

from functools import partial

from observatory.bus.nats import NatsBus
from observatory.features.nats.requests import NatsRequests
from observatory.features.transparency.queries import deployment_id
from observatory.http.app_state import AppState
from observatory.http.feature import Feature


async def start(app: AppState) -> None:
    if not isinstance(app.bus, NatsBus):
        return
    bus = app.bus
    requests = NatsRequests(app, bus.line, partial(deployment_id, app.store))
    app.bus_health = requests.health
    app.on_serve.append(requests.open)
    app.measured.append(requests)
    app.draining.append(requests)
    app.workers |= {"nats": bus.line.run, "nats notices": bus.run, "nats requests": requests.run}


FEATURE = Feature(
    start=start,
)

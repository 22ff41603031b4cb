"""What otlp registers with the gateway."""

from __future__ import annotations

from typing import Any

from observatory.features.otlp.counters import OTLP_ANSWERS, OtlpCounters, operation_of
from observatory.features.otlp.grpc_server import served
from observatory.features.otlp.routes import PATHS, OtlpIngest
from observatory.features.otlp.routes_status import otlp_router
from observatory.http.app_state import AppState
from observatory.http.feature import Endpoints, Feature, HttpEndpoint
from observatory.http.ingest import Ingest


def endpoints(app: AppState, _: Any, ingest: Ingest) -> Endpoints:
    otlp, settings = OtlpIngest(app, ingest), app.settings
    grpc = served(otlp, settings.otlp_grpc, settings.request_bytes, app.tls, settings.reading_bytes)
    return Endpoints(
        http=[HttpEndpoint(path=path, method="POST", call=otlp.post) for path in PATHS], listeners=[grpc]
    )


async def start(app: AppState) -> None:
    app.add(OtlpCounters())


FEATURE = Feature(
    endpoints=endpoints,
    operations={path: operation_of(signal) for path, signal in PATHS.items()},
    start=start,
    routes=(otlp_router,),
    answers=OTLP_ANSWERS,
)

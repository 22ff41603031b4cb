"""What exporters registers with the gateway."""

from __future__ import annotations

from observatory.features.exporters.routes import exporters_router
from observatory.features.exporters.types import EXPORTER_ANSWERS
from observatory.features.exporters.worker import ExportWorker
from observatory.http.app_state import AppState
from observatory.http.feature import Feature
from observatory.pipeline.ports import Leases
from observatory.runtime.leader import Leader


async def start(app: AppState) -> None:
    exporter = app.add(ExportWorker(app, app.outward, Leader(app.service(Leases), "export"), app.bus))
    app.measured.append(exporter)
    if app.serving:
        app.workers["exporter"] = exporter.run


FEATURE = Feature(start=start, routes=(exporters_router,), answers=EXPORTER_ANSWERS)

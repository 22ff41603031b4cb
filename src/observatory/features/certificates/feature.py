"""What certificates registers with the gateway."""

from __future__ import annotations

from observatory.features.alerting.types_readings import LevelReading
from observatory.features.certificates.routes import CERTIFICATE_ANSWERS, certificates_router
from observatory.features.certificates.worker import CertificateWorker
from observatory.http.app_state import AppState
from observatory.http.feature import Feature


async def start(app: AppState) -> None:
    certificates = app.add(CertificateWorker(app, app.tls))
    app.auth.on_certificate = certificates.note
    app.services[LevelReading] = certificates.readings  # alert rules watch when certificates expire
    app.workers["certificates"] = certificates.run
    app.measured.append(certificates)


FEATURE = Feature(start=start, routes=(certificates_router,), answers=CERTIFICATE_ANSWERS)

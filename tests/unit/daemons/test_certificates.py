"""Certificates at work: what is noted, and what the metric says of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from observatory.features.certificates import worker as certificates
from observatory.features.certificates.worker import CertificateWorker
from observatory.pipeline.state import Principal
from observatory.protocol.certificates import Certificate


class Home:
    @staticmethod
    def clock() -> int:
        return time.time_ns()


def shown(name: str, seconds: float) -> Principal:
    facts = Certificate(
        fingerprint=name,
        subject=f"CN={name}",
        issuer="CN=authority",
        serial="1",
        names=(),
        not_before_ns=0,
        not_after_ns=time.time_ns() + int(seconds * 1e9),
    )
    return Principal(tenant_id="tnt_default", role="agent", key_id="key_1", certificate=facts)


def test_one_that_was_rotated_out_is_no_figure_of_the_metric_s868(monkeypatch: pytest.MonkeyPatch) -> None:
    home: Any = Home()
    noted = CertificateWorker(home, None)

    def left() -> list[float]:
        return [one.value for one in noted.measures() if one.name == "observatory_certificate_seconds_left"]

    assert left() == []
    noted.note(shown("old", -10))
    assert left()[0] < 0
    monkeypatch.setattr(certificates, "SEEN_S", -1.0)  # as if the hour were over
    assert left() == []
    monkeypatch.undo()
    noted.note(shown("new", 1_000))
    assert left()[0] < 0, "both were seen within the hour"

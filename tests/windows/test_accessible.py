"""Every view as axe sees it, over a live mesh: in the dark, in the light and on a phone."""

from __future__ import annotations

import pytest

from tests.flows.server import Server
from tests.windows.conftest import Open
from tests.windows.looking import VIEWS


@pytest.mark.parametrize("look", ["dark", "light", "phone"])
def test_axe_finds_nothing_serious(atlas: Server, opened: Open, look: str) -> None:
    window = opened(atlas, None, light=look == "light", phone=look == "phone")
    for path in (*VIEWS.values(), "/inbox", "/compare"):
        window.go(path).settled().shot(f"{path.strip('/')}-{look}")
        window.is_accessible()

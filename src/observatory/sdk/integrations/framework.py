"""Checks that a framework is installed and has every hook its adapter needs (`need`).

Rule: checked when the adapter is imported, before any hook is set: with a hook that is never called, an agent
would appear to be controlled but would not be.
"""

import importlib
from importlib import metadata

from observatory.sdk.errors import NotSupported


def need(package: str, requirement: str, *hooks: str) -> None:
    """Refuse with `NotSupported` unless every hook (`module:name.of.attribute`) exists. `requirement` is what
    to install, such as `langchain>=1.4`."""
    for hook in hooks:
        module, _, path = hook.partition(":")
        try:
            target: object = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if not _is_installed(package):
                raise NotSupported(
                    f"{package} is not installed: this adapter needs it. Run: pip install '{requirement}'"
                ) from missing
            raise _changed(package, requirement, hook) from missing
        for name in path.split(".") if path else ():
            if not hasattr(target, name):
                raise _changed(package, requirement, hook)
            target = getattr(target, name)


def _changed(package: str, requirement: str, hook: str) -> NotSupported:
    return NotSupported(
        f"{package} {_version(package)} has no {hook.replace(':', '.')}, which this adapter needs to observe "
        f"and control the agent; no hook was set. It is tested with '{requirement}': install that, or a "
        "newer hypervisor-observatory"
    )


def _is_installed(package: str) -> bool:
    return _version(package) != "?"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"

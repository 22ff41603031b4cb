"""Whether the framework an adapter was written for is there, with every hook the adapter needs.

Law: looked at when the adapter is imported, before anything is hooked: a hook that is not called would be an
agent that looks obedient and is not.
"""

import importlib
from importlib import metadata

from observatory.sdk.errors import NotSupported


def need(package: str, wanted: str, *hooks: str) -> None:
    """Refuse with `NotSupported` unless every hook (`module:name.of.attribute`) is there. `wanted` is what
    to install, such as `langchain>=1.4`."""
    for hook in hooks:
        module, _, path = hook.partition(":")
        try:
            found: object = importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if not _is_installed(package):
                raise NotSupported(
                    f"{package} is not installed: this adapter needs it. Do: pip install '{wanted}'"
                ) from missing
            raise _changed(package, wanted, hook) from missing
        for name in path.split(".") if path else ():
            if not hasattr(found, name):
                raise _changed(package, wanted, hook)
            found = getattr(found, name)


def _changed(package: str, wanted: str, hook: str) -> NotSupported:
    return NotSupported(
        f"{package} {_version(package)} has no {hook.replace(':', '.')}, which this adapter needs to see and "
        f"hold what the agent does; nothing was hooked. It is tested with '{wanted}': install that, or a "
        "newer hypervisor-observatory"
    )


def _is_installed(package: str) -> bool:
    return _version(package) != "?"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"

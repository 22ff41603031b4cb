"""Hypervisor Observatory: a control plane for meshes of AI agents.

`from observatory import Agent` is all an agent needs. The names are resolved on first use, so that
importing the package (as the ledger's verifier does) loads neither the HTTP client nor the SDK.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from observatory.sdk import Agent, AsyncAgent

__all__ = ["Agent", "AsyncAgent"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from observatory import sdk

        return getattr(sdk, name)
    raise AttributeError(f"module 'observatory' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""One approval, one run.

Where a model calls tools by text, CrewAI tries one that failed again, up to six times behind a single hook: a
payment that failed after it had paid would be paid six times over.

Law: what a person approved runs once; tried again it fails as it failed, without being run. What nobody had
to approve is CrewAI's to repeat.
"""

from collections.abc import Callable
from typing import Any

WORDS_OF_A_PERSON = ("approved", "edited")


class Once:
    """The one run of a tool that was approved."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool
        self._has_run = False
        self._failed: Exception | None = None

    def begin(self) -> None:
        if self._has_run:
            raise self._failed or RuntimeError("it was run already, and one run was approved")
        self._has_run = True

    def fail(self, error: Exception) -> None:
        self._failed = error


def guard(tool: Any, once_of: Callable[[Any], Once | None]) -> None:
    """Make CrewAI's calls of this tool count; `once_of` says in which approved one they are, if in any."""
    unguard(tool)
    plain, awaited = getattr(tool, "invoke", None), getattr(tool, "ainvoke", None)
    if not callable(plain) or not callable(awaited):
        return

    def invoke(*args: Any, **given: Any) -> Any:
        once = once_of(tool)
        if once is None:
            return plain(*args, **given)
        once.begin()
        try:
            return plain(*args, **given)
        except Exception as failed:
            once.fail(failed)
            raise

    async def ainvoke(*args: Any, **given: Any) -> Any:
        once = once_of(tool)
        if once is None:
            return await awaited(*args, **given)
        once.begin()
        try:
            return await awaited(*args, **given)
        except Exception as failed:
            once.fail(failed)
            raise

    object.__setattr__(tool, "invoke", invoke)
    object.__setattr__(tool, "ainvoke", ainvoke)


def unguard(tool: Any) -> None:
    for name in ("invoke", "ainvoke"):
        getattr(tool, "__dict__", {}).pop(name, None)

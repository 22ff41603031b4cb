"""`SingleRun`: an approved tool call runs once.

Where a model calls tools by text, CrewAI retries a failed tool up to six times within a single hook: a
payment that failed after paying would be paid six times.

Rule: what a person approved runs once; a retry raises the same error without running it. CrewAI may repeat
calls that needed no approval.
"""

from collections.abc import Callable
from typing import Any

PERSON_VERDICTS = ("approved", "edited")


class SingleRun:
    """The one run of a tool that was approved."""

    def __init__(self, tool: Any) -> None:
        self.tool = tool
        self._has_run = False
        self._failed: Exception | None = None

    def begin(self) -> None:
        if self._has_run:
            raise self._failed or RuntimeError("it ran already, and only one run was approved")
        self._has_run = True

    def fail(self, error: Exception) -> None:
        self._failed = error


def guard(tool: Any, once_of: Callable[[Any], SingleRun | None]) -> None:
    """Wrap the tool so that approved calls run once; `once_of` returns the approved call, if any."""
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

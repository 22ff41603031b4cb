"""Closes outboxes when the process ends and resets them when it forks.

Rule: at exit every outbox is closed (sent or spooled); after `os.fork` the child has its own sender, queue
and spool and does not touch those of its parent. Threads do not survive a fork; locks do, possibly held, so
the child replaces them.
"""

import atexit
import os
import sys
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from observatory.sdk.outbox import Outbox

_open: "WeakSet[Outbox]" = WeakSet()


def register(outbox: "Outbox") -> None:
    _open.add(outbox)


def close_with_process(outbox: "Outbox") -> None:
    """`multiprocessing` forked children end with `os._exit`, which skips `atexit`: use its own hook."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, outbox.close, exitpriority=100)


def _close_all() -> None:
    for outbox in list(_open):
        outbox.close()


def _after_fork() -> None:
    for outbox in list(_open):
        outbox.reset_after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

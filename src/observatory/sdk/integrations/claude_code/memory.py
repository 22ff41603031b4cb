"""State shared by the hook processes of one session: tips, open tools, delivered prompts, unknown members.

Rule: every hook is a separate process and several run at once, so the state is read, changed and written
under one lock of the session's folder and replaced as a whole: a killed hook leaves the state before or after
its change. The lock is never held while waiting for the gateway or a person. Orders belong to one agent
across sessions and are stored next to the session folders. Unreadable state starts empty; if nothing can be
stored (a full disk) a hook uses what it receives itself, because a gate must still hold.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from observatory.sdk.orders import Orders, OrderState
from observatory.sdk.spool import file_stem

try:
    import fcntl
except ImportError:  # not POSIX: hooks that run at once may overwrite each other's tips
    fcntl = None  # type: ignore[assignment]

MAX_KEPT = 500  # claims, delivered prompts and the like: more than any session has open
MAX_UNKNOWN = 50
CLAIMED_S = 30.0  # a hook installed twice starts twice at once; a later start is a new event
KEPT_DAYS = 14
LOCKED_S = 3.0  # the lock is held for milliseconds; a longer holder was suspended
RETRY_S = 0.002
T = TypeVar("T")


class OpenTool(msgspec.Struct):
    """A tool call that is allowed or waits for permission and has not ended."""

    step_id: str
    name: str
    subs: list[str] = []
    """Sub-agents it started: its result follows from theirs."""
    is_unjudged: bool = False
    """It was allowed because the gateway was unreachable."""


class Thread(msgspec.Struct):
    """The branch of the session, or of one of its sub-agents."""

    tips: list[str] = []
    open: dict[str, OpenTool] = {}
    ends: list[str] = []
    """Results of tools that ran in parallel with open ones: together they are the next step's parents."""

    def begin(self, tool_use_id: str, tool: OpenTool) -> list[str]:
        """Parallel tools have the same parents."""
        self.open[tool_use_id] = tool
        return self.tips

    def end(self, tool_use_id: str, step_id: str | None) -> None:
        """It ended with this step; without a step it was never allowed and has no children."""
        self.open.pop(tool_use_id, None)
        if step_id is not None:
            self.ends.append(step_id)
        if not self.open:
            self.close()

    def close(self) -> None:
        """End the parallel group; tools whose end was never reported are discarded."""
        self.tips, self.ends, self.open = self.ends or self.tips, [], {}

    def move(self, step_id: str) -> list[str]:
        """Add one step after all ended ones; returns its parents."""
        parents = list(dict.fromkeys([*self.tips, *self.ends]))
        self.tips, self.ends = [step_id], []
        return parents


class HookSession(msgspec.Struct):
    agent_id: str = ""
    lines: dict[str, Thread] = {}
    claims: dict[str, float] = {}
    """Started hooks with start times: a hook installed twice counts once."""
    given: list[str] = []
    """Deliveries shown to the model."""
    waiting: list[str] = []
    """Steps whose verdict a hook is waiting for."""
    given_up: list[str] = []
    """Steps whose verdict no hook waits for any more."""
    instructed: str | None = None
    model: str | None = None
    read: dict[str, int] = {}
    """How far each transcript was read."""
    counted: list[str] = []
    """Model answers whose tokens were recorded."""
    unknown: dict[str, int] = {}

    def line(self, key: str) -> Thread:
        return self.lines.setdefault(key, Thread())

    def claim(self, what: str) -> bool:
        now = time.time()
        if abs(now - self.claims.get(what, 0.0)) < CLAIMED_S:
            return False
        self.claims.pop(what, None)
        self.claims[what] = now  # the newest last
        while len(self.claims) > MAX_KEPT:
            del self.claims[next(iter(self.claims))]
        return True

    def count(self, what: str) -> None:
        if what in self.unknown or len(self.unknown) < MAX_UNKNOWN:
            self.unknown[what] = self.unknown.get(what, 0) + 1


class HookStateStore:
    """State of one session, in its own folder."""

    def __init__(self, data: Path, session_id: str) -> None:
        self._root = data / "claude-code"
        self.folder = self._root / f"session-{file_stem(session_id)}"  # never a path the caller controls
        self._unsaved: HookSession | None = None
        self._are_orders_unsaved = False

    @contextlib.contextmanager
    def session(self) -> Iterator[HookSession]:
        """The session's state, locked for the block; saved unless the block raises."""
        with _locked(self.folder / "lock"):
            state = self._unsaved or _read(self.folder / "state.json", HookSession)
            yield state
            self._unsaved = None if _write(self.folder / "state.json", state) else state

    @contextlib.contextmanager
    def orders(self, orders: Orders) -> Iterator[None]:
        """`orders` loaded with the state shared by all hooks of this agent; changes are saved for all."""
        path = self._root / f"orders-{file_stem(orders.name)}.json"
        with _locked(path.with_suffix(".lock")):
            before = _read(path, OrderState)
            if not self._are_orders_unsaved:
                orders.restore(before)
            yield
            after = orders.order_state()
            self._are_orders_unsaved = after != before and not _write(path, after)

    @contextlib.contextmanager
    def giving(self) -> Iterator[None]:
        """Lock: one hook at a time delivers prompts to the model."""
        with _locked(self.folder / "giving.lock"):
            yield

    def sweep(self) -> None:
        """Forget sessions that ended long ago."""
        before = time.time() - KEPT_DAYS * 86_400
        with contextlib.suppress(OSError):
            for folder in self._root.iterdir():
                if folder.is_dir() and folder != self.folder and folder.stat().st_mtime < before:
                    for path in folder.iterdir():
                        path.unlink(missing_ok=True)
                    folder.rmdir()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Exclusive access; without lock support, or when a holder hangs, access is shared."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        _lock(fd, time.monotonic() + LOCKED_S)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, until: float) -> None:
    while fcntl is not None:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return
            time.sleep(RETRY_S)
        except OSError:  # a file system without locks
            return


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, msgspec.MsgspecError):
        empty: Any = kind()
        if isinstance(empty, HookSession):
            empty.count("state that could not be read")
        return empty  # type: ignore[no-any-return]


def _write(path: Path, value: object) -> bool:
    """Write atomically; False when the disk refuses it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(msgspec.json.encode(value))
        os.replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    return True

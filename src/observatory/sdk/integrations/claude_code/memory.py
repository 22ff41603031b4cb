"""What one session's hooks leave for each other: tips, open tools, prompts given, what was not understood.

Law: every hook is a process of its own and several run at once, so all of it is read, changed and written
under one lock of the session's folder, and replaced as a whole: a hook killed half way leaves the state as it
was before or after it. Nobody holds that lock while it waits for a gateway or a person. Orders are one
agent's, whatever its session, and lie beside the sessions' folders. What cannot be read is begun anew; where
nothing can be kept (a full disk) a hook goes by what it hears itself, for a gate must hold all the same.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from observatory.sdk.orders import Orders, Standing
from observatory.sdk.spool import file_stem

try:
    import fcntl
except ImportError:  # not POSIX: hooks that run at once may overwrite each other's tips
    fcntl = None  # type: ignore[assignment]

MOST_KEPT = 500  # claims, prompts given and the like: more than any session has open
MOST_UNKNOWN = 50
CLAIMED_S = 30.0  # one hook, installed twice, is started twice at once; later it is asked for anew
KEPT_DAYS = 14
LOCKED_S = 3.0  # for a lock that is held for milliseconds; who holds it longer was stopped amid
AGAIN_S = 0.002
T = TypeVar("T")


class Tool(msgspec.Struct):
    """A tool call that was allowed, or is being asked for, and has not ended."""

    step_id: str
    name: str
    subs: list[str] = []
    """Sub-agents it started: its outcome comes of theirs."""
    is_unjudged: bool = False
    """It was allowed because the gateway was away."""


class Thread(msgspec.Struct):
    """The line of thought of the session, or of one of its sub-agents."""

    tips: list[str] = []
    open: dict[str, Tool] = {}
    ends: list[str] = []
    """Outcomes of tools that ran beside those still open: together they are the next step's parents."""

    def begin(self, tool_use_id: str, tool: Tool) -> list[str]:
        """Tools that run at once have the same parents."""
        self.open[tool_use_id] = tool
        return self.tips

    def end(self, tool_use_id: str, step_id: str | None) -> None:
        """It ended with this step, or was never allowed: then nothing hangs on it."""
        self.open.pop(tool_use_id, None)
        if step_id is not None:
            self.ends.append(step_id)
        if not self.open:
            self.close()

    def close(self) -> None:
        """All that ran at once is over; of what never told its end, nobody waits any more."""
        self.tips, self.ends, self.open = self.ends or self.tips, [], {}

    def move(self, step_id: str) -> list[str]:
        """One step after all there was; gives its parents."""
        parents = list(dict.fromkeys([*self.tips, *self.ends]))
        self.tips, self.ends = [step_id], []
        return parents


class Session(msgspec.Struct):
    agent_id: str = ""
    lines: dict[str, Thread] = {}
    claims: dict[str, float] = {}
    """Hooks that were begun, and when: the same one, installed twice, counts once."""
    given: list[str] = []
    """Deliveries the model was shown."""
    waiting: list[str] = []
    """Steps whose verdict a hook waits for now."""
    given_up: list[str] = []
    """Steps whose verdict nobody waits for any more."""
    instructed: str | None = None
    model: str | None = None
    read: dict[str, int] = {}
    """How far each transcript was read."""
    counted: list[str] = []
    """Model answers whose tokens were told."""
    unknown: dict[str, int] = {}

    def line(self, key: str) -> Thread:
        return self.lines.setdefault(key, Thread())

    def claim(self, what: str) -> bool:
        now = time.time()
        if abs(now - self.claims.get(what, 0.0)) < CLAIMED_S:
            return False
        self.claims.pop(what, None)
        self.claims[what] = now  # the newest last
        while len(self.claims) > MOST_KEPT:
            del self.claims[next(iter(self.claims))]
        return True

    def count(self, what: str) -> None:
        if what in self.unknown or len(self.unknown) < MOST_UNKNOWN:
            self.unknown[what] = self.unknown.get(what, 0) + 1


class Memory:
    """The folder of one session."""

    def __init__(self, data: Path, session_id: str) -> None:
        self._home = data / "claude-code"
        self.folder = self._home / f"session-{file_stem(session_id)}"  # never a path of its own choosing
        self._unkept: Session | None = None
        self._are_orders_unkept = False

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """The session's state, ours until the block is left; kept unless it raises."""
        with _locked(self.folder / "lock"):
            state = self._unkept or _read(self.folder / "state.json", Session)
            yield state
            self._unkept = None if _write(self.folder / "state.json", state) else state

    @contextlib.contextmanager
    def orders(self, orders: Orders) -> Iterator[None]:
        """`orders` as all hooks of this agent know them; what the block changes, all know."""
        path = self._home / f"orders-{file_stem(orders.name)}.json"
        with _locked(path.with_suffix(".lock")):
            before = _read(path, Standing)
            if not self._are_orders_unkept:
                orders.go_on_from(before)
            yield
            after = orders.standing()
            self._are_orders_unkept = after != before and not _write(path, after)

    @contextlib.contextmanager
    def giving(self) -> Iterator[None]:
        """One hook at a time shows the model what people said."""
        with _locked(self.folder / "giving.lock"):
            yield

    def sweep(self) -> None:
        """Forget sessions that ended long ago."""
        before = time.time() - KEPT_DAYS * 86_400
        with contextlib.suppress(OSError):
            for folder in self._home.iterdir():
                if folder.is_dir() and folder != self.folder and folder.stat().st_mtime < before:
                    for path in folder.iterdir():
                        path.unlink(missing_ok=True)
                    folder.rmdir()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else is in such a block; where there is no lock, or nobody lets it go, others may be."""
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
            time.sleep(AGAIN_S)
        except OSError:  # a file system without locks
            return


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, msgspec.MsgspecError):
        made: Any = kind()
        if isinstance(made, Session):
            made.count("state that could not be read")
        return made  # type: ignore[no-any-return]


def _write(path: Path, value: object) -> bool:
    """Whole, or not at all: False when the disk does not take it."""
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

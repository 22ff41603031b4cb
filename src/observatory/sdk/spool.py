"""Messages on disk while the gateway is away: one append-only file of JSON lines for each process.

Law: a line is in the file before it leaves memory; lines leave the file in the order they came; a spool
is sent by one process at a time (an `flock` on the file, which dies with its process), and only to the
gateway it was meant for. `<name>.state` beside it holds that gateway's URL and how many bytes were
sent; if it lags behind after a crash, lines are sent twice, which the gateway answers as once.
"""

import hashlib
import logging
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

try:
    import fcntl
except ImportError:  # not POSIX: no lock, so leftovers are not adopted
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("observatory.sdk")


class _State(msgspec.Struct):
    url: str
    created_ns: int
    sent: int = 0


def file_stem(name: str) -> str:
    """A safe file name for an agent's name; two names never share one."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]
    return safe if safe == name else f"{safe}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class Spool:
    """One file. Not thread-safe: the outbox calls it under its lock, but for `sync`."""

    def __init__(self, path: Path, fd: int, state: _State, max_bytes: int) -> None:
        self.path = path
        self._fd = fd
        self._state = state
        self._max_bytes = max_bytes
        self._size = os.fstat(fd).st_size
        if state.sent > self._size:
            state.sent = 0

    @classmethod
    def create(cls, folder: Path, name: str, url: str, max_bytes: int) -> "Spool":
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stem, n = f"{file_stem(name)}-{os.getpid()}", 0
        while True:  # a second agent of this name in this process, or a leftover of an equal pid
            path = folder / (f"{stem}.jsonl" if n == 0 else f"{stem}.{n}.jsonl")
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
                break
            except FileExistsError:
                n += 1
        if fcntl is not None:  # waits: one who looks for leftovers may hold it for a moment, then lets go
            fcntl.flock(fd, fcntl.LOCK_EX)
        spool = cls(path, fd, _State(url, time.time_ns()), max_bytes)
        spool._keep_state()
        return spool

    @classmethod
    def adopt(cls, folder: Path, name: str, url: str, max_bytes: int) -> list["Spool"]:
        """Spools that dead processes of this name left for this gateway, oldest first."""
        pattern = re.compile(re.escape(file_stem(name)) + r"-\d+(\.\d+)?\.jsonl")
        found = [path for path in folder.glob("*.jsonl") if pattern.fullmatch(path.name)] if fcntl else []
        spools = [spool for path in found if (spool := cls._adopt_one(path, url, max_bytes))]
        return sorted(spools, key=lambda spool: spool._state.created_ns)

    @classmethod
    def _adopt_one(cls, path: Path, url: str, max_bytes: int) -> "Spool | None":
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError:
            return None
        try:
            # Whoever held the lock may have drained and removed the file while we opened it.
            if _lock(fd) and os.path.samestat(os.fstat(fd), os.stat(path)):
                state = msgspec.json.decode(_state_path(path).read_bytes(), type=_State)
                if state.url == url:
                    return cls(path, fd, state, max_bytes)
                log.info("%s is kept: it is meant for %s", path, state.url)
        except FileNotFoundError:
            log.debug("%s is being made or removed by another", path)
        except (OSError, msgspec.MsgspecError) as exc:
            log.warning("%s is left as it is: its state cannot be read (%s)", path, type(exc).__name__)
        os.close(fd)
        return None

    @property
    def pending(self) -> int:
        """Bytes not yet sent."""
        return self._size - self._state.sent

    def fits(self, lines: Sequence[bytes]) -> int:
        """How many of these lines there is room for."""
        room, n = self._max_bytes - self._size, 0
        for line in lines:
            room -= len(line) + 1
            if room < 0:
                break
            n += 1
        return n

    def append(self, lines: Sequence[bytes]) -> None:
        """All lines or, with `OSError`, none. Durable after `sync`."""
        data = b"".join(line + b"\n" for line in lines)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def sync(self) -> None:
        os.fsync(self._fd)

    def peek(self, max_lines: int, max_bytes: int) -> list[bytes]:
        """The oldest unsent lines; at least one, however long it is."""
        want = min(self.pending, max_bytes)
        while True:
            data = os.pread(self._fd, want, self._state.sent)
            end = data.rfind(b"\n")
            if end >= 0:
                return data[:end].split(b"\n", max_lines)[:max_lines]
            if want >= self.pending:  # a torn last line: the process died while writing it
                log.warning("%s ended in half a line, which is dropped", self.path)
                self.advance(want)
                return []
            want = min(self.pending, want * 4)

    def advance(self, size: int) -> None:
        """These bytes are settled. A drained file is emptied; state first, so a crash resends at worst."""
        self._state.sent += size
        drained = self.pending == 0
        if drained:
            self._state.sent = 0
        try:
            self._keep_state()
        except OSError as exc:  # a full disk: nothing is lost, a restart would only send again
            log.debug("%s: its state could not be kept (%s)", self.path, exc.strerror)
        if drained:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def release(self) -> None:
        """Give it up: removed when empty, else left for the next start. The lock goes with it."""
        if self.pending == 0:
            self.path.unlink(missing_ok=True)
            _state_path(self.path).unlink(missing_ok=True)
        if fcntl is not None:  # an fsync still running in another thread would keep it locked past the close
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)

    def forget(self) -> None:
        """In a forked child: the file is the parent's; only our copy of its descriptor is closed."""
        os.close(self._fd)

    def _keep_state(self) -> None:
        path = _state_path(self.path)
        fd = os.open(path.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(fd, msgspec.json.encode(self._state))
        finally:
            os.close(fd)
        os.replace(path.with_suffix(".new"), path)


def _state_path(path: Path) -> Path:
    return path.with_suffix(".state")


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

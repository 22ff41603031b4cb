"""Spool files: messages stored on disk while the gateway is unreachable, as append-only JSON lines.

There is one file for each outage of a process.

Rule: a line is in the file before it leaves memory; lines are sent in order; a spool is sent by one process
at a time (an `flock` on the file, released when the process dies), and only to the gateway it was written
for. The first line names that gateway, so one `sync` makes the whole file durable: there is no second file
that a power cut could remove. `<name>.sent` next to it holds how many bytes were sent; if it lags behind or
is missing after a crash, lines are sent twice, which the gateway counts once. A drained file is removed and
never reused: an old `.sent` could hide lines written after it.
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


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    created_ns: int


class _State(msgspec.Struct):
    """What older versions stored in a separate `.state` file instead of a first line."""

    url: str
    created_ns: int
    sent: int = 0


MAX_HEAD_BYTES = 4096


def file_stem(name: str) -> str:
    """A safe file name for an agent's name; two names never share one."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:80]
    return safe if safe == name else f"{safe}.{hashlib.sha256(name.encode()).hexdigest()[:8]}"


class Spool:
    """One spool file. Not thread-safe: the outbox calls it under its lock, except for `sync`."""

    def __init__(self, path: Path, fd: int, head: _Head, sent: int, max_bytes: int) -> None:
        self.path = path
        self._fd = fd
        self._head = head
        self._sent = sent
        self._max_bytes = max_bytes
        self._size = os.fstat(fd).st_size
        self._unsynced_folders: list[Path] = []

    @classmethod
    def create(cls, folder: Path, name: str, url: str, max_bytes: int) -> "Spool":
        """A new file, or `OSError` with nothing left behind. It is durable after its first `sync`."""
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path, fd = _opened(folder, file_stem(name))
        head = _Head(url, time.time_ns())
        try:
            _write(fd, msgspec.json.encode(head) + b"\n")
            spool = cls(path, fd, head, os.fstat(fd).st_size, max_bytes)
        except OSError:
            path.unlink(missing_ok=True)
            os.close(fd)
            raise
        spool._unsynced_folders = [folder, *(one.parent for one in missing)]
        return spool

    @classmethod
    def adopt(cls, folder: Path, name: str, url: str, max_bytes: int) -> list["Spool"]:
        """Spools that ended processes of this name left for this gateway, oldest first."""
        pattern = re.compile(re.escape(file_stem(name)) + r"-\d+(\.[0-9a-f]+)?\.jsonl")
        paths = [path for path in folder.glob("*.jsonl") if pattern.fullmatch(path.name)] if fcntl else []
        spools = [spool for path in paths if (spool := cls._adopt_one(path, url, max_bytes))]
        return sorted(spools, key=lambda spool: spool._head.created_ns)

    @classmethod
    def _adopt_one(cls, path: Path, url: str, max_bytes: int) -> "Spool | None":
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError:
            return None
        try:
            # The previous lock holder may have drained and removed the file while it was opened here.
            if _lock(fd) and os.path.samestat(os.fstat(fd), os.stat(path)):
                head, sent = _read_head(path, fd)
                if head.url == url:
                    return cls(path, fd, head, sent, max_bytes)
                log.info("%s is kept: it was written for %s", path, head.url)
        except FileNotFoundError:
            log.debug("%s is being created or removed by another process", path)
        except (OSError, msgspec.MsgspecError) as exc:
            log.warning("%s is left unchanged: its first line cannot be read (%s)", path, type(exc).__name__)
        os.close(fd)
        return None

    @property
    def pending(self) -> int:
        """Bytes not yet sent."""
        return self._size - self._sent

    def fits(self, lines: Sequence[bytes]) -> int:
        """How many of these lines fit."""
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
            _write(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)

    def sync(self) -> None:
        """Flush to the device, the first time including the parent folders. Two threads may call it at
        once."""
        os.fsync(self._fd)
        for folder in self._unsynced_folders:
            _sync_folder(folder)
        self._unsynced_folders = []

    def peek(self, max_lines: int, max_bytes: int) -> list[bytes]:
        """The oldest unsent lines; at least one, however long it is."""
        want = min(self.pending, max_bytes)
        while True:
            data = os.pread(self._fd, want, self._sent)
            end = data.rfind(b"\n")
            if end >= 0:
                return data[:end].split(b"\n", max_lines)[:max_lines]
            if want >= self.pending:  # a torn last line: the process died while writing it
                log.warning("%s ended in an incomplete line, which is dropped", self.path)
                self.advance(want)
                return []
            want = min(self.pending, want * 4)

    def advance(self, size: int) -> None:
        """These bytes are settled. The caller releases the file when nothing is pending."""
        self._sent += size
        if self.pending == 0:
            return
        try:
            self._keep_sent()
        except OSError as exc:  # a full disk: nothing is lost, a restart only sends again
            log.debug("%s: the number of sent bytes could not be stored (%s)", self.path, exc.strerror)

    def release(self) -> None:
        """Close the file: removed when empty, else left for the next start. Releases the lock."""
        if self.pending == 0:
            for path in (self.path, *(self.path.with_suffix(suffix) for suffix in (".sent", ".state"))):
                path.unlink(missing_ok=True)
        if fcntl is not None:  # an fsync still running in another thread would keep the lock past the close
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)

    def forget(self) -> None:
        """In a forked child: the file belongs to the parent; only this copy of the descriptor is closed."""
        os.close(self._fd)

    def _keep_sent(self) -> None:
        new = self.path.with_suffix(".new")
        try:
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                os.write(fd, b"%d\n" % self._sent)
            finally:
                os.close(fd)
            os.replace(new, self.path.with_suffix(".sent"))
        except OSError:
            new.unlink(missing_ok=True)
            raise


def _opened(folder: Path, stem: str) -> tuple[Path, int]:
    """A new, locked file. Its name is used once, so no `.sent` of an earlier file can exist."""
    while True:
        path = folder / f"{stem}-{os.getpid()}.{os.urandom(6).hex()}.jsonl"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        if fcntl is not None:  # waits: a process that looks for leftovers may hold it for a moment
            fcntl.flock(fd, fcntl.LOCK_EX)
        if path.exists():  # else that process found it empty and removed it
            return path, fd
        os.close(fd)


def _read_head(path: Path, fd: int) -> tuple[_Head, int]:
    """The gateway a leftover was written for, and how far it was sent."""
    first = os.pread(fd, MAX_HEAD_BYTES, 0).partition(b"\n")
    if not first[0]:  # a power cut before its first flush: it holds no durable line
        path.unlink(missing_ok=True)
        raise FileNotFoundError
    try:
        head, start = msgspec.json.decode(first[0], type=_Head), len(first[0]) + 1
    except msgspec.MsgspecError:
        state = msgspec.json.decode(path.with_suffix(".state").read_bytes(), type=_State)
        head, start = _Head(state.url, state.created_ns), 0
        return head, state.sent if _is_line_end(fd, state.sent) else start
    return head, _read_sent(path, fd, start)


def _read_sent(path: Path, fd: int, start: int) -> int:
    """The stored offset if it is valid: a whole number at a line end. Otherwise everything is sent again."""
    try:
        noted = re.fullmatch(rb"(\d{1,18})\n", path.with_suffix(".sent").read_bytes())
    except OSError:
        return start
    sent = int(noted[1]) if noted else start
    return sent if sent >= start and _is_line_end(fd, sent) else start


def _is_line_end(fd: int, at: int) -> bool:
    return at > 0 and os.pread(fd, 1, at - 1) == b"\n"


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

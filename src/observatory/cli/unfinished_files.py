"""Temporary files of a command in progress: next to their target, under a unique name and locked.

A killed process removes nothing, but its lock ends with it. So a file that can be locked is abandoned and is
removed by `clear`, which the next backup, restore and start of the gateway call. Files in use are
left alone, and so is every file that is not of this form.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILE = re.compile(r"\..+\.[a-z0-9_]{8}\.partial")
FOLDER = re.compile(r"\.observatory-[a-z0-9_]{8}")
LOCK = "unfinished.lock"


@contextmanager
def file(path: Path) -> Iterator[Path]:
    """A temporary file for what will be at `path`; removed at the end."""
    while True:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        temporary = Path(name)
        if _hold(handle, temporary):
            break
        os.close(handle)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


@contextmanager
def folder(where: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as the target; removed at the end."""
    with tempfile.TemporaryDirectory(prefix=".observatory-", dir=where, ignore_cleanup_errors=True) as name:
        handle = os.open(Path(name) / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _hold(handle, Path(name) / LOCK)
            yield Path(name)
        finally:
            os.close(handle)


def clear(where: Path) -> None:
    """Remove what killed processes left in this folder."""
    with suppress(OSError):
        for path in list(where.iterdir()):
            if FILE.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                _remove(path, path)
            elif FOLDER.fullmatch(path.name) and (path / LOCK).is_file() and not path.is_symlink():
                _remove(path / LOCK, path)


def _hold(handle: int, path: Path) -> bool:
    """Lock it; False if another `clear` removed it before. Where locks are not supported: not locked."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _remove(lock: Path, path: Path) -> None:
    with suppress(OSError):
        handle = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        finally:
            os.close(handle)

"""An agent of the Python SDK whose every change of the data folder is noted, led by a test over stdin.

The notes are taken where the SDK meets the system (`os`), and every call is made: what the process sees
is real.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from typing import Any

journal_path, name, door = sys.argv[1:4]
HOME: str = json.loads(door)["data"]
real = {
    word: getattr(os, word)
    for word in ("open", "write", "fsync", "ftruncate", "replace", "rename", "unlink", "mkdir", "close")
}
journal = real["open"](journal_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
numbers = itertools.count()
files: dict[int, int | str] = {}  # descriptor -> number of the file, or the path of a folder


def note(op: str, **more: Any) -> None:
    real["write"](journal, json.dumps({"op": op, **more}).encode() + b"\n")


def is_ours(path: Any) -> bool:
    return str(path).startswith(HOME)


known: dict[tuple[int, int], int] = {}


def opened(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
    existed = os.path.exists(path)
    fd: int = real["open"](path, flags, mode, **more)
    if is_ours(path) or str(path) == os.path.dirname(HOME):
        stat = os.fstat(fd)
        if os.path.isdir(path):
            files[fd] = str(path)
        elif not existed:
            files[fd] = known[stat.st_dev, stat.st_ino] = next(numbers)
            note("create", path=str(path), id=files[fd])
        else:
            files[fd] = known[stat.st_dev, stat.st_ino]
    return fd


def wrote(fd: int, data: Any) -> int:
    n: int = real["write"](fd, data)
    if fd in files:
        note("write", id=files[fd], data=bytes(data[:n]).decode("latin1"))
    return n


def synced(fd: int) -> None:
    size = os.fstat(fd).st_size
    real["fsync"](fd)
    match files.get(fd):
        case int(number):
            note("fsync", id=number, size=size)
        case str(path):
            note("syncdir", path=path)


def truncated(fd: int, size: int) -> None:
    real["ftruncate"](fd, size)
    if fd in files:
        note("truncate", id=files[fd], size=size)


def renamed(path: Any, to: Any, **more: Any) -> None:
    real["replace"](path, to, **more)
    if is_ours(path):
        note("rename", path=str(path), to=str(to))


def unlinked(path: Any, **more: Any) -> None:
    real["unlink"](path, **more)
    if is_ours(path):
        note("unlink", path=str(path))


def made(path: Any, mode: int = 0o777, **more: Any) -> None:
    real["mkdir"](path, mode, **more)
    if is_ours(path):
        note("mkdir", path=str(path))


def closed(fd: int) -> None:
    files.pop(fd, None)
    real["close"](fd)


for word, act in {
    "open": opened, "write": wrote, "fsync": synced, "ftruncate": truncated, "replace": renamed,
    "rename": renamed, "unlink": unlinked, "mkdir": made, "close": closed,
}.items():  # fmt: skip
    setattr(os, word, act)

from observatory import Agent  # noqa: E402  (it must find the above)

agent = Agent(name, **json.loads(door), control=False)
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)  # noqa: S307  (the test's own words)

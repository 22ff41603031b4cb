"""What a power cut leaves of a folder, computed from a journal of what a process asked of the system.

The journal has one JSON line for each act: mkdir, create, write, truncate, fsync, syncdir, rename,
unlink. Law of the model: data is safe after `fsync` of its file, a name after `fsync` of its folder, and
before that only as far as the system wrote everything back by itself, once, after `written_back` acts.
With `names_survive` a journaling file system kept all names but not what nobody synced: the files are
there, and empty.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Names = dict[str, int | None]  # path -> number of the file, None for a folder


def journal_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Disk:
    """What the process sees (`names`, `data`), and what a cut would leave of it (`safe_…`)."""

    def __init__(self) -> None:
        self.names: Names = {}
        self.data: dict[int, bytes] = {}
        self.safe_names: Names = {}
        self.safe_data: dict[int, bytes] = {}

    def act(self, act: dict[str, Any]) -> None:
        match act:
            case {"op": "mkdir", "path": path}:
                self.names[path] = None
            case {"op": "create", "path": path, "id": number}:
                self.names[path], self.data[number] = number, b""
            case {"op": "write", "id": number, "data": data}:
                self.data[number] += data.encode("latin1")
            case {"op": "truncate", "id": number, "size": size}:
                self.data[number] = self.data[number][:size]
            case {"op": "fsync", "id": number, "size": size}:  # as long as it was when the flush began
                self.safe_data[number] = self.data[number][:size]
            case {"op": "syncdir", "path": folder}:
                self._sync_names(folder)
            case {"op": "rename", "path": path, "to": to}:
                self.names[to] = self.names.pop(path)
            case {"op": "unlink", "path": path}:
                self.names.pop(path, None)
            case _:
                raise AssertionError(act)

    def _sync_names(self, folder: str) -> None:
        inside = {path: number for path, number in self.names.items() if os.path.dirname(path) == folder}
        others = {path: n for path, n in self.safe_names.items() if os.path.dirname(path) != folder}
        self.safe_names = others | inside

    def write_back(self) -> None:
        self.safe_names, self.safe_data = dict(self.names), dict(self.data)


def is_safe(journal: list[dict[str, Any]]) -> bool:
    """Whether every message in a spool has been flushed."""
    disk = Disk()
    for act in journal:
        disk.act(act)
    spools = [n for path, n in disk.names.items() if n is not None and path.endswith(".jsonl")]
    return bool(spools) and all(disk.data[n] == disk.safe_data.get(n) for n in spools)


def left_of(journal: list[dict[str, Any]], written_back: int, names_survive: bool) -> dict[str, bytes]:
    """Path and content of every file that is found after the cut."""
    disk = Disk()
    for n, act in enumerate(journal):
        if n == written_back:
            disk.write_back()
        disk.act(act)
    if written_back == len(journal):
        disk.write_back()
    names = disk.names if names_survive else disk.safe_names
    made = {path for path in disk.names if disk.names[path] is None}
    return {
        path: disk.safe_data.get(number, b"")
        for path, number in names.items()
        if number is not None and all(str(up) in names for up in Path(path).parents if str(up) in made)
    }


def rebuild(files: dict[str, bytes], home: Path, again: Path) -> Path:
    """The folder `home` as it is found, at another place."""
    for path, data in files.items():
        place = again / Path(path).relative_to(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    again.mkdir(parents=True, exist_ok=True)
    return again

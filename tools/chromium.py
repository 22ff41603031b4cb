"""The Chromium of the browser tests: named, unpacked here without root, or installed.

In this order: `OBSERVATORY_CHROMIUM`; the locked package in `browser/`, a headless Chromium with the
libraries and fonts it needs, unpacked into `.browser/` of the checkout; a Chromium or Chrome of the machine
that really starts and is not too old. The package comes first because it is the same everywhere and has no
windows: one that has takes up to twice as much of the processor for the same page.
`python -m tools.chromium` fetches it beforehand and says which it is. There is no fourth way: without a
browser the tests fail, they are never left out.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import windows

PACKAGE = Path(__file__).parent / "browser"
CACHE = windows.ROOT / ".browser"
OLDEST = 123  # the pages are built for browsers of 2024 and later
NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# Our own pages only, and often as root in a container: the sandbox would refuse to start.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
# What is unpacked is locked by hash; the first releases of Python 3.11 do not know the word yet.
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
# The package's own file speaks of folders that only its cloud has.
FONTS = (
    '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
    "<dir>/usr/share/fonts</dir><dir>{home}</dir><cachedir>{home}/font-cache</cachedir></fontconfig>"
)


@dataclass(frozen=True)
class Chromium:
    path: str
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ARGUMENTS


def find() -> Chromium:
    named = os.environ.get("OBSERVATORY_CHROMIUM")
    if named:
        assert _version(named), f"OBSERVATORY_CHROMIUM={named} does not start"
        return Chromium(named)
    found = _unpacked() if sys.platform == "linux" and platform.machine() == "x86_64" else None
    installed = map(shutil.which, NAMES)
    found = found or next((Chromium(path) for path in installed if path and _version(path) >= OLDEST), None)
    assert found, "no Chromium or Chrome that starts: install one, or name it with OBSERVATORY_CHROMIUM"
    return found


def _version(path: str, environment: dict[str, str] | None = None) -> int:
    """Its major number; 0 when it does not start (a stub of a distribution, a missing library)."""
    try:
        said = subprocess.run(
            [path, "--no-sandbox", "--version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r"(\d+)\.\d+\.\d+\.\d+", said.stdout)
    return int(found[1]) if found else 0


def _unpacked() -> Chromium | None:
    """Fetched once for a checkout; several test workers may ask at the same time. None: it does not start."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copyfile(PACKAGE / name, CACHE / name)
        wanted = windows.fingerprint(PACKAGE, ("package-lock.json",))
        home, stamp = CACHE / "unpacked", CACHE / "unpacked-from"
        if not stamp.exists() or stamp.read_text() != wanted:
            windows.install(CACHE)
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            packed = CACHE / "node_modules/@sparticuz/chromium/bin"
            windows.run(PACKAGE / "unpack.mjs", str(packed), str(home))
            for archive in home.glob("*.tar"):
                with tarfile.open(archive) as opened:
                    opened.extractall(_own_folder(home, archive), **SAFELY)
                archive.unlink()
            (home / "fonts.conf").write_text(FONTS.format(home=home))
            shutil.rmtree(CACHE / "node_modules")
            stamp.write_text(wanted)
    # A language, as every desktop has one: from "C" it makes a name of a locale that its own Intl refuses.
    environment = {
        "LD_LIBRARY_PATH": str(home / "al2023/lib"),
        "FONTCONFIG_FILE": str(home / "fonts.conf"),
        "LANG": "en_US.UTF-8",
        "LC_ALL": "en_US.UTF-8",
    }
    found = Chromium(str(home / "chromium"), environment)
    return found if _version(found.path, environment) else None


def _own_folder(home: Path, archive: Path) -> Path:
    """Some archives hold their folder, some only files; each belongs into one of its own name."""
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    return home if all(name.startswith(archive.stem) for name in names) else home / archive.stem


if __name__ == "__main__":
    chosen = find()
    print(f"browser of the tests: {chosen.path} ({_version(chosen.path, chosen.environment)})")

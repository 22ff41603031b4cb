"""`make licenses`: the licence of every package that is built into the windows, as one text in the wheel.

What may be in the built pages is what `ui/package-lock.json` names for run time, and the two tools whose
helpers a build carries along; types only are in no page. Each text is the package's own file, out of
`ui/node_modules`. A package whose terms demand more than their text (where its source is to be had) has a
notice here; one that brings no text and no notice is a fault, never left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tools import windows

LOCK = windows.UI / "package-lock.json"
TARGET = windows.ROOT / "src/observatory/THIRD_PARTY_LICENSES.txt"
# Not asked for at run time, yet their helpers are in what they build: module loading and its polyfills.
BUILDERS = ("rolldown", "vite")
# Types only, of which a page holds nothing.
TYPES = ("@types/", "csstype")
TEXTS = ("licen", "copying", "notice", "copyright")
RULE = "=" * 100
# Of the text of a builder only its own terms: what follows is of packages that stay in the builder.
OWN_PART = "# Licenses of bundled dependencies"
NOTICES = {
    "elkjs": (
        "Used under the Eclipse Public License 2.0, changed in nothing but that it is minified. Its source\n"
        "code is available under the same license at https://github.com/kieler/elkjs (the tag of the\n"
        "version named above); it is made from the Eclipse Layout Kernel,\n"
        "https://github.com/eclipse-elk/elk."
    ),
    "world-atlas": "Its data is Natural Earth's (https://www.naturalearthdata.com), in the public domain.",
}
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO
EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR
THE USE OR OTHER DEALINGS IN THE SOFTWARE."""
# It names its license in package.json and brings no file with it.
WITHOUT_FILE = {
    "react-remove-scroll-bar": f"MIT License\n\nAuthor, as its package.json says: Anton Korzunov\n\n{MIT}"
}
HEAD = """Third-party software in Hypervisor Observatory

The pages of Hypervisor Observatory (observatory/http/windows in the wheel) are built from the packages below;
each stands under the license that follows its name. Everything else in the wheel is under the Apache License
2.0 (LICENSE). The Python packages it needs are not in the wheel: each brings its own license when it is
installed; `make sbom` lists them. Made by `make licenses`; do not edit.
"""


class NoText(Exception):
    """A package without a license text: its sentence says which."""


class Package(NamedTuple):
    place: str  # as the lock has it: node_modules/…
    name: str
    version: str
    license: str


def locked() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(LOCK.read_text("utf-8"))["packages"]
    return found


def name_of(place: str) -> str:
    return place.rpartition("node_modules/")[2]


def packages() -> list[Package]:
    """What may be in the built pages, by name and version."""
    found = [
        Package(place, name_of(place), one["version"], one["license"])
        for place, one in locked().items()
        if place
        and (not one.get("dev") or name_of(place) in BUILDERS)
        and not name_of(place).startswith(TYPES)
    ]
    return sorted(found, key=lambda one: (one.name, one.version))


def heading(package: Package) -> str:
    return f"{package.name} {package.version} ({package.license.strip('()')})"


def text_of(package: Package) -> str:
    """Its own files, in the order of their names; NoText when there is none."""
    folder = windows.UI / package.place
    files = sorted(
        path for path in folder.glob("*") if path.name.lower().startswith(TEXTS) and path.is_file()
    )
    texts = [_plain(path.read_text("utf-8").partition(OWN_PART)[0]) for path in files]
    if not texts and package.name in WITHOUT_FILE:
        texts = [WITHOUT_FILE[package.name]]
    if not texts:
        raise NoText(f"{package.name} {package.version} has no license file in {folder}")
    return "\n\n".join(texts)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def document() -> str:
    parts = [HEAD]
    for package in packages():
        notice = NOTICES.get(package.name)
        words = [RULE, heading(package), RULE, *([notice, ""] if notice else []), text_of(package)]
        parts.append("\n".join(words) + "\n")
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="licenses", description="the licenses of what is in the wheel")
    parser.add_argument(
        "--check", action="store_true", help="only say whether the file is of the present lock"
    )
    asked = parser.parse_args()
    try:
        windows.install()
        made = document()
    except (NoText, windows.Failed) as problem:
        print(f"licenses: {problem}", file=sys.stderr)
        return 1
    if asked.check:
        if TARGET.is_file() and TARGET.read_text("utf-8") == made:
            return 0
        print(f"licenses: {Path(TARGET).name} is not of the present lock; run make licenses", file=sys.stderr)
        return 1
    TARGET.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

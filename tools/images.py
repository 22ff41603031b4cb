"""`make images`: are the images still what they are pinned to, and is there a newer one under the same tag?

Every image that is taken from a registry stands in `Dockerfile` and `compose.yaml` as `name:tag@sha256:…`, so
what runs is what was looked at, whatever the tag says tomorrow. Docker is asked here, for each, whether the
digest exists and what the tag means now; `--write` puts the new digests in. A person reads the change.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FILES = ("Dockerfile", "compose.yaml")
OWN = "hypervisor-observatory"
# In a Dockerfile the name stands apart from its tag, which is a build argument of both stages.
NAMED = re.compile(r"^\s*image:\s*(?P<name>[^\s:@]+):(?P<tag>[^\s@]+)(@(?P<digest>\S+))?", re.MULTILINE)
ARGUMENT = re.compile(r"^ARG (?P<name>PYTHON)=(?P<tag>[^\s@]+)(@(?P<digest>\S+))?", re.MULTILINE)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}").fullmatch


class Image(NamedTuple):
    name: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}:{self.tag}"


class CannotAsk(Exception):
    """Its sentence says why."""


def images(root: Path = ROOT) -> list[Image]:
    """All that are taken from a registry; `digest` is empty where none is given."""
    return [
        Image(one["name"].lower(), one["tag"], one["digest"] or "")
        for file, pattern in zip(FILES, (ARGUMENT, NAMED), strict=True)
        for one in pattern.finditer((root / file).read_text("utf-8"))
        if one["name"] != OWN
    ]


def digest_of(reference: str) -> str:
    """What the registry has under that reference; CannotAsk when it has nothing or is out of reach."""
    docker = shutil.which("docker")
    if docker is None:
        raise CannotAsk("docker is not on this machine, so no registry was asked")
    asked = [docker, "buildx", "imagetools", "inspect", reference, "--format", "{{.Manifest.Digest}}"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=False)
    found = done.stdout.strip()
    if done.returncode or not DIGEST(found):
        raise CannotAsk(f"{reference} cannot be had: {done.stderr.strip()[:200] or 'no digest was given'}")
    return found


def compared(image: Image) -> str:
    """The digest its tag has now; CannotAsk when the pinned one does not exist."""
    if image.digest:
        digest_of(f"{image.name}@{image.digest}")
    return digest_of(str(image))


def main() -> int:
    parser = argparse.ArgumentParser(prog="images", description="compare pinned images with the registry")
    parser.add_argument("--write", action="store_true", help="pin what the tags mean now")
    asked = parser.parse_args()
    try:
        for image in dict.fromkeys(images()):
            now = compared(image)
            print(f"{image}: {'as pinned' if now == image.digest else f'the tag is {now} now'}")
            if asked.write and now != image.digest:
                for path in (ROOT / file for file in FILES):
                    path.write_text(path.read_text("utf-8").replace(image.digest, now), "utf-8")
    except CannotAsk as problem:
        print(f"images: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

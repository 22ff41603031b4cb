"""Copy a tenant's whole log as C2SP tiles: `python examples/prove/mirror.py URL FOLDER`.

URL is returned by `GET /v1/audit/log`, e.g. http://127.0.0.1:4800/v1/log/tnt_default. A log that is not
public needs a key that may read, in OBSERVATORY_KEY. The copy contains only hashes: it can be shared with
anyone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.request import Request, urlopen

WIDTH = 256


def fetch(url: str) -> bytes:
    key = os.environ.get("OBSERVATORY_KEY")
    with urlopen(Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})) as answer:
        content: bytes = answer.read()
    return content


def paths(size: int) -> list[str]:
    """Every tile of a log of this size: the leaves' data, and hashes level by level."""
    tiles, level, count = [], 0, size
    while count:
        for tile in range(-(-count // WIDTH)):
            groups = [f"{tile % 1000:03d}"]
            while tile := tile // 1000:
                groups.insert(0, f"x{tile % 1000:03d}")
            tiles.append(f"tile/{level}/{'/'.join(groups)}")
        if count % WIDTH:
            tiles[-1] += f".p/{count % WIDTH}"
        level, count = level + 1, count // WIDTH
    return tiles + [path.replace("tile/0/", "tile/entries/") for path in tiles if path.startswith("tile/0/")]


def mirror(url: str, folder: Path) -> int:
    """The checkpoint is read first: what it covers never changes."""
    checkpoint = fetch(f"{url}/checkpoint")
    size = int(checkpoint.splitlines()[1])
    for path in paths(size):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(fetch(f"{url}/{path}"))
    (folder / "checkpoint").write_bytes(checkpoint)
    return size


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit("usage: python examples/prove/mirror.py URL FOLDER")
    print(f"{mirror(sys.argv[1].rstrip('/'), Path(sys.argv[2])):,} entries copied to {sys.argv[2]}")

"""`python -m observatory.schemas --check | --write`: the generated files in `schemas/`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from observatory.features import parts
from observatory.http import openapi
from observatory.http.app import litestar_app

FOLDER = Path("schemas")


def texts() -> dict[str, str]:
    documents = openapi.documents(litestar_app(None, [part.FEATURE for part in parts("feature")]))
    return {
        name: json.dumps(document, indent=1, sort_keys=True) + "\n" for name, document in documents.items()
    }


def main(argv: list[str]) -> int:
    generated = texts()
    present = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    if argv == ["--write"]:
        FOLDER.mkdir(exist_ok=True)
        for name in present.keys() - generated.keys():
            (FOLDER / name).unlink()
        for name, text in generated.items():
            (FOLDER / name).write_text(text)
        return 0
    stale = sorted(
        name for name in present.keys() | generated.keys() if present.get(name) != generated.get(name)
    )
    if stale:
        print(f"stale: {', '.join(stale)}; run `make schemas`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

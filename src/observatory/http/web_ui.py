"""The door of the windows: the built pages of `ui/`, out of this package, to a browser.

Page routes answer one document, never cached; `/assets/*` are named by their content and kept for ever, in
the smallest form the browser takes (brotli, gzip, plain: all made at build time). A name that is not a file
of the build is 404: nothing outside `windows/` can be reached. The document may load from this gateway only;
style attributes are Mantine's, inline scripts are nobody's.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from litestar import Request, Response, get
from litestar.params import FromPath

from observatory.http.answers import Refusal
from observatory.http.permissions import OPEN
from observatory.http.security_headers import POLICY

FOLDER = Path(__file__).parent / "windows"
# As `ui/src/router.tsx` has them; a test compares. An agent names its sessions: a `/` in a name is allowed.
ROUTES = (
    "/",
    "/fleet",
    "/sessions",
    "/sessions/{session_id:path}",
    "/compare",
    "/registry",
    "/registry/{agent_id:path}",
    "/scheduler",
    "/forensics",
    "/forensics/{board:str}",
    "/forensics/message/{message_id:path}",
    "/god-mode",
    "/settings",
    "/settings/{section:str}",
    "/inbox",
)
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".webp": "image/webp",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
FORMS = (("br", ".br"), ("gzip", ".gz"))
LICENSES = Path(__file__).parents[1] / "THIRD_PARTY_LICENSES.txt"
PAGES = Path(__file__).parent / "pages"
PAGE = re.compile("|".join(re.sub(r"\{.*?\}", ".+", route) for route in ROUTES))
# What a browser could read as another host or another folder, written out or escaped.
ELSEWHERE = re.compile(r"//|\\|[\x00-\x1f]|%5c|%2e|(^|/)\.\.?(/|$)", re.IGNORECASE)


@get(list(ROUTES), include_in_schema=False, opt=OPEN)
async def window() -> Response[bytes]:
    """The one document of all pages; the browser reads the rest of the address."""
    headers = {"content-security-policy": POLICY}
    path = FOLDER / "index.html"
    if not path.is_file():
        text = (PAGES / "not_built.html").read_bytes()
        return Response(text, status_code=503, media_type="text/html", headers=headers)
    return Response(path.read_bytes(), media_type="text/html", headers=headers)


@get("/assets/{name:str}", include_in_schema=False, opt=OPEN)
async def asset(request: Request, name: FromPath[str]) -> Response[bytes]:  # type: ignore[type-arg]
    return _file(FOLDER / "assets", name, request, "public, max-age=31536000, immutable")


@get("/favicon.svg", include_in_schema=False, opt=OPEN)
async def favicon(request: Request) -> Response[bytes]:  # type: ignore[type-arg]
    return _file(FOLDER, "favicon.svg", request, "public, max-age=86400")


@get("/licenses", include_in_schema=False, opt=OPEN)
async def licenses() -> Response[bytes]:
    """The terms of what is built into the pages (S1260); `tools/licenses.py` writes them."""
    return Response(LICENSES.read_bytes(), media_type="text/plain")


def _file(folder: Path, name: str, request: Request, kept: str) -> Response[bytes]:  # type: ignore[type-arg]
    path = folder / name
    if not re.fullmatch(r"\w[\w.-]{0,199}", name) or path.suffix not in KINDS or not path.is_file():
        raise Refusal(404, "not_found", "there is no such file")
    headers = {"cache-control": kept, "vary": "accept-encoding"}
    taken = _taken(request.headers.get("accept-encoding", ""))
    for form, ending in FORMS:
        packed = folder / (name + ending)
        if form in taken and packed.is_file():
            return Response(
                packed.read_bytes(),
                media_type=KINDS[path.suffix],
                headers=headers | {"content-encoding": form},
            )
    return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=headers)


def _taken(accept_encoding: str) -> set[str]:
    """The encodings a browser takes; `q=0` is a refusal, `*` is not taken at its word."""
    taken = set()
    for part in accept_encoding.lower().split(","):
        form, _, weight = part.partition(";")
        if not re.fullmatch(r"q=0(\.0*)?", weight.strip()):
            taken.add(form.strip())
    return taken


def page_of_ours(wanted: str) -> str:
    """Where a sign-in may lead: a page of the windows with its search, else the first one."""
    path, asked, search = wanted.partition("?")
    if not PAGE.fullmatch(path) or ELSEWHERE.search(path):
        return "/"
    return quote(path, safe="/%:@") + asked + quote(search, safe="/%:@?&=+,;~!*'()")


WINDOWS = [window, asset, favicon, licenses]

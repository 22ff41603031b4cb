"""Serves the web UI: the built pages of `ui/`, which are part of this package.

Page routes return one document, never cached; `/assets/*` are named by their content and cached for ever, in
the smallest encoding the browser accepts (brotli, gzip, plain: all made at build time). A name that is not a
file of the build is 404: nothing outside `windows/` can be reached. The document may load from this gateway
only; Mantine needs style attributes, inline scripts are not allowed.
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
# The same as in `ui/src/router.tsx`; a test compares. Agents name their sessions: a name may hold a `/`.
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
# What a browser could take for another host or another folder, plain or escaped.
ELSEWHERE = re.compile(r"//|\\|[\x00-\x1f]|%5c|%2e|(^|/)\.\.?(/|$)", re.IGNORECASE)


@get(list(ROUTES), include_in_schema=False, opt=OPEN)
async def window() -> Response[bytes]:
    """The one document of all pages; the browser routes by the rest of the URL."""
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
    """Licenses of the packages built into the pages (S1260); `tools/licenses.py` writes them."""
    return Response(LICENSES.read_bytes(), media_type="text/plain")


def _file(folder: Path, name: str, request: Request, cache_control: str) -> Response[bytes]:  # type: ignore[type-arg]
    path = folder / name
    if not re.fullmatch(r"\w[\w.-]{0,199}", name) or path.suffix not in KINDS or not path.is_file():
        raise Refusal(404, "not_found", "there is no such file")
    headers = {"cache-control": cache_control, "vary": "accept-encoding"}
    accepted = _accepted(request.headers.get("accept-encoding", ""))
    for form, ending in FORMS:
        compressed = folder / (name + ending)
        if form in accepted and compressed.is_file():
            return Response(
                compressed.read_bytes(),
                media_type=KINDS[path.suffix],
                headers=headers | {"content-encoding": form},
            )
    return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=headers)


def _accepted(accept_encoding: str) -> set[str]:
    """The encodings a browser accepts; `q=0` is a refusal, `*` is ignored."""
    accepted = set()
    for part in accept_encoding.lower().split(","):
        form, _, weight = part.partition(";")
        if not re.fullmatch(r"q=0(\.0*)?", weight.strip()):
            accepted.add(form.strip())
    return accepted


def safe_redirect_target(target: str) -> str:
    """Where a sign-in may lead: a page of the UI with its query, else the home page."""
    path, separator, search = target.partition("?")
    if not PAGE.fullmatch(path) or ELSEWHERE.search(path):
        return "/"
    return quote(path, safe="/%:@") + separator + quote(search, safe="/%:@?&=+,;~!*'()")


WINDOWS = [window, asset, favicon, licenses]

"""The built windows through the gateway's door: pages, files, caches, and where a sign-in may lead."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from observatory.http import web_ui as windows_door
from tests.flows.server import Server
from tools import windows

ROUTER = windows.UI / "src/router.tsx"
PAGES = ["/", "/fleet", "/sessions", "/sessions/ses_1", "/sessions/a%2Fb", "/compare?a=x&b=y", "/inbox"]
PAGES += ["/registry", "/scheduler", "/forensics", "/god-mode", "/fleet?peek=agent:writer-1"]
PAGES += ["/settings", "/settings/alerts"]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    assert (windows_door.FOLDER / "index.html").is_file(), "the windows are not built: run `make windows`"


@pytest.fixture(scope="module")
def anyone(server: Server) -> Iterator[httpx2.Client]:
    with httpx2.Client(
        base_url=server.url, trust_env=False, headers={"accept-encoding": "identity"}
    ) as client:
        yield client


def script_of(page: str) -> str:
    found = re.search(r'src="(/assets/[^"]+\.js)"', page)
    assert found is not None
    return found[1]


@pytest.mark.req(115, 116)
@pytest.mark.parametrize("path", PAGES)
def test_every_page_route_answers_the_one_document(anyone: httpx2.Client, path: str) -> None:
    answer = anyone.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.content == (windows_door.FOLDER / "index.html").read_bytes()


def test_the_licenses_of_what_is_in_the_pages_are_read_without_a_key_s1260(anyone: httpx2.Client) -> None:
    """S1260: the page and the terminal give the whole text, and it can do nothing in a browser."""
    answer = anyone.get("/licenses")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    received = subprocess.run(
        [sys.executable, "-m", "observatory.cli", "licenses"], capture_output=True, check=True, timeout=60
    )
    assert received.stdout == answer.content
    assert "Eclipse Public License - v 2.0" in answer.text and "github.com/kieler/elkjs" in answer.text


def test_the_document_may_load_from_this_gateway_only_s50(anyone: httpx2.Client) -> None:
    """S50: no script of a string or of elsewhere, no frame around it."""
    headers = anyone.get("/").headers
    rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["connect-src"] == rules["worker-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    page = anyone.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|(src|href)=.(https?:|//)", page)


def test_the_routes_of_gateway_and_router_are_the_same() -> None:
    """A page that the router knows can be linked to, and no other answers as if it were one."""
    text = ROUTER.read_text("utf-8")
    inside = {*re.findall(r'\bat\(\s*"([^"]+)"', text), *re.findall(r'path: "([^"]+)"', text)}
    outside = {re.sub(r"\{.*?\}", "$", route) for route in windows_door.ROUTES}
    assert outside == {re.sub(r"\$\w+", "$", route) for route in inside}


def test_a_file_is_kept_for_ever_and_sent_in_the_form_asked_for(anyone: httpx2.Client) -> None:
    path = script_of(anyone.get("/").text)
    plain = anyone.get(path)
    assert plain.headers["content-type"].startswith("text/javascript")
    assert "immutable" in plain.headers["cache-control"] and plain.headers["vary"] == "accept-encoding"
    assert "content-encoding" not in plain.headers
    for asked, form in (
        ("gzip, deflate, br, zstd", "br"),
        ("gzip", "gzip"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br;q=0.0,gzip;q=0", None),
        ("GZIP", "gzip"),
        ("*", None),
        ("nonsense;;q=,", None),
    ):
        with anyone.stream("GET", path, headers={"accept-encoding": asked}) as answer:
            assert answer.headers.get("content-encoding") == form, asked
            raw = b"".join(answer.iter_raw())
        assert len(raw) == int(answer.headers["content-length"])
        if form == "gzip":
            assert gzip.decompress(raw) == plain.content
        assert (len(raw) < len(plain.content) / 2) == (form is not None)


def test_every_file_of_the_build_has_a_media_type_and_is_served(anyone: httpx2.Client) -> None:
    names = [path.name for path in (windows_door.FOLDER / "assets").iterdir()]
    served = [name for name in names if not name.endswith((".br", ".gz"))]
    assert served
    for name in served:
        answer = anyone.get(f"/assets/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].split(";")[0] == windows_door.KINDS[Path(name).suffix]
    assert anyone.get("/favicon.svg").headers["content-type"].startswith("image/svg+xml")
    assert anyone.get(f"/assets/{served[0]}.br").status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/assets/missing.js",
        f"/assets/{'long' * 75}.js",
        "/assets/",
        "/assets/..%2Findex.html",
        "/assets/..%2F..%2Fapp.py",
        "/assets/%2e%2e%2fmanifest.json",
        "/assets/../manifest.json",
        "/assets/..%5c..%5capp.py",
        "/assets/%2Fetc%2Fpasswd",
        "/assets/.made-from",
        "/assets//etc/passwd",
        "/.made-from",
        "/manifest.json",
        "/index.html",
        "/windows/index.html",
        "/pages/index.html",
        "/fleet/x",
        "/unknown",
        "/Fleet",
        "/v1/unknown",
    ],
)
def test_what_is_no_page_and_no_file_of_the_build_is_404_in_json(anyone: httpx2.Client, path: str) -> None:
    # As a browser never would: the path goes out exactly as written.
    target = httpx2.Request("GET", str(anyone.base_url).rstrip("/") + path)
    target.url = target.url.copy_with(raw_path=path.encode())
    answer = anyone.send(target)
    assert answer.status_code == 404
    assert answer.json()["status"] == "refused" and answer.json()["reason"] == "not_found"


def test_without_a_build_the_page_says_so_and_how_to_get_one(tmp_path: Path) -> None:
    """The gateway runs all the same: the copy below has no `windows` folder."""
    shutil.copytree(
        windows.ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("windows", "__pycache__")
    )
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import asyncio, json\n"
        "from observatory.http import web_ui\n"
        "answer = asyncio.run(web_ui.window.fn())\n"
        "print(json.dumps([web_ui.__file__, answer.status_code, answer.content.decode()]))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "src")], capture_output=True, text=True, check=True
    )
    place, status, page = json.loads(said.stdout)
    assert place.startswith(str(tmp_path))
    assert status == 503 and "make windows" in page and "nothing is lost" in page


# --- where a sign-in leads ---


@pytest.mark.parametrize(
    ("wanted", "leads_to"),
    [
        ("/inbox", "/inbox"),
        ("/fleet?peek=agent:writer-1&layer=geo", "/fleet?peek=agent:writer-1&layer=geo"),
        ("/sessions/ses_1?step=stp_2", "/sessions/ses_1?step=stp_2"),
        ("/fleet?peek=edge:a → b", "/fleet?peek=edge:a%20%E2%86%92%20b"),
        ("", "/"),
        ("/nowhere", "/"),
        ("/logout", "/"),
        ("/login?token=x", "/"),
        ("/v1/whoami", "/"),
        ("https://evil.example", "/"),
        ("//evil.example", "/"),
        ("///evil.example", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("/\n/evil.example", "/"),
        (" //evil.example", "/"),
        ("/sessions//evil.example", "/"),
        ("/sessions/..//evil.example", "/"),
        ("/sessions/../../evil", "/"),
        ("/sessions/%2e%2e/%2e%2e//evil.example", "/"),
        ("/sessions/%5cevil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("/inbox\r\nset-cookie: a=b", "/"),
        ("/inbox?a=\r\nset-cookie: a=b", "/inbox?a=%0D%0Aset-cookie:%20a=b"),
        ("@evil.example", "/"),
        (".evil.example", "/"),
    ],
)
def test_a_sign_in_leads_to_a_page_of_ours_and_never_elsewhere(
    server: Server, wanted: str, leads_to: str
) -> None:
    link = server.http("admin").post("/v1/logins", json={}).json()["url"]
    answer = httpx2.post(f"{link}&next={quote(wanted, safe='')}", trust_env=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == leads_to
    assert answer.headers.get_list("set-cookie")[0].startswith("observatory=")
    assert len(answer.headers.get_list("set-cookie")) == 1


def test_a_person_with_a_used_link_is_led_to_the_page_a_program_is_told_s56(server: Server) -> None:
    """S56: the page takes a key instead; no cookie is given."""
    link = f"{server.url}/login?token=used"
    person = httpx2.post(link, headers={"accept": "text/html,*/*;q=0.8"}, trust_env=False)
    assert (person.status_code, person.headers["location"]) == (303, "/?login=used")
    assert "set-cookie" not in person.headers
    assert httpx2.post(link, headers={"accept": "application/json"}, trust_env=False).status_code == 401

"""Where the login link of a start goes, and what else is kept from other eyes (B13, E27)."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from observatory.errors import StartupError
from observatory.runtime.tls import Tls
from observatory.settings import load
from tests.certifying import Folder, Secured
from tests.flows.databases import ALONE, new_database
from tests.flows.nursery import EXECUTED
from tests.flows.server import COMMAND, Server, clean_environment
from tests.samples import decision_log
from tests.waiting import until

LINK = re.compile(r"http://127\.0\.0\.1:\d+/login\?token=[\w-]+")


def test_a_log_collector_gets_no_login_link_s1188(tmp_path: Path) -> None:
    """S1188: the link is in a file of its owner, works once, and is gone when the gateway stops."""
    server = Server(tmp_path / "data", environment=ALONE)
    with server:
        assert not LINK.search(server.log) and "token" not in server.log
        file = server.folder / "login.url"
        assert str(file) in server.log and "observatory login --user admin" in server.log
        assert file.stat().st_mode & 0o077 == 0
        link = file.read_text().strip()
        with httpx2.Client(base_url=server.url, trust_env=False) as browser:
            assert browser.post(link).status_code == 303
            assert browser.get("/v1/whoami").json()["role"] == "operator"
    assert not file.exists()


def test_the_link_is_printed_where_it_is_asked_for_s1188(tmp_path: Path) -> None:
    environment = ALONE | {"OBSERVATORY_PRINT_LOGIN": "true"}
    with Server(tmp_path / "data", environment=environment) as server:
        found = LINK.search(server.log)
        assert found and not (server.folder / "login.url").exists()
        assert "as operator" in server.log
        assert httpx2.post(found[0], trust_env=False).status_code == 303


def test_the_link_is_printed_on_a_terminal_s1188(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=clean_environment(**ALONE))
    os.close(theirs)
    received, deadline = "", time.monotonic() + 30
    try:
        while "people and scripts" not in received and time.monotonic() < deadline:
            received += os.read(ours, 4_096).decode()
        assert LINK.search(received) and "observatory login --user admin" in received
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(OSError):
            while os.read(ours, 4_096):
                pass
        process.wait(30)
        os.close(ours)


def analyst_of(server: Server) -> int:
    """Its process."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            parent = re.search(r"^PPid:\s+(\d+)", (place.parent / "status").read_text(), re.MULTILINE)
            is_ours = parent is not None and int(parent[1]) == server.pid
            if is_ours and b"observatory.analyst" in place.read_bytes():
                return int(place.parent.name)
    return 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system shows no environments")
def test_the_analyst_gets_no_secrets_in_its_environment_s1189(tmp_path: Path, postgres_url: str) -> None:
    """S1189: neither the gateway's settings nor what else was there; it works all the same."""
    secrets = {
        "OBSERVATORY_SMTP_URL": "smtps://me:hunter2@mail.example",
        "OBSERVATORY_SMTP_FROM": "ops@mail.example",
        "OBSERVATORY_LOG_KEY_PASSPHRASE": "hunter2-passphrase",
        "AWS_SECRET_ACCESS_KEY": "hunter2-aws",
        "PGPASSWORD": "hunter2-pg",
        "OBSERVATORY_DB": new_database(postgres_url),
    }
    with Server(tmp_path / "data", environment=secrets | EXECUTED) as server:
        pid = until(lambda: analyst_of(server))
        text = until(lambda: Path(f"/proc/{pid}/environ").read_bytes())
        assert b"hunter2" not in text and b"OBSERVATORY_" not in text and b"postgresql:" not in text
        assert b"PATH=" in text and b"hunter2" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        http = server.http("admin")
        assert server.send(decision_log()).status_code == 202
        until(lambda: http.get("/v1/insight/status").json()["lag_messages"] == 0)


def test_a_tls_key_that_everybody_can_read_is_refused_s1189(tmp_path: Path) -> None:
    files = Folder(tmp_path / "files")
    for mode, is_good in ((0o640, True), (0o604, False), (0o602, False), (0o600, True)):
        (files.path / "server.key").chmod(mode)
        settings = load({"tls_cert": f"{files.path}/server.crt", "tls_key": f"{files.path}/server.key"}, {})
        if is_good:
            Tls(settings)
            continue
        with pytest.raises(StartupError, match="tls_key: every user of this machine can read"):
            Tls(settings)


def test_over_tls_only_a_cookie_that_no_other_host_can_set_counts_s1189(tmp_path: Path) -> None:
    """S1189: and without TLS only the other, so that neither passes for the one that was given."""
    files = Folder(tmp_path / "files")
    with Secured(files, tmp_path / "data") as secured:
        link = secured.http("admin").post("/v1/logins", json={}).json()["url"]
        spent = httpx2.post(link, trust_env=False, verify=files.context())
        name, _, value = spent.headers["set-cookie"].partition(";")[0].partition("=")
        assert name == "__Host-observatory" and "secure" in spent.headers["set-cookie"].lower()
        for shown, code in ((name, 200), ("observatory", 401)):
            asked = secured.http("nobody").get("/v1/whoami", headers={"cookie": f"{shown}={value}"})
            assert asked.status_code == code, shown

"""The certificate panel: not configured, with the setup command; then owners and users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from observatory.features.certificates.authority import agent_uri
from tests.certifying import Folder, Secured
from tests.flows.server import Server
from tests.flows.test_tls import new_message
from tests.waiting import until
from tests.windows.conftest import BEGUN, Open, cookie_of
from tests.windows.looking import DESK, PHONE, Window


@pytest.mark.req(201)
def test_the_panel_tells_what_is_not_configured_and_what_is_s871(
    browser: Browser, opened: Open, deployment: Server, tmp_path: Path
) -> None:
    """S870: expiry as text and mark. S871: closed it shows its figure; a link opens it, on a phone
    too; an agent's page shows its binding."""
    window = opened(deployment, "/fleet?panel=certificates", phone=True, light=True)
    panel = window.role("tabpanel", "Certificates")
    expect(panel).to_contain_text("observatory tls init")
    expect(window.role("tab", re.compile("Certificates"))).to_contain_text("not configured")
    expect(window.role("tab", re.compile("Certificates"))).to_be_in_viewport(ratio=0.9)
    window.is_accessible()
    window.shot("certificates-phone-light")
    files = Folder(tmp_path / "files")
    mine = files.agent("ada-1", until=12.5)
    with Secured(files, tmp_path / "data") as gateway:
        assert isinstance(gateway, Secured)
        with gateway.showing(mine) as client:
            assert client.post("/v1/messages", json=new_message("ada-1")).status_code == 202
        with gateway.showing(None) as client:
            assert client.post("/v1/messages", json=new_message("bob-1")).status_code == 202
        body = {"kind": "uri", "value": agent_uri("ada-1")}
        http = gateway.http("operator")
        assert http.put("/v1/agents/ada-1/certificate", json=body).status_code == 200
        until(lambda: http.get("/v1/agents/ada-1/certificate").json()["shown"])
        context = browser.new_context(
            viewport=DESK,  # type: ignore[arg-type]
            color_scheme="dark",
            reduced_motion="reduce",
            ignore_https_errors=True,
        )
        context.add_init_script(BEGUN % "dark")
        context.add_cookies([cookie_of(gateway, "operator")])  # type: ignore[list-item]
        secure = Window(context, gateway.url).go("/fleet").settled()
        closed = secure.role("button", re.compile("Certificates"))
        expect(closed).to_contain_text("! expires in 12 days")
        closed.click()
        listed = secure.role("list", "Certificates in use")
        for words in ("Client certificates are optional", "this gateway, issued by Test authority"):
            expect(listed).to_contain_text(words)
        row = listed.get_by_role("listitem").filter(has_text="client, issued by")
        expect(row).to_contain_text("! expires in 12 days")
        expect(row.get_by_role("link", name="ada-1")).to_be_visible()
        expect(listed).to_contain_text("1 of 2 agents last connected with a certificate, 1 is bound to one.")
        expect(listed).to_contain_text("Without: bob-1")
        secure.is_accessible()
        secure.shot("certificates-desk-dark")
        row.get_by_role("link", name="ada-1").click()
        secure.at("/registry/ada-1")
        own = secure.role("region", "Certificate")
        expect(own).to_contain_text("any certificate with this URI")
        expect(own).to_contain_text("Last connected with ada-1, issued by Test authority.")
        secure.shot("certificates-agent-dark")
        secure.go("/fleet?panel=certificates")
        secure.page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        expect(secure.role("tab", re.compile("Certificates"))).to_be_in_viewport()
        expect(secure.role("tabpanel", "Certificates")).to_contain_text("expires in 12 days")
        secure.shot("certificates-phone-dark")
        assert secure.faults == []
        context.close()

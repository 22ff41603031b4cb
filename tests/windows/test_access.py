"""God Mode's other boards: users, keys and budgets, each verified by its effect."""

from __future__ import annotations

import re
import uuid
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from observatory.http.authentication import PERMISSIONS
from tests.flows.server import Server
from tests.waiting import until
from tests.windows.conftest import Open
from tests.windows.looking import Window

Json = dict[str, Any]


@pytest.mark.req(120)
def test_users_keys_and_budgets_are_made_changed_and_ended_s749_s750_s751_s752(
    atlas: Server, opened: Open
) -> None:
    """S749, S750, S751, S752: secrets shown once, role differences, caps with optimistic concurrency."""
    mark, admin = uuid.uuid4().hex[:6], atlas.http("admin")
    window = opened(atlas, "/god-mode?board=access", role="admin")
    page = window.page
    for role, granted in PERMISSIONS.items():
        for permission in PERMISSIONS["admin"] if role != "agent" else ():
            cell = page.locator(f'td[data-role="{role}"][data-permission="{permission}"]')
            expect(cell).to_contain_text("yes" if permission in granted else "no")
    page.get_by_role("button", name="New user…").click()
    form = page.get_by_role("form", name="New user")
    form.get_by_label("Name").fill("admin")
    with window.forgiving(r"answer: 409 POST"):
        form.get_by_role("button", name="Create user and show invitation").click()
        expect(form).to_contain_text("a user of this name already exists")
    form.get_by_label("Name").fill(f"ada-{mark}")
    form.get_by_role("button", name="Create user and show invitation").click()
    once = page.get_by_role("region", name=f"Invitation for ada-{mark}")
    link = once.locator("code").inner_text()
    assert httpx2.post(link, trust_env=False).status_code in (200, 302, 303, 307)
    once.get_by_role("button", name="I have saved it").click()
    expect(page.get_by_text("login?token=")).to_have_count(0)
    window.at(".*user=usr_")
    chosen = page.get_by_role("region", name=f"ada-{mark}")
    chosen.get_by_label("Role").select_option("operator")
    expect(chosen).to_contain_text("adds: verify the audit trail")
    # Meanwhile another admin makes her auditor.
    user = next(one for one in admin.get("/v1/users").json()["items"] if one["name"] == f"ada-{mark}")
    with page.expect_response(lambda answer: answer.url.endswith("/v1/users") and answer.ok):
        pass
    page.route("**/v1/users", lambda route: route.abort())  # the page has not heard of it yet
    with window.forgiving(r"answer: 409 PUT", r"request: GET .*/v1/users"):
        admin.put(f"/v1/users/{user['user_id']}", json={"role": "auditor"})
        chosen.get_by_role("button", name=f"Change role of ada-{mark} to operator").click()
        expect(chosen.get_by_role("alert")).to_contain_text("the role was changed to auditor meanwhile")
        page.unroute("**/v1/users")
        expect(
            window.role("table", "Users").get_by_role("row", name=re.compile(f"ada-{mark}"))
        ).to_contain_text("auditor")
    page.get_by_role("button", name="New key…").click()
    form = page.get_by_role("form", name="New key")
    form.get_by_label("Label").fill(f"key-{mark}")
    form.get_by_label("Bound to one agent").fill(f"bound-{mark}")
    form.get_by_role("button", name="Create key").click()
    once = page.get_by_role("region", name=f"Key “key-{mark}”").filter(has=page.locator("code"))
    secret = once.locator("code").inner_text()
    headers = {"Authorization": f"Bearer {secret}"}
    assert httpx2.get(f"{atlas.url}/v1/whoami", headers=headers, trust_env=False).json()["role"] == "agent"
    window.is_accessible()
    window.shot("god-mode-access")
    once.get_by_role("button", name="I have saved it").click()
    page.get_by_role("button", name="Revoke…").click()
    window.confirmed(f"Revoke “key-{mark}”", f"key-{mark}")
    expect(window.role("table", "Keys").get_by_role("row", name=re.compile(f"key-{mark}"))).to_contain_text(
        "× revoked"
    )
    assert httpx2.get(f"{atlas.url}/v1/whoami", headers=headers, trust_env=False).status_code == 401
    budgets(atlas, window, f"cluster-{mark}")


def budgets(atlas: Server, window: Window, cluster: str) -> None:
    page, admin = window.page, atlas.http("admin")
    page.get_by_role("link", name="Budgets").click()
    window.at(r".*board=budgets")
    page.get_by_role("button", name="New budget…").click()
    form = page.get_by_role("form", name="New budget")
    form.get_by_label("Scope").select_option("cluster")
    form.get_by_label("Which cluster").fill(cluster)
    save = form.get_by_role("button", name="Set budget")
    for soft, hard, words in (
        ("5", "4", "must not exceed"),
        ("x", "", "must be"),
        ("", "", "a hard cap or both"),
    ):
        form.get_by_label("Soft cap, $").fill(soft)
        form.get_by_label("Hard cap, $").fill(hard)
        expect(form).to_contain_text(words)
        expect(save).to_be_disabled()
    form.get_by_label("Soft cap, $").fill("1")
    form.get_by_label("Hard cap, $").fill("2")
    save.click()
    # Dismiss the toast with its undo, which would remove the budget again.
    received = window.role("region", "Notifications").locator("[data-tone]")
    said = received.filter(has_text=f"The caps of cluster {cluster} apply")
    said.get_by_role("button", name="Close").click()
    expect(said).to_have_count(0)
    form = page.get_by_role("form", name=f"Budget of cluster {cluster}")
    form.get_by_label("Hard cap, $").fill("9")
    # Another admin is first: theirs is shown, mine is kept and not saved.
    theirs = {"scope": "cluster", "target": cluster, "period": "daily", "soft": 1, "hard": 7}
    assert admin.put("/v1/budgets", json=theirs).status_code == 200
    with window.forgiving(r"answer: 409 PUT"):
        form.get_by_role("button", name="Save caps").click()
        expect(form.get_by_role("alert")).to_contain_text("Someone else changed this budget")
    expect(form.get_by_role("alert")).to_contain_text("hard 7 now")
    window.shot("god-mode-budgets")
    form.get_by_role("button", name="Overwrite with mine").click()
    form.get_by_role("button", name="Save caps").click()

    def caps() -> list[float]:
        return [one["hard"] for one in admin.get("/v1/budgets").json()["items"] if one["target"] == cluster]

    until(lambda: caps() == [9] or None)
    # The gateway has it before the page offers undo.
    expect(said).to_be_visible()
    window.press("u")
    until(lambda: caps() == [7] or None)
    form.get_by_role("button", name="Remove…").press("Enter")  # toasts may lie over it
    page.get_by_role("group", name="Remove budget").get_by_role("button", name="Remove budget").click()
    until(lambda: caps() == [] or None)
    trail = window.role("region", "Trail").get_by_role("row")
    expect(trail.filter(has_text=f"budget cluster:{cluster} removed")).to_have_count(1)

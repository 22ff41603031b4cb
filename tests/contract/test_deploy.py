"""What is deployed is what there is: compose.yaml, Dockerfile and chart name real settings, files and doors.

Neither Docker nor a cluster is needed. Where `helm` is in the path the chart is rendered and looked at too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml

from observatory import settings
from observatory.cli import app

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/hypervisor-observatory"
TEMPLATES = sorted(CHART.glob("templates/*"))
DEPLOYED = [ROOT / "compose.yaml", ROOT / "Dockerfile", ROOT / "deploy/env.example", *TEMPLATES]
Json = dict[str, Any]
# Not settings of a gateway: what compose is told by .env.
SECRETS = {"POSTGRES_PASSWORD", "GATEWAY_PASSWORD", "NATS_GATEWAY_PASSWORD", "NATS_AGENTS_PASSWORD"}
OF_COMPOSE = {*SECRETS, "PUBLIC_URL", "ALLOWED_HOSTS", "LOG_KEY_PASSPHRASE", "BIND", "PORT"}


def known() -> set[str]:
    return {f"OBSERVATORY_{field.name.upper()}" for field in msgspec.structs.fields(settings.Settings)}


def compose() -> Json:
    found: Json = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return found


def test_every_setting_that_is_deployed_is_one_s854() -> None:
    """S854: a misspelt name would keep the gateway from starting, or a limit from holding."""
    for path in DEPLOYED:
        names = set(re.findall(r"OBSERVATORY_[A-Z0-9_]*[A-Z0-9]", path.read_text()))
        assert names <= known(), (path.name, names - known())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {f"OBSERVATORY_{name.upper()}" for name in values["settings"]} <= known()
    schema = json.loads((CHART / "values.schema.json").read_text())
    own = schema["properties"]["settings"]["propertyNames"]["not"]["enum"]
    assert {f"OBSERVATORY_{name.upper()}" for name in own} <= known()


def test_compose_names_files_commands_and_secrets_that_there_are() -> None:
    found = compose()
    services = found["services"]
    gateways = [name for name in services if name.startswith("gateway-")]
    assert len(gateways) == 2
    for name, one in services.items():
        tag = one["image"].partition("@")[0].rpartition(":")[2]
        assert tag and tag != "latest" and "/" not in tag, name
        for volume in one.get("volumes", []):
            source = volume.partition(":")[0]
            is_there = (ROOT / source).is_file() if source.startswith("./") else source in found["volumes"]
            assert is_there, volume
        assert set(one.get("depends_on", [])) <= services.keys()
        assert "healthcheck" in one or name in ("balancer", "prepare")
    received = (ROOT / "deploy/env.example").read_text()
    wanted = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    assert wanted == OF_COMPOSE == set(re.findall(r"^([A-Z_]+)=", received, re.M))
    assert not re.search(rf"^({'|'.join(SECRETS)})=.", received, re.M), "a secret that everybody knows"
    balancer = (ROOT / "deploy/haproxy.cfg").read_text()
    assert set(re.findall(r"server (\S+) (\S+):4800 check", balancer)) == {(one, one) for one in gateways}
    own = [services[name]["volumes"] for name in gateways]
    assert len({volumes[0] for volumes in own}) == 2, "each gateway has a folder of its own"
    assert len({volumes[1] for volumes in own}) == 1, "and the key of the log is that of all"


def test_the_image_is_of_this_repository_and_nobodys_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    stages = re.findall(r"^FROM \S+", text, re.M)
    assert len(stages) == 2 and not re.search(r":latest\b", text)
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
            sent = (ROOT / ".dockerignore").read_text().split()
            assert f"!{name.partition('/')[0]}" in sent, name
    last = text.rpartition("FROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.M)
    assert re.findall(r"^ENTRYPOINT (.+)$", last, re.M) == ['["observatory"]']
    assert json.loads(re.findall(r"^CMD (.+)$", last, re.M)[0])[0] in list(app)
    port = settings.Settings().port
    assert f"EXPOSE {port}" in last
    assert f"containerPort: {port}" in (CHART / "templates/deployment.yaml").read_text()


def test_the_charts_values_are_what_its_templates_and_its_schema_know() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(values, schema)
    for path in TEMPLATES:
        for name in re.findall(r"\.Values\.([A-Za-z.]+[A-Za-z])", path.read_text()):
            part: Any = values
            for word in name.split("."):
                assert word in part, (path.name, name)
                part = part[word]
    for name in values:
        assert any(f".Values.{name}" in path.read_text() for path in TEMPLATES), f"{name} is used nowhere"
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == settings.VERSION


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 0},
        {"replica": 3},
        {"image": {"repository": "x", "tag": "latest"}},
        {"settings": {"db": "postgresql://everybody:can-read-this@db/observatory"}},
        {"settings": {"OBSERVATORY_LOG_LEVEL": "debug"}},
        {"log": {"accessMode": "ReadOnlyMany"}},
        {"publicUrl": "observatory.example"},
    ],
)
def test_a_value_that_makes_no_sense_is_refused(wrong: Json) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values | wrong, schema)


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    beside = Path(sysconfig.get_path("scripts")) / "helm"
    found = str(beside) if beside.exists() else shutil.which("helm")
    if found is None:
        pytest.skip("helm is not on this machine")
    return subprocess.run([found, *words], capture_output=True, text=True, timeout=60, check=False)


def test_the_chart_renders_gateways_that_share_their_secrets_and_their_key() -> None:
    done = helm(
        *("template", "house", str(CHART), "--set", "existingSecret=urls", "--set", "ingress.enabled=true"),
        *("--set", "ingress.tlsSecret=tls", "--set", "credentialsSecret=keys", "--set", "replicas=3"),
    )
    assert done.returncode == 0, done.stderr
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    assert set(made) == {
        *("Deployment", "Service", "Ingress", "NetworkPolicy"),
        *("PodDisruptionBudget", "PersistentVolumeClaim"),
    }
    pod = made["Deployment"]["spec"]["template"]["spec"]
    (gateway,) = pod["containers"]
    given = {one["name"]: one for one in gateway["env"]}
    assert set(given) <= known()
    assert given["OBSERVATORY_DB"]["valueFrom"]["secretKeyRef"] == {"name": "urls", "key": "db"}
    assert given["OBSERVATORY_ALLOWED_HOSTS"]["value"] == "observatory.example"
    assert all(isinstance(one.get("value", ""), str) for one in gateway["env"])
    assert gateway["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert pod["securityContext"]["runAsNonRoot"] is True
    refused = helm("template", "house", str(CHART))
    assert refused.returncode != 0 and "existingSecret" in refused.stderr

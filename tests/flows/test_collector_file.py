"""The collector file of `examples/`: the seed's, completed so that a collector starts with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "examples/otel-collector"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def config() -> Json:
    found: Json = yaml.safe_load((FOLDER / "otel-collector-config.yaml").read_text())
    return found


@pytest.mark.req(516)
def test_it_takes_otlp_over_grpc_on_every_address_s574(config: Json) -> None:
    assert config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"] == "0.0.0.0:4317"


@pytest.mark.req(517)
def test_it_waits_five_seconds_for_a_batch_s574(config: Json) -> None:
    assert config["processors"]["batch"]["timeout"] == "5s"


@pytest.mark.req(518)
def test_it_lets_one_tenant_through_by_strict_match_of_the_resource_s574(config: Json) -> None:
    include = config["processors"]["filter"]["logs"]["include"]
    assert include["match_type"] == "strict"
    (wanted,) = include["resource_attributes"]
    assert wanted["key"] == "av.tenant.id" and wanted["value"].startswith("tnt_")


def named(config: Json, name: str) -> Json:
    """An exporter by the seed's name; a collector knows it by its type, before the slash."""
    (found,) = [value for key, value in config["exporters"].items() if name in key.split("/")]
    assert isinstance(found, dict)
    return found


@pytest.mark.req(519)
def test_it_sends_to_splunk_s574(config: Json) -> None:
    splunk = named(config, "splunkhec")
    assert splunk["endpoint"] == "https://customer-splunk.example.com:8088/services/collector"
    assert splunk["token"] == "${env:SPLUNK_HEC_TOKEN}", "no secret in a file"
    assert [key.split("/")[0] for key in config["exporters"]] == ["splunk_hec", "datadog"], "types it knows"


@pytest.mark.req(520)
def test_it_sends_to_datadog_with_the_key_of_the_environment_s574(config: Json) -> None:
    assert named(config, "datadog")["api"]["key"] == "${env:DD_API_KEY}"


@pytest.mark.req(521)
def test_its_one_pipeline_is_the_seeds_s574(config: Json) -> None:
    """And nothing in it is defined without being used, or used without being defined."""
    (pipeline,) = config["service"]["pipelines"].values()
    assert list(config["service"]["pipelines"]) == ["logs"]
    assert pipeline["receivers"] == ["otlp"] and pipeline["processors"] == ["batch", "filter"]
    assert [name.split("/")[-1] for name in pipeline["exporters"]] == ["splunkhec", "datadog"]
    for kind in ("receivers", "processors", "exporters"):
        assert set(pipeline[kind]) == set(config[kind])

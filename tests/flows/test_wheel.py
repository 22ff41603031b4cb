"""A clean checkout becomes the whole product: pages in sdist and wheel, Node asked for once."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import windows

UV = Path(sys.executable).parent / "uv"
NEEDED = ("src", "ui", "tools", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore")
NOT_IN_A_CLONE = shutil.ignore_patterns("node_modules", "windows", "__pycache__", "*.new")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An sdist of a clean checkout and a wheel of that sdist, each in an environment of its own."""
    clone = tmp_path_factory.mktemp("clone")
    for name in NEEDED:
        source = windows.ROOT / name
        if source.is_dir():
            shutil.copytree(source, clone / name, ignore=NOT_IN_A_CLONE)
        else:
            shutil.copyfile(source, clone / name)
    out = clone / "dist"
    run = subprocess.run(
        [str(UV), "build", "--python", sys.executable, "--out-dir", str(out), str(clone)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return out, run.stdout + run.stderr


def pages_of(names: list[str]) -> set[str]:
    return {
        name.partition("observatory/http/windows/")[2]
        for name in names
        if "observatory/http/windows/" in name
    }


@pytest.mark.timeout(300)
def test_sdist_and_wheel_hold_the_same_built_windows(built: tuple[Path, str]) -> None:
    folder, _ = built
    with tarfile.open(next(folder.glob("*.tar.gz"))) as sdist:
        inside = pages_of([member.name for member in sdist.getmembers() if member.isfile()])
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        assert pages_of(wheel.namelist()) == inside
        page = wheel.read("observatory/http/windows/index.html").decode()
        manifest = json.loads(wheel.read("observatory/http/windows/manifest.json"))
        names = wheel.namelist()
    assert "index.html" in inside and "manifest.json" in inside
    addresses = set(re.findall(r'"/(assets/[^"]+)"', page))
    assert addresses and addresses <= inside
    # The smallest are not worth packing.
    assert any({f"{address}.br", f"{address}.gz"} <= inside for address in addresses)
    assert {chunk["file"] for chunk in manifest.values()} <= inside
    assert not [name for name in names if "node_modules" in name or name.startswith("ui/")]


@pytest.mark.timeout(300)
def test_the_wheel_carries_the_licenses_of_what_is_in_it_s1260(built: tuple[Path, str]) -> None:
    """S1260: in the package, where the product reads them, and where installers look for them."""
    text = (windows.ROOT / "src/observatory/THIRD_PARTY_LICENSES.txt").read_bytes()
    with zipfile.ZipFile(next(built[0].glob("*.whl"))) as wheel:
        assert wheel.read("observatory/THIRD_PARTY_LICENSES.txt") == text
        (listed,) = [
            name for name in wheel.namelist() if re.search(r"dist-info/licenses/.*THIRD_PARTY", name)
        ]
        assert wheel.read(listed) == text


@pytest.mark.timeout(300)
def test_node_is_used_once_and_a_wheel_of_an_sdist_needs_none(built: tuple[Path, str]) -> None:
    _, said = built
    assert said.count("building the windows") == 1
    assert said.index("building the windows") < said.index("Building wheel from source distribution")

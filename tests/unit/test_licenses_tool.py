"""The licenses of what is in the wheel: none is missing, all are of the present lock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import licenses, windows


def test_every_package_of_the_pages_has_its_license_in_the_wheel_s1260() -> None:
    """S1260: by name, version and license, with a text; so has a builder whose helpers are inside."""
    parts = licenses.TARGET.read_text("utf-8").split(licenses.RULE + "\n")
    received = dict(zip((one.strip() for one in parts[1::2]), parts[2::2], strict=True))
    wanted = [licenses.heading(package) for package in licenses.packages()]
    assert list(received) == wanted
    assert {"elkjs", "react", "rolldown", "vite", "world-atlas"} <= {one.split()[0] for one in wanted}
    assert not [heading for heading, text in received.items() if len(text) < 300]
    for heading, text in received.items():
        assert re.search(r"copyright|author|unlicense|public license", text, re.IGNORECASE), heading


def test_source_of_what_is_under_the_eclipse_license_is_pointed_to_s1260() -> None:
    text = licenses.TARGET.read_text("utf-8").partition("\nelkjs ")[2].partition(f"{licenses.RULE}\n")[2]
    notice = text.partition("# Eclipse Public License")[0]
    assert "https://github.com/kieler/elkjs" in notice and "https://github.com/eclipse-elk/elk" in notice


def test_the_texts_are_what_the_packages_bring_s1261() -> None:
    """S1261: made again from the packages, the file is the same."""
    if not (windows.UI / "node_modules").is_dir():
        pytest.skip("the packages of ui/ are not installed")
    assert licenses.TARGET.read_text("utf-8") == licenses.document(), "run make licenses"


def test_a_package_without_a_license_is_a_fault_s1261(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "UI", tmp_path)
    (tmp_path / "node_modules/bare").mkdir(parents=True)
    bare = licenses.Package("node_modules/bare", "bare", "1.0.0", "MIT")
    with pytest.raises(licenses.NoText, match=r"bare 1\.0\.0"):
        licenses.text_of(bare)

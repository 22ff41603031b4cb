"""`observatory claude-code`: our hooks in a settings file of Claude Code, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.flows.server import observatory

THEIRS = (
    '{\n\t"model": "opus",\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}\n}\n'
)


def test_install_shows_what_it_changes_twice_is_once_and_uninstall_takes_only_ours_s890(
    tmp_path: Path,
) -> None:
    file = tmp_path / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(THEIRS)
    file.chmod(0o640)
    here = ("--project", str(tmp_path))
    shown = observatory("claude-code", "install", "--dry-run", *here)
    assert shown.returncode == 0 and "+" in shown.stdout and file.read_text() == THEIRS
    done = observatory("claude-code", "install", "--ask", "Write", *here)
    assert (
        done.returncode == 0 and '"command": "observatory hook --ask=Write --wait=590 --box=5"' in done.stdout
    )
    once = file.read_text()
    assert '\n\t"model": "opus"' in once and file.stat().st_mode & 0o777 == 0o640
    assert json.loads(once)["hooks"]["Stop"][0] == {"hooks": [{"type": "command", "command": "beep"}]}
    again = observatory("claude-code", "install", "--ask", "Write", *here)
    assert "already has the hooks" in again.stderr and file.read_text() == once
    assert "PreToolUse\tobservatory hook" in observatory("claude-code", "status", *here).stdout
    assert observatory("claude-code", "uninstall", *here).returncode == 0
    assert json.loads(file.read_text()) == json.loads(THEIRS)
    assert "has none of our hooks" in observatory("claude-code", "uninstall", *here).stderr


def test_a_file_that_cannot_be_understood_is_left_untouched_s890(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    for text in ('{"hooks": ', "[]", '{"hooks": {"Stop": "x"}}', "// mine\n{}"):
        file.write_text(text)
        received = observatory(
            "claude-code", "install", "--user", environment={"CLAUDE_CONFIG_DIR": str(tmp_path)}
        )
        assert (
            received.returncode == 1
            and "it was not changed" in received.stderr
            and "Traceback" not in received.stderr
        )
        assert file.read_text() == text
    assert observatory("claude-code", "install", "--user", "--project", str(tmp_path)).returncode != 0

"""`observatory claude-code`: install, uninstall or show our hooks in a `settings.json` of Claude Code.

Changes are shown as a diff. A file that is no JSON, or whose hooks have another form, is not changed.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from observatory.cli.terminal import CommandFailed, InvalidArguments, note, say
from observatory.sdk.integrations.claude_code import settings
from observatory.sdk.integrations.claude_code.hook import BOX_S, WAIT_S, HookOptions

User = Annotated[bool, Parameter(negative=(), help="In ~/.claude (or CLAUDE_CONFIG_DIR): all your projects.")]
Project = Annotated[Path | None, Parameter(help="In .claude of this folder; without both, of this one.")]
Dry = Annotated[bool, Parameter(negative=(), help="Show what would change and write nothing.")]

claude_code = App(name="claude-code", help="Claude Code's hooks: install, uninstall, status.")


def hook() -> None:
    """Answer one hook of Claude Code: its JSON on stdin, the answer on stdout. Installed by `claude-code`.

    Options: --agent NAME, --ask TOOLS (names or globs that wait for a person, with commas), --permissions
    (a person at the Observatory answers what Claude Code would ask its user), --on-away deny (no tool runs
    while the gateway is away), --wait SECONDS (at a gate), --box SECONDS (for telemetry).
    """


@claude_code.command(name="install")
def install(
    *,
    user: User = False,
    project: Project = None,
    agent: Annotated[str | None, Parameter(help="Its name here; else claude-code-FOLDER.")] = None,
    ask: Annotated[str, Parameter(help="Tools that wait for a person: names or globs, with commas.")] = "",
    permissions: Annotated[
        bool, Parameter(negative=(), help="A person here answers what Claude Code would ask its user.")
    ] = False,
    on_away: Annotated[
        Literal["allow", "deny"], Parameter(help="Whether tools may run while the gateway is away.")
    ] = "allow",
    wait: Annotated[float, Parameter(help="Seconds a tool may wait for a person.")] = WAIT_S,
    box: Annotated[float, Parameter(help="Seconds telemetry may take.")] = BOX_S,
    command: Annotated[str | None, Parameter(help="How this program is called there.")] = None,
    dry_run: Dry = False,
) -> None:
    """Put our hooks into the settings; doing it twice changes nothing. Everything else stays as it is."""
    if not (0 < wait <= 86_400 and 0 < box <= 60):
        raise InvalidArguments(
            "--wait must be more than 0 and at most a day, --box more than 0 and at most a minute"
        )
    path = _path(user, project)
    tools = tuple(one.strip() for one in ask.split(",") if one.strip())
    options = HookOptions(agent, tools, wait, box, permissions, on_away == "deny")
    changed = _change(path, lambda was: settings.installed(was, command or _command(user), options), dry_run)
    if not changed:
        note(f"{path} already has the hooks")
    elif not dry_run:
        note(f"written to {path}: the hooks apply to sessions started from now on")


@claude_code.command(name="uninstall")
def uninstall(*, user: User = False, project: Project = None, dry_run: Dry = False) -> None:
    """Remove our hooks, and only ours."""
    path = _path(user, project)
    if not _change(path, settings.removed, dry_run):
        note(f"{path} has none of our hooks")
    elif not dry_run:
        note(f"removed from {path}")


@claude_code.command(name="status")
def status(*, user: User = False, project: Project = None) -> None:
    """Which of our hooks are installed there."""
    path = _path(user, project)
    found = _judged(path, settings.ours)
    missing = [event for event in settings.EVENTS if event not in found]
    say(*(f"{event}\t{command}" for event, command in found.items()))
    if missing:
        note(f"{path}: not installed: {', '.join(missing)}. Run: observatory claude-code install")


def _path(user: bool, project: Path | None) -> Path:
    if user and project is not None:
        raise InvalidArguments("give --user or --project, not both")
    if user:
        home = os.environ.get("CLAUDE_CONFIG_DIR")
        folder = Path(home) if home else Path.home() / ".claude"
    else:
        folder = (project or Path.cwd()) / ".claude"
        if not folder.parent.is_dir():
            raise InvalidArguments(f"{folder.parent} is not a folder")
    return (folder / "settings.json").resolve()


def _command(user: bool) -> str:
    """A project's settings are shared, so they name no path of this machine."""
    script = Path(sys.executable).parent / "observatory"
    return f"{shlex.quote(str(script))} hook" if user and script.exists() else "observatory hook"


def _change(path: Path, change: Any, dry_run: bool) -> bool:
    """Show and write the changed file; False if nothing changes."""
    was = _text(path)
    value = _judged(path, change)
    if value == _decoded(path, was):
        return False
    indent = re.search(r"\n([ \t]+)\S", was)
    step = (len(indent[1]) if indent[1][0] == " " else 0) if indent else 2
    new = msgspec.json.format(msgspec.json.encode(value), indent=step or 2).decode() + "\n"
    if step == 0:
        new = re.sub(r"^( {2})+", lambda found: "\t" * (len(found[0]) // 2), new, flags=re.MULTILINE)
    lines = difflib.unified_diff(was.splitlines(), new.splitlines(), str(path), str(path), lineterm="", n=1)
    if not dry_run:
        _write(path, new)  # before the diff: a pipe that closes early must not prevent the write
    say(*lines)
    return True


def _judged(path: Path, judge: Any) -> Any:
    try:
        return judge(_decoded(path, _text(path)))
    except settings.UnknownSettingsForm as wrong:
        raise CommandFailed(f"{path}: {wrong}; it was not changed. Fix it by hand and try again") from None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as failed:
        raise CommandFailed(f"{path} cannot be read ({failed}); it was not changed") from None


def _decoded(path: Path, text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as wrong:
        raise CommandFailed(
            f"{path} is not a JSON object ({wrong}); it was not changed. Fix it by hand and try again"
        ) from None


def _write(path: Path, text: str) -> None:
    """Write atomically: a concurrent reader gets the old or the new file."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        fresh.unlink(missing_ok=True)
        # Such a file may hold keys: it must be private from its first byte on.
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError as failed:
        fresh.unlink(missing_ok=True)
        raise CommandFailed(f"{path} cannot be written ({failed.strerror}); it was not changed") from None

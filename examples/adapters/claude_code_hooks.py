"""Claude Code observed through its hooks: installs them in a folder and runs `claude -p` with one prompt.

    observatory serve                   # in another terminal
    python examples/adapters/claude_code_hooks.py /tmp/try-hooks "Say hello in the shell"

In your own projects `observatory claude-code install` is all: see docs/guides/claude-code.md.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def claude() -> str:
    """The program: on your path, or bundled with the Agent SDK."""
    if (found := shutil.which("claude")) is not None:
        return found
    import claude_agent_sdk

    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")


def main(folder: Path, prompt: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    here = [sys.executable, "-P", "-m", "observatory.cli"]
    install = ["claude-code", "install", "--project", str(folder), "--ask", "Write,Edit"]
    command = ["--command", shlex.join([*here, "hook"])]
    subprocess.run([*here, *install, *command], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run(
        [claude(), "-p", prompt, "--allowedTools", "Bash,Write"], cwd=folder, check=False
    ).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} FOLDER PROMPT")
    sys.exit(main(Path(sys.argv[1]), " ".join(sys.argv[2:])))

"""What a command cannot do is one sentence: found by walking over every command there is."""

from __future__ import annotations

import io
import os
import runpy
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import BoundArguments
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from cyclopts import App, ArgumentCollection

from observatory.cli import commands, main
from observatory.cli.commands import app
from tests.flows.server import COMMAND, Server, clean_environment, observatory

# They speak a protocol on stdin, or are told apart before the parser.
OTHERWISE = {("mcp",), ("hook",), ("claude-code",)}
GATEWAYS = {("serve",), ("demo",)}  # they would go on: they are asked in processes of their own
FILES = {"--file", "--mapping", "--payload", "--secret-file"}  # others are paths by their type
GARBAGE = b"\xff\xfe\x00 garbage {"
NOWHERE = "/proc/nowhere"


def all_commands(group: App = app, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in group:
        if not name.startswith("-") and (*words, name) not in OTHERWISE | GATEWAYS:
            found = group[name]
            if found.default_command is not None:
                yield (*words, name), found
            yield from all_commands(found, (*words, name))


def value_of(hint: Any) -> str:
    for one in (hint, *get_args(hint)):
        if get_origin(one) is Literal:
            return str(get_args(one)[0])
        if one in (int, float):
            return "1"
    return "none-such"


@dataclass(frozen=True)
class Walked:
    """A command whose words are read once: that takes far longer than to be refused."""

    words: tuple[str, ...]
    arguments: ArgumentCollection
    options: frozenset[str]
    files: tuple[str, ...]
    carry_out: Callable[..., Any]
    bound: BoundArguments

    def with_options(self, options: dict[str, str]) -> Callable[..., Any] | None:
        """What it does when they are given too; None where it has no such option."""
        if not {f"--{name.replace('_', '-')}" for name in options} <= self.options:
            return None
        values = OrderedDict(self.bound.arguments)
        for name, value in options.items():
            if name in self.bound.signature.parameters:
                values[name] = value
            else:
                values["gateway"] = replace(values["gateway"], **{name: value})
        bound = BoundArguments(self.bound.signature, values)
        return lambda **_: self.carry_out(*bound.args, **bound.kwargs)


def walked(words: tuple[str, ...], command: App) -> Walked:
    collected = command.assemble_argument_collection()
    arguments = [one for one in collected if one.names and one.show]
    options = frozenset(name for one in arguments for name in one.names)
    files = tuple(one.name for one in arguments if one.name in FILES or "Path" in str(one.hint))
    placed = [word for word in ("--yes", "--key=none-such") if word.partition("=")[0] in options]
    given = [*words, *filled(collected, {}), *placed]
    carry_out, bound, _ = app.parse_args(given, exit_on_error=False, print_error=False)
    return Walked(words, collected, options, files, carry_out, bound)


def filled(arguments: ArgumentCollection, given: dict[str, str]) -> list[str]:
    """What is required, with something in each, and what is given."""
    found: list[str] = []
    for one in arguments:
        value = given.get(one.name) if one.names else None
        if value is not None or (one.required and one.show):
            value = value or value_of(one.hint)
            found += [value] if one.index is not None and one.required else [one.name, value]
    return found


@pytest.fixture(scope="module")
def walk() -> list[Walked]:
    return [walked(words, command) for words, command in all_commands()]


class Ends:
    """How commands end, in this process: an exception that is no end of a command is a test's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        for name in os.environ.keys() - clean_environment().keys():
            monkeypatch.delenv(name)
        monkeypatch.setenv("NO_PROXY", "*")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        monkeypatch.setattr(os, "umask", lambda _: 0)  # of the tests, too
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.wrong: list[str] = []

    def of(self, words: list[str], carry_out: Callable[..., Any] | None = None) -> int:
        self._monkeypatch.setattr(sys, "argv", ["observatory", *words])
        self._monkeypatch.setattr(commands, "app", carry_out or partial(app, words))
        trouble, code = "", 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except Exception as error:  # noqa: BLE001  what Python would have shown as a traceback
            trouble = repr(error)
        said = self._capsys.readouterr()
        sentences = [line for line in said.err.splitlines() if line.startswith("observatory: ")]
        is_told = said.err.splitlines()[-1:] == sentences and len(sentences) == 1
        if trouble or code not in (0, 1, 2) or (code and not is_told and not said.out):
            self.wrong.append(f"{' '.join(words)}: {trouble or code} {said.err!r}")
        return code


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ends:
    return Ends(monkeypatch, capsys)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """What may stand where a folder or a file is meant."""
    made = tmp_path / "places"
    made.mkdir()
    (made / "garbage").write_bytes(GARBAGE)
    for name, kept in (("damaged", GARBAGE), ("listed", b"[]"), ("keyless", b'{"url":"http://127.0.0.1:9"}')):
        (made / name).mkdir(mode=0o700)
        (made / name / "credentials.json").write_bytes(kept)
        (made / name / "observatory.db").write_bytes(GARBAGE)
    (made / "empty").mkdir(mode=0o700)
    return {path.name: str(path) for path in made.iterdir()} | {"nowhere": NOWHERE}


@pytest.fixture(scope="module")
def taken() -> Iterator[str]:
    """An address where nobody answers: bound, and no listener."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def walk_over(walk: list[Walked], ends: Ends, options: dict[str, str]) -> set[int]:
    codes = set()
    for one in walk:
        if (carry_out := one.with_options(options)) is not None:
            codes.add(ends.of([*one.words], carry_out))
    assert not ends.wrong, "\n".join(ends.wrong)
    assert codes
    return codes


@pytest.mark.parametrize("place", ["nowhere", "garbage", "damaged", "listed", "keyless"])
def test_no_command_ends_in_a_traceback_of_a_folder_s1251(
    walk: list[Walked], ends: Ends, places: dict[str, str], place: str
) -> None:
    """S1251, S1310: one that cannot be, a file, and folders with damaged or foreign files in them."""
    walk_over(walk, ends, {"data": places[place]})


def test_no_command_ends_in_a_traceback_where_no_gateway_answers_s1251(
    walk: list[Walked], ends: Ends, taken: str
) -> None:
    """S1251."""
    assert 0 not in walk_over(walk, ends, {"url": f"http://{taken}", "key": "obs_none"})


@pytest.mark.parametrize("key", ["obs_none", "viewer"])
def test_no_command_ends_in_a_traceback_when_the_gateway_refuses_s1251(
    walk: list[Walked], ends: Ends, server: Server, key: str
) -> None:
    """S1251: the key is wrong, or may only read; everything that is named is unknown."""
    key = server.key(key) if key == "viewer" else key
    ending = [one for one in walk if one.words != ("tail",)]
    walk_over(ending, ends, {"url": server.url, "key": key})


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://[::1", "obs_none"),
        ("http://127.0.0.1:99999", "obs_none"),
        ("http://127.0.0.1:port", "obs_none"),
        ("127.0.0.1:4800", "obs_none"),
        ("http://127.0.0.1:4800", "schl\u00fcssel"),
        ("http://127.0.0.1:4800", "obs_\n"),
    ],
)
def test_an_address_or_key_that_cannot_be_one_is_told_s1310(
    walk: list[Walked], ends: Ends, url: str, key: str
) -> None:
    """S1310."""
    assert 0 not in walk_over(walk, ends, {"url": url, "key": key})


@pytest.mark.parametrize("url", ["sqlite:////proc/nowhere/x.db", "sqlite:///{garbage}", "none://such"])
def test_no_command_ends_in_a_traceback_of_a_database_s1251(
    walk: list[Walked], ends: Ends, places: dict[str, str], url: str
) -> None:
    """S1251."""
    walk_over(walk, ends, {"db": url.format(**places)})


@pytest.mark.parametrize("option", ["ca", "cert", "cert_key"])
@pytest.mark.parametrize("place", ["nowhere", "garbage", "empty"])
def test_no_command_ends_in_a_traceback_of_what_tls_needs_s1251(
    walk: list[Walked], ends: Ends, places: dict[str, str], taken: str, option: str, place: str
) -> None:
    """S1251: what one command takes for this all take at the same place."""
    some = [one for one in walk if one.words in {("sessions",), ("tail",), ("keys", "list")}]
    options = {"url": f"https://{taken}", "key": "obs_none", option: places[place]}
    assert 0 not in walk_over(some, ends, options)


@pytest.mark.parametrize("place", ["nowhere", "garbage", "empty"])
def test_no_command_ends_in_a_traceback_of_a_file_s1251(
    walk: list[Walked], ends: Ends, places: dict[str, str], server: Server, place: str
) -> None:
    """S1251: one that is not there, that is no text, that is a folder."""
    for one in walk:
        for file in one.files:
            given = {file: places[place], "--data": str(server.folder)}
            known = {name: value for name, value in given.items() if name in one.options}
            ends.of([*one.words, *filled(one.arguments, known)])
    assert not ends.wrong, "\n".join(ends.wrong)


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--port", "0", "--data", "{}/data", "--db", "sqlite:////proc/nowhere/x.db"),
        ("migrate", "--db", "sqlite:////proc/nowhere/x.db"),
        ("serve", "--port", "0", "--data", "/proc/nowhere"),
        ("demo", "--port", "0", "--data", "/proc/nowhere"),
    ],
)
def test_a_database_that_cannot_be_made_is_one_sentence_s1251(tmp_path: Path, words: tuple[str, ...]) -> None:
    """S1251."""
    run = observatory(*(word.format(tmp_path) for word in words))
    assert run.returncode == 1 and run.stdout == ""
    (sentence,) = run.stderr.splitlines()
    assert sentence.startswith("observatory: ") and "/proc/nowhere" in sentence


def test_a_reader_that_closes_the_pipe_early_sees_no_traceback_s1251(server: Server) -> None:
    """S1251: `| head -1`."""
    words = f"{' '.join(COMMAND)} keys list --data {server.folder} | head -1"
    run = subprocess.run(
        ["sh", "-c", words], capture_output=True, text=True, env=clean_environment(), timeout=60
    )
    assert run.stdout.startswith("KEY") and "Traceback" not in run.stderr


def test_a_mesh_on_a_taken_port_says_so_before_anything_is_started_s1251(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """S1251."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.delitem(sys.modules, "tools.mesh", raising=False)  # another test may have imported it
        monkeypatch.setattr(sys, "argv", ["mesh", "--port", str(taken.getsockname()[1])])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("tools.mesh", run_name="__main__")
    assert ended.value.code == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("mesh: port ") and "--port" in sentence

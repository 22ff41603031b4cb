"""Settings: defaults < file < environment < flags, and nothing misspelt or misshapen is taken silently."""

from pathlib import Path

import pytest

from observatory.errors import StartupError
from observatory.settings import Settings, load


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No observatory.toml of the folder the tests are run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_anything_the_defaults_hold() -> None:
    assert load({}, {}) == Settings()
    found = load({}, {})
    assert (found.port, found.host, found.message_bytes, found.request_bytes) == (
        *(4800, "127.0.0.1", 1 << 20, 32 << 20),
    )
    assert not found.is_postgres and found.database_url.endswith("/.observatory/observatory.db")


def test_flags_beat_environment_beats_file_beats_default(elsewhere: Path) -> None:
    (elsewhere / "observatory.toml").write_text('port = 1\nhost = "filed"\nbatch_lines = 3\n')
    found = load({"port": 7, "host": None}, {"OBSERVATORY_PORT": "5", "OBSERVATORY_BATCH_LINES": "4"})
    assert (found.port, found.host, found.batch_lines, found.commit_batch) == (7, "filed", 4, 1_000)


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("PORT", "8080", "port", 8080),
        ("SECURE_COOKIES", "true", "secure_cookies", True),
        ("SECURE_COOKIES", "0", "secure_cookies", False),
        ("ALLOWED_HOSTS", " a.example , b.example,", "allowed_hosts", ("a.example", "b.example")),
        ("ALLOWED_ORIGINS", "", "allowed_origins", ()),
        ("DB", "postgresql://localhost/x", "is_postgres", True),
        ("DATA", "/srv/o", "folder", Path("/srv/o")),
    ],
)
def test_an_environment_variable_sets_its_field(name: str, text: str, field: str, value: object) -> None:
    assert getattr(load({}, {f"OBSERVATORY_{name}": text, "PATH": "/bin"}), field) == value


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"OBSERVATORY_PROT": "1"}, "OBSERVATORY_PROT is not a setting"),
        ({"OBSERVATORY_PORT": "eighty"}, "invalid setting"),
        ({"OBSERVATORY_SECURE_COOKIES": "perhaps"}, "invalid setting"),
        ({"OBSERVATORY_CONFIG": "nowhere.toml"}, "does not exist"),
        ({"OBSERVATORY_CORS_ORIGINS": "*"}, "there is no wildcard"),
        ({"OBSERVATORY_CORS_ORIGINS": "https://a.example,null"}, "there is no wildcard"),
        ({"OBSERVATORY_CORS_ORIGINS": "https://a.example/path"}, "a scheme and a host"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(environment: dict[str, str], says: str) -> None:
    with pytest.raises(StartupError, match=says):
        load({}, environment)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "unknown settings: prot"),
        ("port = [", "not valid TOML"),
        ('port = "x"', "invalid setting"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_a_sentence(elsewhere: Path, text: str, says: str) -> None:
    (elsewhere / "mine.toml").write_text(text)
    with pytest.raises(StartupError, match=says):
        load({}, {"OBSERVATORY_CONFIG": str(elsewhere / "mine.toml")})


def test_what_the_sdk_reads_is_no_fault_of_the_server() -> None:
    assert load({}, {"OBSERVATORY_URL": "http://x", "OBSERVATORY_KEY": "obs_x"}) == Settings()

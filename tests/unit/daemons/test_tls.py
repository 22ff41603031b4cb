"""TLS files: what is wrong with them is one sentence, and replaced ones are believed once they hold still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from observatory.errors import StartupError
from observatory.features.certificates.authority import issue, make_authority, write_pair
from observatory.runtime.tls import Tls
from observatory.settings import Settings, load

NOW = datetime.now(UTC)
AUTHORITY = make_authority("Unit authority")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_pair(tmp_path, "ca", AUTHORITY)
    write_pair(tmp_path, "server", issue(AUTHORITY, "gateway", "server", ["localhost", "a.example"]))
    return tmp_path


def settings(folder: Path, **more: str) -> Settings:
    given = {"tls_cert": f"{folder}/server.crt", "tls_key": f"{folder}/server.key"}
    return load(given | more, {})


def _unreadable(folder: Path) -> None:
    (folder / "server.key").unlink()
    (folder / "server.key").mkdir()


def _other_key(folder: Path) -> None:
    other = issue(AUTHORITY, "other", "server", ["localhost"])
    (folder / "server.key").write_bytes(other.key_pem())


def _dated(since: int, until: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        dates = NOW + timedelta(days=since), NOW + timedelta(days=until)
        write_pair(
            folder, "server", issue(AUTHORITY, "gateway", "server", ["localhost"], *dates), replace=True
        )

    return write


def _locked(folder: Path) -> None:
    pair = issue(AUTHORITY, "gateway", "server", ["localhost"])
    write_pair(folder, "server", pair, replace=True)
    (folder / "server.key").write_bytes(pair.key_pem(b"sesame"))
    (folder / "pass").write_text("sesame\n")
    (folder / "wrong").write_text("barley\n")


@pytest.mark.parametrize(
    ("spoil", "more", "words"),
    [
        (lambda at: (at / "server.crt").unlink(), {}, "tls_cert: the file .* does not exist"),
        (_unreadable, {}, "tls_key: the file .* cannot be read"),
        (
            lambda at: (at / "server.crt").write_text("hello"),
            {},
            "tls_cert: the file contains no certificate",
        ),
        (lambda at: (at / "server.key").write_text("hello"), {}, "tls_key: it holds no private key"),
        (_other_key, {}, "tls_key does not belong to tls_cert"),
        (_dated(-9, -1), {}, "expired on .* renew it"),
        (_dated(1, 9), {}, "is not valid before"),
        (_locked, {}, "the key is encrypted; give the file of its passphrase"),
        (_locked, {"tls_key_passphrase_file": "{at}/wrong"}, "its passphrase is another"),
        (lambda at: None, {"tls_key_passphrase_file": "{at}/ca.crt"}, "the key is not encrypted"),
        (
            lambda at: (at / "ca.crt").write_text("x"),
            {"tls_client_ca": "{at}/ca.crt", "tls_client_certs": "optional"},
            "tls_client_ca: the file contains no certificate",
        ),
        (
            lambda at: None,
            {"tls_client_ca": "{at}/ca.crt", "tls_client_certs": "required", "tls_proxy_certs": ["abc"]},
            "tls_proxy_certs: a fingerprint is",
        ),
    ],
)
def test_files_that_cannot_serve_are_refused_in_one_sentence_s856(
    folder: Path, spoil: Callable[[Path], object], more: dict[str, str], words: str
) -> None:
    spoil(folder)
    given = {name: text.format(at=folder) if isinstance(text, str) else text for name, text in more.items()}
    with pytest.raises(StartupError, match=words) as refused:
        Tls(settings(folder, **given))
    assert "PRIVATE KEY" not in str(refused.value) and "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tls_cert": "a"}, "belong together"),
        ({"tls_key": "a"}, "belong together"),
        ({"tls_client_ca": "a"}, "no tls_cert"),
        ({"tls_client_certs": "required"}, "no tls_cert"),
        ({"tls_cert": "a", "tls_key": "b", "tls_client_ca": "c"}, "tls_client_certs is none"),
        (
            {"tls_cert": "a", "tls_key": "b", "tls_client_certs": "optional"},
            "tls_client_ca, which verifies them, is not set",
        ),
        ({"tls_cert": "a", "tls_key": "b", "tls_proxy_certs": ["c"]}, "the proxy would not send one"),
        ({"tls_client_certs": "perhaps"}, "invalid setting"),
    ],
)
def test_settings_that_do_not_belong_together_are_refused_s856(given: dict[str, str], words: str) -> None:
    with pytest.raises(StartupError, match=words):
        load(given, {})


def test_an_encrypted_key_serves_with_its_passphrase_s856(folder: Path) -> None:
    _locked(folder)
    tls = Tls(settings(folder, tls_key_passphrase_file=f"{folder}/pass"))
    assert b"ENCRYPTED" not in tls.loaded.key_pem and tls.own_authority is None


def test_replaced_files_are_believed_once_they_hold_still_s864_s865(folder: Path, tmp_path: Path) -> None:
    """S864: also when a link is turned; S865: half a change is waited out, a bad one is told."""
    for name in ("one", "two"):
        (folder / name).mkdir()
        write_pair(
            folder / name, "server", issue(AUTHORITY, name, "server", ["localhost", f"{name}.example"])
        )
    (folder / "now").symlink_to("one")
    tls = Tls(settings(folder / "now"))
    names: list[list[str]] = []
    tls.on_reload = lambda given: names.append(list(given))

    def look() -> bool:
        return asyncio.run(tls.look())

    assert tls.names == ["localhost", "one.example"] and not look()
    (folder / "next").symlink_to("two")
    (folder / "next").rename(folder / "now")
    before = tls.loaded.context
    assert look() and tls.loaded.server.subject == "CN=two" and tls.loaded.context is not before
    assert names == [["localhost", "two.example"]]
    third = issue(AUTHORITY, "three", "server", ["localhost"])
    (folder / "two" / "server.crt").write_bytes(third.pem)  # its key comes a moment later
    assert not look() and tls.problem is None
    (folder / "two" / "server.key").write_bytes(third.key_pem())
    assert look() and tls.loaded.server.subject == "CN=three" and tls.reloads == 2
    (folder / "two" / "server.crt").write_text("broken")
    assert not look() and not look() and not look()
    assert tls.problem is not None and tls.failures == 1 and tls.loaded.server.subject == "CN=three"
    (folder / "two" / "server.crt").write_bytes(third.pem)
    assert look() and tls.problem is None

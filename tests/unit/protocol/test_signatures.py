"""Signatures under webhooks: four schemes, each by its own rules, and all that is not quite one."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from observatory.features.hooks import signatures
from observatory.features.hooks.signatures import InvalidSecret, Scheme, check_signature
from tests import calling

NOW = 1_800_000_000
BODY = b'{"action": "opened"}'
PLAIN = "a secret of sixteen or more"
STANDARD = "whsec_" + b64encode(b"k" * 32).decode()
Headers = list[tuple[bytes, bytes]]


def signed(scheme: Scheme, secret: str, body: bytes = BODY, at: int = NOW) -> Headers:
    made = calling.signed(scheme, secret, body, at)
    return [(name.encode(), text.encode()) for name, text in made.items()]


def secret_of(scheme: Scheme) -> str:
    return STANDARD if scheme == "standard" else PLAIN


SCHEMES: tuple[Scheme, ...] = ("standard", "github", "stripe", "slack")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_another_signed_is_valid_and_not_one_bit_else_s523(scheme: Scheme) -> None:
    """S523: any of the secrets in force; another secret, another body and no header are told apart."""
    secret = secret_of(scheme)
    headers = signed(scheme, secret)
    other = signatures.new_secret(scheme)

    def status(given: Headers, body: bytes = BODY, secrets: tuple[str, ...] = (secret,)) -> str:
        return check_signature(scheme, given, body, secrets, NOW, 300).status

    assert status(headers) == "valid"
    assert status(headers, secrets=(other, secret)) == "valid", "while a secret is rotated"
    assert status(headers, secrets=(other,)) == "invalid"
    assert status(headers, secrets=()) == "invalid", "without a secret nothing is valid"
    assert status(headers, BODY + b" ") == "invalid"
    assert status([]) == "missing"
    own = signatures.HEADERS[scheme][0].encode()
    assert status([one for one in headers if one[0].lower() != own]) == "missing"
    twice = [one for one in headers if one[0].lower() == own]
    assert status(headers + twice) == "invalid", "of two nobody can say which counts"
    assert status(list(reversed(headers))) == "valid", "their order tells nothing"
    for bad in (
        b"",
        b"=",
        b"v1,",
        b"sha256=",
        b"sha256=zz",
        b"v0=",
        b"t=1",
        b"v1=,t=",
        b"\xff\xfe",
        b"v1,AAAA",
    ):
        assert status([(name, bad if name.lower() == own else value) for name, value in headers]) == "invalid"


@pytest.mark.parametrize("scheme", ["standard", "stripe", "slack"])
@pytest.mark.parametrize(
    ("ago", "status"), [(299, "valid"), (301, "invalid"), (-299, "valid"), (-301, "invalid")]
)
def test_a_signed_time_outside_the_window_is_invalid_s523(scheme: Scheme, ago: int, status: str) -> None:
    """S523: too old or from the future; the time is signed, so nobody can move it."""
    secret = secret_of(scheme)
    headers = signed(scheme, secret, at=NOW - ago)
    assert check_signature(scheme, headers, BODY, [secret], NOW, 300).status == status
    if scheme == "standard":
        moved = [(name, b"%d" % NOW if name == b"webhook-timestamp" else text) for name, text in headers]
        assert check_signature(scheme, moved, BODY, [secret], NOW, 300).status == "invalid"


def test_ours_is_taken_by_the_standards_own_package_s523() -> None:
    """S523: and several in one header, one of which fits, are valid here."""
    at = int(datetime.now(UTC).timestamp())
    made = signatures.sign_standard(STANDARD, "dlv_9", at, BODY)
    named = {"webhook-id": "dlv_9", "webhook-timestamp": str(at), "webhook-signature": made}
    Webhook(STANDARD).verify(BODY, named)
    many = f"v1a,{'A' * 86}== {'v1,' + b64encode(bytes(32)).decode()} {made}"
    headers = [(name.encode(), text.encode()) for name, text in (named | {"webhook-signature": many}).items()]
    judged = check_signature("standard", headers, BODY, [STANDARD], at, 300)
    assert (judged.status, judged.delivery_id) == ("valid", "dlv_9")
    crowd = " ".join([made] * 17).encode()
    headers[2] = (b"webhook-signature", crowd)
    assert check_signature("standard", headers, BODY, [STANDARD], at, 300).status == "invalid"


@pytest.mark.parametrize(
    ("scheme", "secret"),
    [
        ("standard", "whsec_short"),
        ("standard", "not base64 at all!"),
        ("github", "short"),
        ("slack", "é" * 20),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused_s520(scheme: Scheme, secret: str) -> None:
    """S520: what is given must be strong enough and of the scheme's form; ours always is."""
    with pytest.raises(InvalidSecret):
        signatures.key_of(scheme, secret)
    assert signatures.key_of(scheme, signatures.new_secret(scheme))
    assert signatures.new_secret(scheme) != signatures.new_secret(scheme)


def test_of_headers_only_the_schemes_own_are_kept_s529() -> None:
    """S529: cut short; a key or a cookie that came along is nobody's business."""
    headers = [*signed("slack", PLAIN), (b"authorization", b"Bearer x"), (b"cookie", b"y")]
    headers[1] = (headers[1][0], b"v0=" + b"f" * 5_000)
    kept = signatures.signature_headers("slack", headers)
    assert set(kept) == set(signatures.HEADERS["slack"]) and all(len(text) <= 512 for text in kept.values())

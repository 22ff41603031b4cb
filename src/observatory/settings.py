"""All settings in one struct: defaults here, then `observatory.toml`, then `OBSERVATORY_*`, then flags.

Every field is documented in docs/guides/settings.md (a test compares them). A value of the wrong type
stops the start with an error message. Nothing is silently ignored: an unknown `OBSERVATORY_*` name or an
unknown key in the file is refused too, because a misspelt limit is a missing limit.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from observatory.errors import StartupError

VERSION = "0.1.0"
PREFIX = "OBSERVATORY_"
# Read by the SDK and by tests of this project, not by the server.
FOREIGN = frozenset({"URL", "KEY", "CLUSTER", "CONFIG", "CHROMIUM", "CA", "CERT", "CERT_KEY", "ON_AWAY"})
_ORIGIN = re.compile(r"https?://[^\s/?#@*]+/?")
DATABASES = ("postgresql://", "postgres://", "sqlite:///")

# A time or a count that must be at least one.
Whole = Annotated[int, msgspec.Meta(ge=1)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    data: str = "~/.observatory"
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 4800
    public_url: str = ""
    db: str = ""
    bus: str = ""
    bus_ca: str = ""
    nats_replicas: Annotated[int, msgspec.Meta(ge=1, le=5)] = 1
    nats_stream_bytes: Annotated[int, msgspec.Meta(ge=1 << 20)] = 256 << 20
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    secure_cookies: bool = False
    service_name: str = "observatory"
    service_version: str = VERSION
    environment: str = "production"
    message_bytes: Whole = 1 << 20
    request_bytes: Whole = 32 << 20
    batch_lines: Whole = 10_000
    refusals_in_full: Whole = 10
    agent_decisions: Whole = 20
    agent_reminders: Whole = 100
    header_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 10.0
    body_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 60.0
    reading_bytes: Annotated[int, msgspec.Meta(ge=1 << 20)] = 256 << 20
    connections: Annotated[int, msgspec.Meta(ge=16)] = 8_192
    trusted_proxies: tuple[str, ...] = ()
    queue_messages: Whole = 20_000
    queue_bytes: Whole = 256 << 20
    queue_wait_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 20.0
    commit_batch: Whole = 1_000
    live_backlog: Whole = 5_000
    violation_window_s: Whole = 30
    heartbeat_check_s: Whole = 30
    heartbeat_timeout_s: Whole = 90
    breaker_window_s: Whole = 60
    breaker_min_calls: Whole = 10
    breaker_failure_ratio: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    breaker_open_s: Whole = 30
    redelivery_s: Whole = 30
    login_minutes: Annotated[int, msgspec.Meta(ge=0)] = 15
    cookie_hours: Annotated[int, msgspec.Meta(ge=1, le=12)] = 12
    idle_minutes: Annotated[int, msgspec.Meta(ge=0)] = 60
    print_login: bool = False
    kill_release_batch: Whole = 500
    policy_default: Literal["allow", "deny"] = "allow"
    insight: bool = True
    low_confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    orphan_wait_s: Annotated[int, msgspec.Meta(ge=0)] = 30
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    log_requests: Literal["off", "doors", "all"] = "off"
    shutdown_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 10.0
    log_name: str = ""
    log_key: str = ""
    log_key_passphrase: str = ""
    log_public: bool = False
    egress_allow: tuple[str, ...] = ()
    egress_ca: str = ""
    otlp_grpc: str = ""
    smtp_url: str = ""
    smtp_from: str = ""
    webhook_bytes: Annotated[int, msgspec.Meta(ge=1_024, le=16 << 20)] = 1 << 20
    tls_cert: str = ""
    tls_key: str = ""
    tls_key_passphrase_file: str = ""
    tls_client_ca: str = ""
    tls_client_certs: Literal["none", "optional", "required"] = "none"
    tls_proxy_certs: tuple[str, ...] = ()
    certificate_days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 14

    @property
    def folder(self) -> Path:
        return Path(self.data).expanduser()

    @property
    def database_url(self) -> str:
        return self.db or f"sqlite:///{self.folder / 'observatory.db'}"

    @property
    def log_key_path(self) -> Path:
        return Path(self.log_key).expanduser() if self.log_key else self.folder / "log.key"

    @property
    def is_tls(self) -> bool:
        return bool(self.tls_cert)

    @property
    def are_cookies_secure(self) -> bool:
        """True by the setting where a proxy terminates TLS; always true where the gateway does."""
        return self.secure_cookies or self.is_tls

    @property
    def is_postgres(self) -> bool:
        return self.database_url.startswith(("postgres://", "postgresql://"))


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Later sources override earlier ones: defaults, file, environment, flags (None: flag not given)."""
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = dict(_from_file(environ.get(PREFIX + "CONFIG")))
    values.update(_from_environment(environ))
    values.update({k: v for k, v in (flags or {}).items() if v is not None})
    try:
        settings = msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise StartupError(f"invalid setting: {error}; see docs/guides/settings.md") from error
    if settings.heartbeat_timeout_s < settings.heartbeat_check_s:
        raise StartupError("heartbeat_timeout_s may not be shorter than heartbeat_check_s")
    if settings.db and not settings.db.startswith(DATABASES):
        raise StartupError(
            "a database URL begins with postgresql:// or sqlite:/// (three slashes and a path); "
            "leave it out for SQLite in the data folder"
        )
    problem = _problem_of_tls(settings)
    if problem is not None:
        raise StartupError(problem)
    for proxy in settings.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError as error:
            raise StartupError(
                "trusted_proxies must be addresses or networks, such as 10.0.0.7 or 10.0.0.0/8"
            ) from error
    for origin in settings.cors_origins:
        if not _ORIGIN.fullmatch(origin):
            raise StartupError(
                "an origin in cors_origins is a scheme and a host, such as https://app.example:8443; "
                "there is no wildcard"
            )
    return settings


def _problem_of_tls(settings: Settings) -> str | None:
    """The first conflict between TLS settings; the files themselves are checked when they are read."""
    client_certs = settings.tls_client_certs
    if bool(settings.tls_cert) != bool(settings.tls_key):
        return "tls_cert and tls_key belong together: give both files, or neither"
    if not settings.tls_cert:
        given = [
            name
            for name in ("tls_key_passphrase_file", "tls_client_ca", "tls_proxy_certs")
            if getattr(settings, name)
        ]
        given += [] if client_certs == "none" else ["tls_client_certs"]
        return f"{given[0]} is given but no tls_cert; it has no effect without TLS" if given else None
    if settings.tls_client_ca and client_certs == "none":
        return (
            "tls_client_ca is given but tls_client_certs is none: set it to optional or required, "
            "or remove tls_client_ca"
        )
    if client_certs != "none" and not settings.tls_client_ca:
        return f"tls_client_certs is {client_certs} but tls_client_ca, which verifies them, is not set"
    if settings.tls_proxy_certs and client_certs == "none":
        return "tls_proxy_certs is given but tls_client_certs is none: the proxy would not send one"
    return None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = {field.name: field for field in msgspec.structs.fields(Settings)}
    values: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name[len(PREFIX) :] in FOREIGN:
            continue
        key = name[len(PREFIX) :].lower()
        if key not in known:
            raise StartupError(f"{name} is not a setting; see docs/guides/settings.md for the names")
        is_list = known[key].type == tuple[str, ...]
        values[key] = [part.strip() for part in text.split(",") if part.strip()] if is_list else text
    return values


def _from_file(path_text: str | None) -> dict[str, Any]:
    path = Path(path_text) if path_text else Path("observatory.toml")
    if not path.exists():
        if path_text:
            raise StartupError(f"the settings file {path} does not exist")
        return {}
    try:
        values = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StartupError(f"the settings file {path} is not valid TOML: {error}") from error
    unknown = set(values) - {field.name for field in msgspec.structs.fields(Settings)}
    if unknown:
        raise StartupError(f"the settings file {path} names unknown settings: {', '.join(sorted(unknown))}")
    return values

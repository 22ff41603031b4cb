"""`/v1/certificates`: configured and presented certificates; `/v1/agents/{id}/certificate`: agent bindings.

A tenant sees the gateway's certificates and those used with its own keys. An operator can bind an agent; from
then on no key can act as that agent without that certificate, not even an admin's (S860).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, delete, get, put
from litestar.params import FromPath, JSONBody

from observatory.features.certificates import commands as acts
from observatory.features.certificates.inventory import CertificateValidity, InventoryEntry, Use, days_left
from observatory.features.certificates.worker import CertificateWorker
from observatory.http.answers import Refusal, json
from observatory.http.app_state import AppState, Call, Here
from observatory.http.permissions import require_permission
from observatory.pipeline.state import SubmissionResult
from observatory.protocol.certificates import BindingKind, InvalidCertificate, make_binding, read, read_pem
from observatory.protocol.clock import from_ns
from observatory.protocol.identity import agent_entity_id

ClientCerts = Literal["none", "optional", "required"]
MAX_NAMED = 100  # agents without a certificate that are listed by name
SETUP = "observatory tls init ./tls"


class BindingBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`fingerprint` names exactly one certificate; `uri`, `dns` and `subject` match every certificate with
    that name issued by an authority of `tls_client_ca`, so that rotation needs no new binding. Alternatively
    `pem`: the certificate itself, bound by its fingerprint."""

    kind: BindingKind | None = None
    value: Annotated[str, msgspec.Meta(min_length=1, max_length=1_024)] | None = None
    pem: Annotated[str, msgspec.Meta(min_length=1, max_length=65_536)] | None = None


class BindingItem(msgspec.Struct, kw_only=True):
    kind: BindingKind
    value: str
    bound_at: str
    bound_by: str


class CertificateItem(msgspec.Struct, kw_only=True):
    """`agents` last connected with it; `bound` are bound to it; `in_use`: whether its expiry would matter."""

    use: Use
    fingerprint: str
    subject: str
    issuer: str
    serial: str
    names: list[str]
    not_before: str
    not_after: str
    days_left: int
    standing: CertificateValidity
    in_use: bool
    agents: list[str]
    bound: list[str]
    key_ids: list[str]
    first_seen_at: str | None
    last_seen_at: str | None


class TlsStatus(msgspec.Struct, kw_only=True):
    """`problem`: why the files on disk are not in use; the previous ones stay in use meanwhile."""

    configured: bool
    client_certs: ClientCerts
    proxies: int
    warn_days: int
    problem: str | None
    setup: str


class AgentCertificateCounts(msgspec.Struct, kw_only=True):
    """`without`: names of agents that last connected without one, the first hundred."""

    total: int
    using: int
    bound: int
    without: list[str]


class CertificatesAnswer(msgspec.Struct, kw_only=True):
    tls: TlsStatus
    agents: AgentCertificateCounts
    items: list[CertificateItem]
    next_cursor: str | None


class AgentCertificate(msgspec.Struct, kw_only=True):
    """`shown`: the certificate the agent last connected with."""

    agent_id: str
    entity_id: str
    binding: BindingItem | None
    shown: CertificateItem | None


def item_of(one: InventoryEntry, now_ns: int) -> CertificateItem:
    facts = one.certificate
    return CertificateItem(
        use=one.use,
        fingerprint=facts.fingerprint,
        subject=facts.subject,
        issuer=facts.issuer,
        serial=facts.serial,
        names=list(facts.names),
        not_before=from_ns(facts.not_before_ns),
        not_after=from_ns(facts.not_after_ns),
        days_left=days_left(facts, now_ns),
        standing=one.standing,
        in_use=one.is_used,
        agents=sorted(one.agents),
        bound=sorted(one.bound),
        key_ids=list(one.key_ids),
        first_seen_at=None if one.first_seen_ns is None else from_ns(one.first_seen_ns),
        last_seen_at=None if one.last_seen_ns is None else from_ns(one.last_seen_ns),
    )


@get(
    "/certificates",
    summary="List certificates: the gateway's, its authorities' and clients'",
    operation_id="list_certificates",
)
async def list_certificates(request: Call, app: Here) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    now_ns, settings, tls = app.clock(), app.settings, app.tls
    entries = await app.service(CertificateWorker).entries(who.tenant_id, now_ns)
    rows = await app.store.rows(who.tenant_id, "agents", evicted_ns=None)
    bound = await app.store.rows(who.tenant_id, "agent_certificates", removed_ns=None)
    without = sorted(row["agent_id"] for row in rows if row["certificate"] is None)
    return json(
        CertificatesAnswer(
            tls=TlsStatus(
                configured=tls is not None,
                client_certs=settings.tls_client_certs,
                proxies=len(settings.tls_proxy_certs),
                warn_days=settings.certificate_days,
                problem=None if tls is None else tls.problem,
                setup=SETUP,
            ),
            agents=AgentCertificateCounts(
                total=len(rows),
                using=len(rows) - len(without),
                bound=len(bound),
                without=without[:MAX_NAMED],
            ),
            items=[item_of(one, now_ns) for one in entries],
            next_cursor=None,
        )
    )


@get(
    "/agents/{agent_id:str}/certificate",
    summary="Get an agent's certificate binding and last used certificate",
    operation_id="get_agent_certificate",
)
async def get_agent_certificate(request: Call, app: Here, agent_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "read")
    return json(await _standing(app, who.tenant_id, agent_id))


@put(
    "/agents/{agent_id:str}/certificate",
    summary="Bind an agent to a certificate",
    operation_id="bind_agent_certificate",
)
async def bind_agent_certificate(
    request: Call, app: Here, agent_id: FromPath[str], data: JSONBody[BindingBody]
) -> Response[bytes]:
    """From now on callers acting as it must present that certificate; open channels that did not are
    closed."""
    who = await require_permission(request, app, "operate")
    kind, value = _requested_binding(data)
    try:
        binding = make_binding(kind, value)
    except ValueError as error:
        raise Refusal(422, "bad_binding", str(error)) from error
    _done(await app.act(acts.bind(who, agent_id, binding, app.clock())))
    return json(await _standing(app, who.tenant_id, agent_id))


@delete(
    "/agents/{agent_id:str}/certificate",
    status_code=200,
    summary="Unbind an agent from its certificate",
    operation_id="unbind_agent_certificate",
)
async def unbind_agent_certificate(request: Call, app: Here, agent_id: FromPath[str]) -> Response[bytes]:
    who = await require_permission(request, app, "operate")
    _done(await app.act(acts.unbind(who, agent_id, app.clock())))
    return json(await _standing(app, who.tenant_id, agent_id))


def _requested_binding(data: BindingBody) -> tuple[BindingKind, str]:
    if data.pem is not None:
        if data.kind is not None or data.value is not None:
            raise Refusal(422, "bad_binding", "give kind and value, or pem, not both")
        try:
            return "fingerprint", read(read_pem(data.pem.encode())[0]).fingerprint
        except InvalidCertificate as error:
            raise Refusal(422, "bad_binding", f"pem: {error}") from error
    if data.kind is None or data.value is None:
        raise Refusal(422, "bad_binding", "give kind and value, or pem")
    return data.kind, data.value


def _done(verdict: SubmissionResult) -> None:
    if verdict.code >= 400:
        raise Refusal(verdict.code, verdict.answer.reason, verdict.answer.detail or "not accepted")


async def _standing(app: AppState, tenant_id: str, agent_id: str) -> AgentCertificate:
    entity_id, now_ns = agent_entity_id(tenant_id, agent_id), app.clock()
    agents = await app.store.rows(tenant_id, "agents", entity_id=entity_id)
    if not agents:
        raise Refusal(404, "not_found", "no agent of this tenant has that name or id")
    rows = await app.store.rows(tenant_id, "agent_certificates", entity_id=entity_id, removed_ns=None)
    entries = await app.service(CertificateWorker).entries(tenant_id, now_ns)
    last = agents[0]["certificate"]
    shown = [one for one in entries if one.use == "client" and one.certificate.fingerprint == last]
    return AgentCertificate(
        agent_id=agents[0]["agent_id"],
        entity_id=entity_id,
        binding=None if not rows else _binding(rows[0]),
        shown=item_of(shown[0], now_ns) if shown else None,
    )


def _binding(row: dict[str, Any]) -> BindingItem:
    return BindingItem(
        kind=row["kind"], value=row["value"], bound_at=from_ns(row["bound_ns"]), bound_by=row["bound_by"]
    )


CERTIFICATE_ANSWERS: dict[str, Any] = {
    "list_certificates": CertificatesAnswer,
    "get_agent_certificate": AgentCertificate,
    "bind_agent_certificate": AgentCertificate,
    "unbind_agent_certificate": AgentCertificate,
}
certificates_router = Router(
    path="/v1",
    route_handlers=[
        list_certificates,
        get_agent_certificate,
        bind_agent_certificate,
        unbind_agent_certificate,
    ],
    tags=["Certificates"],
)

// Certificates: owners, expiry, the agents that use one, and whether client certificates are required; or
// that TLS is not configured, and the command that sets it up.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { noun, plural } from "~/plural";
import type { CertificateItem, CertificatesAnswer } from "~/protocol/openapi";
import { ASKED, endsIn, foremost, nameOf, signOf } from "~/widgets/certificates";
import { exact } from "~/widgets/clock";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "./Certificates.module.css";

const FEW = 12;
const USES: Record<CertificateItem["use"], string> = {
  server: "this gateway",
  authority: "client CA",
  client: "client",
};

export function useCertificates() {
  return useApi("/v1/certificates", {}, { every: 30_000, keep: true });
}

/** Next to the panel's name, also while it is closed. */
export function CertificatesNow() {
  const { data, error } = useCertificates();
  const now = useNow();
  if (!data) return error ? "unknown" : null;
  if (!data.tls.configured) return "not configured";
  if (data.tls.problem) return "! not replaced";
  const first = foremost(data.items);
  return first ? `${signOf(first.standing).mark} ${endsIn(first, now)}` : null;
}

export function Certificates() {
  const query = useCertificates();
  return (
    <Loaded query={query} rows={5}>
      {(answer) => (answer.tls.configured ? <Listed answer={answer} /> : <NotConfigured answer={answer} />)}
    </Loaded>
  );
}

function NotConfigured({ answer }: { answer: CertificatesAnswer }) {
  return (
    <div className={classes.none}>
      <Empty command={answer.tls.setup}>
        Not configured: this gateway runs without TLS, and no agent uses a certificate. On its machine, this
        creates the files and prints how to start with them:
      </Empty>
    </div>
  );
}

function Listed({ answer }: { answer: CertificatesAnswer }) {
  const { tls, agents, items } = answer;
  const shown = items.filter((one) => one.in_use);
  const unused = items.length - shown.length;
  return (
    <ul className={classes.list} aria-label="Certificates in use">
      {tls.problem && (
        <li role="alert" className={classes.problem}>
          ! The new files could not be loaded; the old ones stay in use: {tls.problem}
        </li>
      )}
      <li className={classes.said}>
        {ASKED[tls.client_certs]}
        {tls.proxies > 0 &&
          ` ${plural(tls.proxies, "pinned proxy forwards", "pinned proxies forward")} client certificates.`}
      </li>
      {shown.map((one) => (
        <Certificate key={`${one.use} ${one.fingerprint}`} one={one} />
      ))}
      <li className={classes.said}>
        {agents.total === 0
          ? "No agents yet."
          : `${agents.using} of ${agents.total} agents last connected with a certificate, ${agents.bound} ${noun(agents.bound, "is", "are")} bound to one.`}
        {agents.without.length > 0 && (
          <>
            {" "}
            Without: <Names names={agents.without} all={agents.total - agents.using} />
          </>
        )}
        {unused > 0 &&
          ` ${plural(unused, "other certificate is", "other certificates are")} no longer in use.`}
      </li>
    </ul>
  );
}

function Certificate({ one }: { one: CertificateItem }) {
  const now = useNow();
  const sign = signOf(one.standing);
  return (
    <li data-standing={one.standing}>
      <span className={classes.name} title={`${one.subject}\nSHA-256 ${one.fingerprint}`}>
        {nameOf(one.subject)}
      </span>
      <time dateTime={one.not_after} title={exact(one.not_after)}>
        <Tag tone={sign.tone}>
          <span aria-hidden>{sign.mark}</span> {endsIn(one, now)}
        </Tag>
      </time>
      <span className={classes.text}>
        {USES[one.use]}, issued by <span title={one.issuer}>{nameOf(one.issuer)}</span>
        {one.agents.length > 0 && (
          <>
            ; used by <Names names={one.agents} all={one.agents.length} />
          </>
        )}
      </span>
    </li>
  );
}

function Names({ names, all }: { names: readonly string[]; all: number }) {
  const few = names.slice(0, FEW);
  return (
    <>
      {few.map((name, n) => (
        <span key={name}>
          {n > 0 && ", "}
          <Link to="/registry/$agentId" params={{ agentId: name }}>
            {name}
          </Link>
        </span>
      ))}
      {all > few.length && ` and ${all - few.length} more`}
    </>
  );
}

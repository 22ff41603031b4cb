// The certificate an agent is bound to, and the one it last used.
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { AgentCertificate, AgentItem } from "~/protocol/openapi";
import { endsIn, nameOf, signOf } from "~/widgets/certificates";
import { exact } from "~/widgets/clock";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Loaded, Panel } from "~/widgets/Panel";
import { useNames } from "~/widgets/users";
import classes from "./Agent.module.css";

const LASTS: Record<NonNullable<AgentCertificate["binding"]>["kind"], string> = {
  fingerprint: "this certificate only",
  uri: "any certificate with this URI",
  dns: "any certificate with this DNS name",
  subject: "any certificate with this subject",
};

export function Certificate({ agent }: { agent: AgentItem }) {
  const query = useApi(
    "/v1/agents/{agent_id}/certificate",
    {},
    { params: { agent_id: agent.agent_id }, every: 15_000, keep: true },
  );
  const names = useNames();
  const now = useNow();
  return (
    <Panel
      title="Certificate"
      aside={
        <Link to="/fleet" search={{ panel: "certificates" } as never} className={classes.aside}>
          all certificates
        </Link>
      }
    >
      <Loaded query={query} rows={1}>
        {({ binding, shown }) => (
          <div className={classes.part}>
            <p className={classes.line}>
              {binding ? (
                <>
                  <Tag tone="good">✓ bound</Tag>
                  <span>
                    to {LASTS[binding.kind]}: <Id id={binding.value} length={36} />, by{" "}
                    {names(binding.bound_by)} <Ago at={binding.bound_at} />. Messages in its name without the
                    certificate are refused.
                  </span>
                </>
              ) : (
                <>
                  <Tag tone="idle">not bound</Tag>
                  <span>
                    Identified by its keys alone. To bind it:{" "}
                    <code>observatory certificates bind {agent.agent_id}</code>
                  </span>
                </>
              )}
            </p>
            <p className={classes.line}>
              {shown ? (
                <>
                  <Tag tone={signOf(shown.standing).tone}>
                    <span aria-hidden>{signOf(shown.standing).mark}</span> {endsIn(shown, now)}
                  </Tag>
                  <span title={exact(shown.not_after)}>
                    Last connected with {nameOf(shown.subject)}, issued by {nameOf(shown.issuer)}.
                  </span>
                </>
              ) : (
                <span>Last connected without a certificate.</span>
              )}
            </p>
          </div>
        )}
      </Loaded>
    </Panel>
  );
}

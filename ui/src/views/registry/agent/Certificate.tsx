// The certificate of an agent: what it is bound to, and with what it last spoke.
import { Link } from "@tanstack/react-router";
import { useAnswer } from "~/api/questions";
import type { AgentCertificate, AgentItem } from "~/protocol/openapi";
import { endsIn, nameOf, signOf } from "~/widgets/certificates";
import { exact } from "~/widgets/clock";
import { Ago, Id } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNow } from "~/widgets/now";
import { Panel, Shown } from "~/widgets/Panel";
import { useNames } from "~/widgets/people";
import classes from "./Agent.module.css";

const LASTS: Record<NonNullable<AgentCertificate["binding"]>["kind"], string> = {
  fingerprint: "this one certificate and no other",
  uri: "any certificate with this URI",
  dns: "any certificate with this DNS name",
  subject: "any certificate with this subject",
};

export function Certificate({ agent }: { agent: AgentItem }) {
  const asked = useAnswer(
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
      <Shown asked={asked} rows={1}>
        {({ binding, shown }) => (
          <div className={classes.part}>
            <p className={classes.line}>
              {binding ? (
                <>
                  <Tag tone="good">✓ bound</Tag>
                  <span>
                    to {LASTS[binding.kind]}: <Id id={binding.value} length={36} />, by{" "}
                    {names(binding.bound_by)} <Ago at={binding.bound_at} />. Nobody speaks as it without.
                  </span>
                </>
              ) : (
                <>
                  <Tag tone="idle">not bound</Tag>
                  <span>
                    Its keys alone say who it is. <code>observatory certificates bind {agent.agent_id}</code>{" "}
                    binds it.
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
                    It last spoke with {nameOf(shown.subject)}, issued by {nameOf(shown.issuer)}.
                  </span>
                </>
              ) : (
                <span>It last spoke without a certificate.</span>
              )}
            </p>
          </div>
        )}
      </Shown>
    </Panel>
  );
}

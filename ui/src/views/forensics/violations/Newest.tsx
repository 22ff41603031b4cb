// The newest refused messages: agent, version, reason, and the hash, the only data kept of each.
import { Link } from "@tanstack/react-router";
import type { ViolationItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import classes from "./Violations.module.css";

export function Newest({ items }: { items: readonly ViolationItem[] }) {
  return (
    <ol className={classes.newest} aria-label="Newest violations">
      {items.map((one) => (
        <li key={one.sequence_number}>
          <span className={classes.line}>
            <span aria-hidden className={classes.mark}>
              !
            </span>
            {one.agent_id ? (
              <Link to="/registry/$agentId" params={{ agentId: one.agent_id }}>
                {one.agent_id}
              </Link>
            ) : one.count > 1 ? (
              "several agents"
            ) : (
              "could not be parsed"
            )}
            <span className={classes.faint}>
              {one.capability_version ?? "no version"} · <Ago at={one.at} />
            </span>
          </span>
          <span className={classes.reason}>
            {one.count > 1 ? `${one.count} × ` : ""}
            {inert(one.reason)}
          </span>
          <span className={classes.faint}>
            event #{one.sequence_number}, <Id id={one.raw_payload_hash} length={18} />
          </span>
        </li>
      ))}
    </ol>
  );
}

// One hook: the address to give to the caller, how calls were signed, its form with a trial, secret and end.

import { changeHook, removeHook, rotateHook } from "~/acts/connections";
import { useAnswer } from "~/api/questions";
import type { HookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { dateClock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Danger, Doing } from "../parts/Danger";
import classes from "../parts/Parts.module.css";
import { Copy } from "../parts/Secret";
import { HookForm } from "./HookForm";
import type { Fresh } from "./Hooks";
import { SCHEMES } from "./mapping";

interface Props {
  hook: HookItem;
  denied: string | undefined;
  onSecret: (fresh: Fresh) => void;
}

const OVERLAP_S = 86_400;
const SIGNED = { valid: "good", invalid: "alert", missing: "violation" } as const;

export function Hook({ hook, denied, onSecret }: Props) {
  const [, setUrl] = useUrl();
  const { hook_id, name } = hook;
  const isOpen = hook.state === "active";
  return (
    <>
      <div className={classes.part}>
        <h3>The caller's address · {SCHEMES[hook.scheme]}</h3>
        <code className={classes.code}>{hook.url}</code>
        <div className={classes.buttons}>
          <Copy value={hook.url} word="Copy the address" />
        </div>
        {/^https?:\/\/(127\.|localhost|\[::1\])/.test(hook.url) && (
          <p className={classes.note}>
            ! Only this machine reaches it. Start the gateway with OBSERVATORY_PUBLIC_URL, the way the outside
            reaches it.
          </p>
        )}
        <Calls hook={hook} />
      </div>
      <HookForm hook={hook} denied={denied} onSecret={onSecret} />
      <div className={classes.part}>
        <h3>Secret</h3>
        <p>
          {hook.old_secret_until ? (
            <>
              Two are taken; the old one until{" "}
              <time dateTime={hook.old_secret_until}>{dateClock(hook.old_secret_until)}</time>.
            </>
          ) : (
            "Rotating makes a new one; for a day both are taken, so the caller can change over."
          )}
        </p>
        <Danger
          word="Rotate the secret"
          does="Rotate: show a new secret"
          denied={denied}
          danger={false}
          onYes={async () => {
            const made = await rotateHook(hook_id, OVERLAP_S);
            if (made) onSecret({ hook_id, secret: made.secret });
          }}
        >
          A new secret is shown here, once. Calls signed with the present one are taken for 24 hours more.
        </Danger>
      </div>
      <div className={classes.part}>
        <div className={classes.buttons}>
          <Doing
            word={isOpen ? "Disable" : "Enable"}
            denied={denied}
            onClick={() =>
              changeHook(
                hook_id,
                { state: isOpen ? "disabled" : "active" },
                isOpen ? `“${name}” takes no calls for now.` : `“${name}” takes calls again.`,
              )
            }
          />
        </div>
        <Danger
          word="Remove the hook"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeHook(hook_id, name)) setUrl({ one: null });
          }}
        >
          Its address is not found any more, for good; its secret is gone. What it took stays in the record.
        </Danger>
      </div>
    </>
  );
}

function Calls({ hook }: { hook: HookItem }) {
  const asked = useAnswer("/v1/webhooks/in/calls", { hook_id: hook.hook_id, limit: 3 }, { every: 5_000 });
  const calls = asked.data?.items ?? [];
  if (calls.length === 0) return <p>Nobody has called yet.</p>;
  return (
    <ul className={classes.outcomes} aria-label="The last calls">
      {calls.map((call) => (
        <li key={call.call_id}>
          <Tag tone={SIGNED[call.signature]}>
            {call.signature === "valid" ? "✓" : "×"} {call.signature}
          </Tag>
          <span>{call.outcome}</span>
          {call.reason && <span className={classes.faint}>{call.reason}</span>}
          <span className={classes.faint}>
            <Ago at={call.at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

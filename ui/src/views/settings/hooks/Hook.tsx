// One inbound webhook: its URL, signature statistics, form with a dry run, secret and removal.

import { useApi } from "~/api/queries";
import { changeHook, removeHook, rotateHook } from "~/commands/connections";
import type { HookItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { dateClock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { BusyButton, DangerButton } from "../parts/DangerButton";
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
          <Copy value={hook.url} word="Copy URL" />
        </div>
        {/^https?:\/\/(127\.|localhost|\[::1\])/.test(hook.url) && (
          <p className={classes.note}>
            ! Reachable from this machine only. Start the gateway with OBSERVATORY_PUBLIC_URL set to its
            public URL.
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
              Two secrets are accepted; the old one until{" "}
              <time dateTime={hook.old_secret_until}>{dateClock(hook.old_secret_until)}</time>.
            </>
          ) : (
            "Rotating creates a new secret; for 24 hours both are accepted, so the caller can switch over."
          )}
        </p>
        <DangerButton
          word="Rotate secret"
          does="Rotate and show new secret"
          denied={denied}
          danger={false}
          onYes={async () => {
            const made = await rotateHook(hook_id, OVERLAP_S);
            if (made) onSecret({ hook_id, secret: made.secret });
          }}
        >
          A new secret is shown here once. Calls signed with the present one are accepted for 24 more hours.
        </DangerButton>
      </div>
      <div className={classes.part}>
        <div className={classes.buttons}>
          <BusyButton
            word={isOpen ? "Disable" : "Enable"}
            denied={denied}
            onClick={() =>
              changeHook(
                hook_id,
                { state: isOpen ? "disabled" : "active" },
                isOpen ? `“${name}” is disabled.` : `“${name}” is enabled.`,
              )
            }
          />
        </div>
        <DangerButton
          word="Remove webhook"
          does={`Remove “${name}”`}
          denied={denied}
          onYes={async () => {
            if (await removeHook(hook_id, name)) setUrl({ one: null });
          }}
        >
          Its URL returns 404 from now on; its secret is deleted. Accepted calls stay in the audit trail.
        </DangerButton>
      </div>
    </>
  );
}

function Calls({ hook }: { hook: HookItem }) {
  const query = useApi("/v1/webhooks/in/calls", { hook_id: hook.hook_id, limit: 3 }, { every: 5_000 });
  const calls = query.data?.items ?? [];
  if (calls.length === 0) return <p>No calls yet.</p>;
  return (
    <ul className={classes.outcomes} aria-label="Recent calls">
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

// One inbound call: its signature, its outcome, and its body as stored.
import { CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import type { HookCallWhole, HookItem } from "~/protocol/openapi";
import { Ago, Id } from "~/widgets/Figures";
import { inert } from "~/widgets/inert";
import { Empty, Loaded } from "~/widgets/Panel";
import { Body, useBytes } from "./Body";
import { ofCall } from "./log";
import { Signed } from "./Signed";
import classes from "./Webhooks.module.css";

interface Props {
  call_id: string;
  hooks: readonly HookItem[];
  onClose: () => void;
}

export function InboundCall({ call_id, hooks, onClose }: Props) {
  const query = useApi("/v1/webhooks/in/calls/{call_id}", undefined, {
    params: { call_id },
    every: 5_000,
  });
  if (query.error?.code === 404)
    return (
      <Empty>
        There is no call with that id.{" "}
        <button type="button" className={classes.link} onClick={onClose}>
          Back to the log
        </button>
      </Empty>
    );
  return (
    <Loaded query={query} rows={8}>
      {(call) => <Whole call={call} hooks={hooks} onClose={onClose} />}
    </Loaded>
  );
}

function Whole({
  call,
  hooks,
  onClose,
}: {
  call: HookCallWhole;
  hooks: readonly HookItem[];
  onClose: () => void;
}) {
  const { who, event, state, signature } = ofCall(call, hooks);
  return (
    <article className={classes.detail} aria-label={`${event} to ${who}`}>
      <header className={classes.head}>
        <h2>
          {event} → {who}
        </h2>
        <CloseButton size="sm" aria-label="close" onClick={onClose} />
        <p className={classes.lead}>
          <Signed sign={state} /> <Signed sign={signature} /> {call.reason ?? `${state.means}.`}
        </p>
      </header>
      <dl className={classes.facts}>
        <dt>Signature</dt>
        <dd>
          {signature.word}: {signature.means}
        </dd>
        <dt>Received</dt>
        <dd>
          <Ago at={call.at} />
          {call.caller && <> from {call.caller}</>}
          {call.calls > 1 && <>, with {call.calls - 1} more like it in that minute</>}
        </dd>
        {call.repeats > 0 && (
          <>
            <dt>Repeated</dt>
            <dd>
              {call.repeats} times, last <Ago at={call.repeated_at} />; answered like the first call
            </dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Id id={call.call_id} length={26} />
        </dd>
        {call.delivery_id && (
          <>
            <dt>Delivery</dt>
            <dd>
              <Id id={call.delivery_id} length={26} />
            </dd>
          </>
        )}
        {Object.entries(call.headers).map(([name, value]) => (
          <Header key={name} name={name} value={value} />
        ))}
      </dl>
      <section className={classes.part} aria-label="Body">
        <h3>Body</h3>
        <StoredBody call={call} />
      </section>
      <nav className={classes.links} aria-label="Links">
        {call.message_id && (
          <Link to="/forensics/message/$messageId" params={{ messageId: call.message_id }} search={{}}>
            Open message
          </Link>
        )}
        {call.session_id && call.message_id && (
          <Link to="/sessions/$sessionId" params={{ sessionId: call.session_id }} search={{}}>
            {" "}
            Open session{" "}
          </Link>
        )}
        <Link to="/settings/$section" params={{ section: "hooks" }} search={{ one: call.hook_id } as never}>
          Webhook settings
        </Link>
        <Link
          to="/forensics/$board"
          params={{ board: "webhooks" }}
          search={{ endpoint: call.hook_id } as never}
        >
          All calls of this webhook
        </Link>
      </nav>
    </article>
  );
}

function Header({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>
        <code>{name}</code>
      </dt>
      <dd>{inert(value)}</dd>
    </>
  );
}

function StoredBody({ call }: { call: HookCallWhole }) {
  const size = (call.body_bytes ?? 0).toLocaleString("en");
  if (call.body === null)
    return (
      <>
        <p className={classes.faint}>
          {call.signature === "valid"
            ? `The body (${size} bytes) is no longer stored: shredded with its message, or past retention.`
            : `Invalid signature: only digest, size (${size} bytes) and headers are stored.`}
        </p>
        <Digest hash={call.body_hash} />
      </>
    );
  return (
    <>
      <Body text={call.body} title={call.body_cut ? "Body, truncated at 64 KiB" : "Stored body"} />
      <Compared call={call} body={call.body} />
    </>
  );
}

function Digest({ hash, children }: { hash: string | null; children?: React.ReactNode }) {
  if (!hash) return null;
  return (
    <p className={classes.faint}>
      <Id id={hash} length={24} /> {children}
    </p>
  );
}

/** Hashed here: a redacted or truncated body differs from the received one, and this is shown. */
function Compared({ call, body }: { call: HookCallWhole; body: string }) {
  const content = useBytes(body);
  const bare = (hash: string | null | undefined) => hash?.replace(/^sha256:/, "");
  return (
    <Digest hash={call.body_hash}>
      {!content?.digest
        ? "digest of the received body"
        : bare(content.digest) === bare(call.body_hash)
          ? "✓ matches the received bytes, hashed in this browser"
          : `digest of the ${(call.body_bytes ?? 0).toLocaleString("en")} bytes received; the stored body is ${
              call.body_cut ? "truncated" : "redacted by your rules"
            }`}
    </Digest>
  );
}

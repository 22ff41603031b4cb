// One outbound delivery: its exact payload, every attempt with its response and signing key, and redelivery.
import { Button, CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { redeliverDelivery } from "~/commands/deliveries";
import { plural } from "~/plural";
import type { AttemptItem, DeliveryDetail, WebhookItem } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { exact } from "~/widgets/clock";
import { Ago, Id } from "~/widgets/Figures";
import { ms } from "~/widgets/format";
import { inert } from "~/widgets/inert";
import { Empty, Loaded } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { Body } from "./Body";
import { ofDelivery } from "./log";
import { Signed } from "./Signed";
import classes from "./Webhooks.module.css";

interface Props {
  endpoint_id: string;
  delivery_id: string;
  onClose: () => void;
}

export function OutboundDelivery({ endpoint_id, delivery_id, onClose }: Props) {
  const query = useApi("/v1/webhooks/out/{endpoint_id}/deliveries/{delivery_id}", undefined, {
    params: { endpoint_id, delivery_id },
    every: 3_000,
  });
  const endpoints = useApi("/v1/webhooks/out", undefined, { every: 15_000, keep: true });
  const endpoint = endpoints.data?.items.find((one) => one.endpoint_id === endpoint_id);
  if (query.error?.code === 404)
    return (
      <Empty>
        There is no delivery of this endpoint with that id.{" "}
        <button type="button" className={classes.link} onClick={onClose}>
          Back to the log
        </button>
      </Empty>
    );
  return (
    <Loaded query={query} rows={8}>
      {(whole) => (
        <Whole whole={whole} endpoint={endpoint} known={endpoints.data !== undefined} onClose={onClose} />
      )}
    </Loaded>
  );
}

function Whole({
  whole,
  endpoint,
  known,
  onClose,
}: {
  whole: DeliveryDetail;
  endpoint: WebhookItem | undefined;
  known: boolean;
  onClose: () => void;
}) {
  const name = endpoint?.name ?? (known ? "a removed endpoint" : "…");
  const { state, signature } = ofDelivery({
    ...whole,
    endpoint_name: name,
    endpoint_kind:
      endpoint?.kind ?? (whole.tries.some((one) => one.signed_with.length) ? "webhook" : "email"),
    endpoint_removed: endpoint === undefined,
  });
  return (
    <article className={classes.detail} aria-label={`${whole.event_type} to ${name}`}>
      <header className={classes.head}>
        <h2>
          {whole.event_type} → {name}
        </h2>
        <CloseButton size="sm" aria-label="close" onClick={onClose} />
        <p className={classes.lead}>
          <Signed sign={state} /> <Signed sign={signature} /> {said(whole)}
        </p>
      </header>
      <dl className={classes.facts}>
        <dt>Id</dt>
        <dd>
          <Id id={whole.delivery_id} length={26} />
        </dd>
        <dt>Event</dt>
        <dd>event {whole.sequence_number.toLocaleString("en")}</dd>
        <dt>Created</dt>
        <dd>
          <Ago at={whole.created_at} />
        </dd>
        {endpoint && (
          <>
            <dt>Endpoint</dt>
            <dd>{endpoint.url}</dd>
          </>
        )}
      </dl>
      <Again whole={whole} endpoint={endpoint} name={name} known={known} />
      <section className={classes.part} aria-label="Attempts">
        <h3>Attempts</h3>
        {whole.tries.length === 0 && <p className={classes.faint}>None yet.</p>}
        <ol className={classes.tries} aria-label="Attempts, newest first">
          {whole.tries.toReversed().map((one) => (
            <Try key={one.attempt} one={one} />
          ))}
        </ol>
      </section>
      <section className={classes.part} aria-label="Payload">
        <h3>Payload</h3>
        {whole.payload === null ? (
          <p className={classes.faint}>
            The payload was shredded. Attempts and times are kept; it cannot be sent again.
          </p>
        ) : (
          <Body text={whole.payload} title="Payload, the same for every attempt" />
        )}
      </section>
      <nav className={classes.links} aria-label="Links">
        <Link
          to="/settings/$section"
          params={{ section: "channels" }}
          search={{ one: whole.endpoint_id } as never}
        >
          Endpoint settings
        </Link>
        <Link
          to="/forensics/$board"
          params={{ board: "webhooks" }}
          search={{ endpoint: whole.endpoint_id } as never}
        >
          All deliveries to it
        </Link>
        {whole.state === "dead" && <Letter delivery_id={whole.delivery_id} />}
      </nav>
    </article>
  );
}

function said(whole: DeliveryDetail) {
  if (whole.state === "delivered") return <>after {count(whole.attempts)}.</>;
  if (whole.state === "dead")
    return (
      <>
        after {count(whole.attempts)}: {whole.last_detail}
      </>
    );
  if (!whole.next_try_at) return <>{whole.last_detail}</>;
  const soon = Date.parse(whole.next_try_at) <= Date.now();
  return (
    <>
      {whole.attempts > 0 && `${whole.last_detail}; `}next attempt{" "}
      {soon ? "due now" : <time dateTime={whole.next_try_at}>at {exact(whole.next_try_at)}</time>}.
    </>
  );
}

const count = (tries: number) => plural(tries, "attempt");

function Try({ one }: { one: AttemptItem }) {
  const keys = one.signed_with;
  return (
    <li>
      <span className={classes.number}>{one.attempt}</span>
      <span>
        <b>
          <span aria-hidden>{one.ok ? "✓" : "×"}</span> {one.code ?? "no response"}
        </b>
        <span>{ms(one.took_ms)}</span>
        <Ago at={one.at} />
        <span className={classes.faint}>
          {keys.length === 0
            ? "not signed"
            : keys.length === 1
              ? `signed with key ${keys[0]}`
              : `signed with keys ${keys.join(" and ")}`}
        </span>
      </span>
      <span className={classes.faint}>{one.detail}</span>
      {one.excerpt && <code className={classes.excerpt}>{inert(one.excerpt)}</code>}
    </li>
  );
}

/** A delivered one asks for confirmation; an undelivered one is sent again at once. */
function Again({
  whole,
  endpoint,
  name,
  known,
}: {
  whole: DeliveryDetail;
  endpoint: WebhookItem | undefined;
  name: string;
  known: boolean;
}) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("admin");
  const why =
    denied ??
    (known && endpoint === undefined
      ? "The endpoint was removed."
      : endpoint?.state === "disabled"
        ? "The endpoint is disabled. Enable it in its settings first."
        : whole.payload === null
          ? "The payload was shredded."
          : undefined);
  const run = async () => {
    setBusy(true);
    await redeliverDelivery(whole.endpoint_id, whole.delivery_id, name);
    setBusy(false);
    setAsking(false);
  };
  if (asking)
    return (
      <ConfirmInline does={`Redeliver to ${name}`} danger={false} onYes={run} onNo={() => setAsking(false)}>
        <p>
          Already delivered. {name} receives it a second time, under the same id: a receiver that does not
          deduplicate by id processes it twice.
        </p>
      </ConfirmInline>
    );
  return (
    <div className={classes.buttons}>
      <Button
        size="compact-sm"
        variant="default"
        loading={busy}
        disabled={why !== undefined}
        title={why}
        onClick={() => (whole.state === "delivered" ? setAsking(true) : void run())}
      >
        {whole.state === "delivered" ? "Redeliver…" : "Redeliver"}
      </Button>
      {why && <span className={classes.faint}>{why}</span>}
    </div>
  );
}

function Letter({ delivery_id }: { delivery_id: string }) {
  const letters = useApi("/v1/dead-letters", { kind: "webhook", limit: 200 });
  const letter = letters.data?.items.find((one) => one.subject_id === delivery_id);
  return (
    <Link to="/scheduler" search={{ board: "letters", letter: letter?.letter_id } as never}>
      {letter ? "Dead letter" : "Dead letters"}
    </Link>
  );
}

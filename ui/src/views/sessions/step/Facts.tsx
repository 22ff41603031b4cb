// Facts with their actions: show spread, mark false, unmark, quarantine.
import { Button } from "@mantine/core";
import { useState } from "react";
import { unmark } from "~/commands/facts";
import { plural } from "~/plural";
import type { MemoryItem } from "~/protocol/openapi";
import { useUrl } from "~/useUrl";
import { MarkFalseForm, QuarantineForm } from "~/widgets/FactForms";
import { Tag } from "~/widgets/Mark";
import { useWhyNot } from "~/widgets/users";
import classes from "./Step.module.css";

export type Fact = Pick<
  MemoryItem,
  | "fact_id"
  | "text"
  | "uses"
  | "marked_false"
  | "agent_id"
  | "sequence_number"
  | "session_id"
  | "source_fact_id"
> & { held_by?: "added" | "read" };

export function Facts({
  facts,
  label,
  goTo,
}: {
  facts: Fact[];
  label: string;
  goTo?: (sequence_number: number) => void;
}) {
  return (
    <ul className={classes.facts} aria-label={label}>
      {facts.map((fact) => (
        <FactLine key={fact.fact_id} fact={fact} goTo={goTo} />
      ))}
    </ul>
  );
}

function FactLine({ fact, goTo }: { fact: Fact; goTo?: (sequence_number: number) => void }) {
  const [url, setUrl] = useUrl();
  const [form, setForm] = useState<"false" | "quarantine" | null>(null);
  const denied = useWhyNot("operate");
  const off = { disabled: denied !== undefined, title: denied };
  const isTraced = url.fact === fact.fact_id;
  const trace = () =>
    setUrl(isTraced ? { fact: null, colour: null } : { fact: fact.fact_id, colour: "infection" });
  return (
    <li data-false={fact.marked_false ? true : undefined}>
      <p className={classes.fact}>
        {fact.marked_false && (
          <>
            <Tag tone="alert">× marked false</Tag>{" "}
          </>
        )}
        {fact.text}
      </p>
      <div className={classes.tools}>
        {goTo ? (
          <button type="button" className={classes.link} onClick={() => goTo(fact.sequence_number)}>
            {fact.agent_id ?? "unknown"} · #{fact.sequence_number}
          </button>
        ) : (
          <span>{fact.held_by === "read" ? `read from ${fact.agent_id}` : ""}</span>
        )}
        <span>
          {plural(fact.uses, "use")}
          {fact.source_fact_id !== fact.fact_id && " · a copy"}
        </span>
        <button type="button" className={classes.link} aria-pressed={isTraced} onClick={trace}>
          {isTraced ? "stop tracing" : "spread"}
        </button>
        {fact.marked_false ? (
          <>
            <button type="button" className={classes.link} {...off} onClick={() => setForm("quarantine")}>
              quarantine…
            </button>
            <button type="button" className={classes.link} {...off} onClick={() => void unmark(fact.fact_id)}>
              {" "}
              unmark{" "}
            </button>
          </>
        ) : (
          <button type="button" className={classes.link} {...off} onClick={() => setForm("false")}>
            mark false…
          </button>
        )}
      </div>
      {form === "false" && (
        <MarkFalseForm
          fact={fact.fact_id}
          done={(marked) => {
            setForm(marked ? "quarantine" : null);
            if (marked) setUrl({ fact: fact.fact_id, colour: "infection" });
          }}
        />
      )}
      {form === "quarantine" && <QuarantineForm fact={fact.fact_id} done={() => setForm(null)} />}
    </li>
  );
}

/** Texts the analyst has not indexed as facts yet. */
export function PlainFacts({ texts }: { texts: string[] }) {
  return (
    <ul className={classes.facts}>
      {texts.map((text, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: an agent may repeat the same text
        <li key={n}>
          <p className={classes.fact}>{text}</p>
        </li>
      ))}
    </ul>
  );
}

export function More({ count, open }: { count: number; open: () => void }) {
  return (
    <Button size="compact-xs" variant="subtle" onClick={open}>
      show {count} more
    </Button>
  );
}

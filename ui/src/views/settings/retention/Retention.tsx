// How long payloads are kept. Before anything is saved: what will be lost, and when; then it is to be typed.

import { Radio } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { keepFor } from "~/acts/settings";
import { useAnswer } from "~/api/questions";
import type { RetentionAnswer } from "~/protocol/openapi";
import { dateClock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { useNow } from "~/widgets/now";
import { Shown } from "~/widgets/Panel";
import { useMe, useNames, useWhyNot } from "~/widgets/people";
import { Sure } from "~/widgets/Sure";
import { AdminsOnly } from "../parts/AdminsOnly";
import { Text, Tick } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { useForm } from "../parts/useForm";
import { before, daysOf, loses, lossSentence, MOST_DAYS, typedFor, valuesOf } from "./keeping";

export function Retention() {
  const me = useMe().data;
  const denied = useWhyNot("admin");
  const asked = useAnswer("/v1/retention", undefined, {
    enabled: me !== undefined && denied === undefined,
    every: 5_000,
    keep: true,
  });
  return (
    <Section
      title="Retention"
      lead="How long the words of messages are kept. Numbers, digests, links and proofs stay whatever is said here: shredding destroys bytes, never rows."
    >
      {denied ? (
        <AdminsOnly
          denied={denied}
          what="Retention and its history"
          because="they decide what is lost"
          command="observatory retention"
        />
      ) : (
        <Shown asked={asked} rows={4}>
          {(now) => <Keeping now={now} />}
        </Shown>
      )}
    </Section>
  );
}

function Keeping({ now }: { now: RetentionAnswer }) {
  const names = useNames();
  const form = useForm("retention", valuesOf(now), now.updated_at);
  const [asking, setAsking] = useState(false);
  const days = daysOf(form.values);
  const isLoss = days !== undefined && loses(now.days, days, form.flag("thoughts"), now.thoughts);
  const put = async () => {
    if (days === undefined) return;
    const done = await keepFor({ days, thoughts: days !== null && form.flag("thoughts") }, form.refused);
    setAsking(false);
    if (done) form.forget();
  };
  const save = async () => {
    if (days === undefined) return form.setFaults({ days: `A whole number of days, 1 to ${MOST_DAYS}.` });
    if (isLoss) setAsking(true);
    else await put();
  };
  return (
    <>
      <p className={classes.big}>
        {now.days === null
          ? "Everything is kept, for ever."
          : `Messages are shredded after ${now.days} ${now.days === 1 ? "day" : "days"}${now.thoughts ? ", thoughts too" : "; thoughts are kept"}.`}
      </p>
      {now.updated_at && (
        <p className={classes.says}>
          Said <Ago at={now.updated_at} /> by {names(now.updated_by)}.
        </p>
      )}
      <div className={classes.card}>
        <FormBox
          form={form}
          label="Retention"
          does={isLoss ? "Say what will be lost…" : "Save"}
          denied={undefined}
          onSave={save}
        >
          <Radio.Group
            label="Keep the words of messages"
            size="xs"
            value={form.text("keep")}
            onChange={(keep) => {
              setAsking(false);
              form.set({ keep });
            }}
          >
            <Radio size="xs" mt={8} value="forever" label="for ever" />
            <Radio size="xs" mt={8} value="days" label="for so many days" />
          </Radio.Group>
          {form.text("keep") === "days" && (
            <>
              <Text form={form} name="days" label="Days" inputMode="numeric" />
              <Tick
                form={form}
                name="thoughts"
                label="The words of thoughts too"
                means="A seal is made over them; it verifies on, but nobody can read what was sealed."
              />
            </>
          )}
          {days !== undefined && days !== null && <Loss days={days} />}
          {days === null && now.days !== null && (
            <p className={classes.says}>
              Nothing more is shredded from now on. What was shredded does not come back.
            </p>
          )}
        </FormBox>
        {asking && !form.isTheirs && days !== null && days !== undefined && (
          <div className={classes.part}>
            <Sure
              does={`Shred what is older than ${days} ${days === 1 ? "day" : "days"}`}
              typed={typedFor(days)}
              onYes={put}
              onNo={() => setAsking(false)}
            >
              <p>
                This cannot be undone. Within a minute the clock begins; backups and exports made before hold
                what they held.
              </p>
            </Sure>
          </div>
        )}
      </div>
    </>
  );
}

/** Counted by search, which forgets what is shredded: what it finds is what still has words. */
function Loss({ days }: { days: number }) {
  const nowMs = useNow();
  const [settled] = useDebouncedValue(days, 350);
  // To the hour, so that the question stays the same while one looks.
  const until = before(settled, nowMs);
  until.setUTCMinutes(0, 0, 0);
  const asked = useAnswer("/v1/search", { q: `until:${until.toISOString()}`, limit: 1, mode: "text" });
  const found = asked.data && "hits" in asked.data ? asked.data : null;
  return (
    <div role="status" aria-label="What will be lost" className={classes.says}>
      <p>
        Everything the gateway took before <b>{dateClock(before(days, nowMs))}</b> goes first, then each
        message as it comes of age.
      </p>
      <p>
        {found
          ? lossSentence(found.hits, found.capped)
          : asked.error
            ? `How much that is cannot be counted now: ${asked.error.message}`
            : "Counting…"}
      </p>
      <p className={classes.faint}>Messages held for a person are left alone until they are decided.</p>
    </div>
  );
}

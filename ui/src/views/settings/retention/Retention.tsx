// Payload retention. Before saving, a preview of what will be shredded and when; then a typed confirmation.

import { Radio } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useApi } from "~/api/queries";
import { keepFor } from "~/commands/settings";
import { plural } from "~/plural";
import type { RetentionAnswer } from "~/protocol/openapi";
import { ConfirmInline } from "~/widgets/ConfirmInline";
import { dateClock } from "~/widgets/clock";
import { Ago } from "~/widgets/Figures";
import { useNow } from "~/widgets/now";
import { Loaded } from "~/widgets/Panel";
import { useMe, useNames, useWhyNot } from "~/widgets/users";
import { AdminsOnly } from "../parts/AdminsOnly";
import { CheckboxField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { useForm } from "../parts/useForm";
import { before, daysOf, loses, lossSentence, MAX_DAYS, typedFor, valuesOf } from "./retentionForm";

export function Retention() {
  const me = useMe().data;
  const denied = useWhyNot("admin");
  const request = useApi("/v1/retention", undefined, {
    enabled: me !== undefined && denied === undefined,
    every: 5_000,
    keep: true,
  });
  return (
    <Section
      title="Retention"
      lead="How long message content is kept. Numbers, digests, links and proofs always stay: shredding destroys bytes, never rows."
    >
      {denied ? (
        <AdminsOnly
          denied={denied}
          what="Retention and its history"
          because="they decide what is deleted"
          command="observatory retention"
        />
      ) : (
        <Loaded query={request} rows={4}>
          {(now) => <Keeping now={now} />}
        </Loaded>
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
    if (days === undefined)
      return form.setFaults({ days: `Must be a whole number of days from 1 to ${MAX_DAYS}.` });
    if (isLoss) setAsking(true);
    else await put();
  };
  return (
    <>
      <p className={classes.big}>
        {now.days === null
          ? "Everything is kept forever."
          : `Messages are shredded after ${plural(now.days, "day")}${now.thoughts ? ", thoughts too" : "; thoughts are kept"}.`}
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
          does={isLoss ? "Preview…" : "Save"}
          denied={undefined}
          onSave={save}
        >
          <Radio.Group
            label="Keep message content"
            size="xs"
            value={form.text("keep")}
            onChange={(keep) => {
              setAsking(false);
              form.set({ keep });
            }}
          >
            <Radio size="xs" mt={8} value="forever" label="forever" />
            <Radio size="xs" mt={8} value="days" label="for a number of days" />
          </Radio.Group>
          {form.text("keep") === "days" && (
            <>
              <TextField form={form} name="days" label="Days" inputMode="numeric" />
              <CheckboxField
                form={form}
                name="thoughts"
                label="Also thoughts"
                means="Their seals still verify, but the sealed content can no longer be read."
              />
            </>
          )}
          {days !== undefined && days !== null && <Loss days={days} />}
          {days === null && now.days !== null && (
            <p className={classes.says}>
              Nothing more is shredded from now on. Shredded data cannot be restored.
            </p>
          )}
        </FormBox>
        {asking && !form.isTheirs && days !== null && days !== undefined && (
          <div className={classes.part}>
            <ConfirmInline
              does={`Shred data older than ${plural(days, "day")}`}
              typed={typedFor(days)}
              onYes={put}
              onNo={() => setAsking(false)}
            >
              <p>
                This cannot be undone. Shredding starts within a minute; existing backups and exports are not
                changed.
              </p>
            </ConfirmInline>
          </div>
        )}
      </div>
    </>
  );
}

/** Counted by search, which no longer finds shredded messages. */
function Loss({ days }: { days: number }) {
  const nowMs = useNow();
  const [settled] = useDebouncedValue(days, 350);
  // To the hour, so that the query is stable while the page is open.
  const until = before(settled, nowMs);
  until.setUTCMinutes(0, 0, 0);
  const request = useApi("/v1/search", { q: `until:${until.toISOString()}`, limit: 1, mode: "text" });
  const found = request.data && "hits" in request.data ? request.data : null;
  return (
    <div role="status" aria-label="Preview" className={classes.says}>
      <p>
        Everything received before <b>{dateClock(before(days, nowMs))}</b> is shredded first, then each
        message at that age.
      </p>
      <p>
        {found
          ? lossSentence(found.hits, found.capped)
          : request.error
            ? `The number of messages is unknown: ${request.error.message}`
            : "Counting…"}
      </p>
      <p className={classes.faint}>Held messages are not shredded until they are decided.</p>
    </div>
  );
}

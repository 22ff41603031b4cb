// The cron expression and its zone, explained while they are typed: in words, its next five times in that
// zone, or the error and its position. The gateway explains; nothing here interprets the expression.

import { Autocomplete, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type Problem, send } from "~/api/client";
import { zones } from "~/locale";
import type { Previewed } from "~/protocol/openapi";
import { useNow } from "~/widgets/now";
import classes from "./CronField.module.css";
import { fieldsOf, NAMES, pointAt, underline } from "./cron";
import { until } from "./jobText";

const ZONES = zones();

interface Props {
  cron: string;
  zone: string;
  set: (changes: { cron?: string; zone?: string }) => void;
  faults: { cron?: string | undefined; zone?: string | undefined };
}

export function CronField({ cron, zone, set, faults }: Props) {
  const [asked] = useDebouncedValue({ cron: cron.trim(), zone: zone.trim() || "UTC" }, 250);
  const preview = useQuery<Previewed, Problem>({
    queryKey: ["/v1/jobs/preview", asked.cron, asked.zone],
    queryFn: ({ signal }) => send("POST /v1/jobs/preview", { body: asked, signal }),
    enabled: asked.cron !== "",
    staleTime: 20_000,
    refetchInterval: (query) => (query.state.error ? false : 30_000),
  });
  const refused = preview.error?.code === 422 || preview.error?.code === 400 ? preview.error : null;
  const badZone = refused !== null && /zone/.test(refused.message);
  return (
    <>
      <div className={classes.fields}>
        <TextInput
          size="xs"
          label="Cron expression"
          className={classes.line}
          value={cron}
          spellCheck={false}
          autoComplete="off"
          aria-describedby="cron-explained"
          error={faults.cron ?? (refused && !badZone ? true : undefined)}
          onChange={(event) => set({ cron: event.currentTarget.value })}
        />
        <Autocomplete
          size="xs"
          label="Zone"
          data={ZONES}
          limit={30}
          value={zone}
          error={faults.zone ?? (badZone ? "Unknown time zone." : undefined)}
          onChange={(value) => set({ zone: value })}
        />
      </div>
      <div className={classes.explained} id="cron-explained" role="status">
        {asked.cron === "" ? (
          <p>Five fields: minute, hour, day of month, month, day of week; six with seconds first.</p>
        ) : refused ? (
          <CronError cron={asked.cron} problem={refused.message} />
        ) : preview.data ? (
          <CronPreview explanation={preview.data} zone={asked.zone} />
        ) : preview.error ? (
          <p>No preview: {preview.error.message}</p>
        ) : (
          <p>Parsing…</p>
        )}
      </div>
    </>
  );
}

function CronPreview({ explanation, zone }: { explanation: Previewed; zone: string }) {
  const now = useNow();
  return (
    <>
      <p>
        <b>{explanation.explained}</b> ({zone})
      </p>
      <ol aria-label="Next five runs">
        {explanation.local.map((local, n) => (
          <li key={local}>
            <span className="mono">{local.slice(0, 10)}</span> <b className="mono">{local.slice(11, 19)}</b>{" "}
            <span>{until(explanation.next[n] ?? local, now)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

function CronError({ cron, problem }: { cron: string; problem: string }) {
  const pointed = pointAt(cron, problem);
  if (!pointed) return <p className={classes.wrong}>! {problem}</p>;
  return (
    <div className={classes.wrong} role="alert">
      <pre aria-hidden>
        {cron}
        {"\n"}
        {underline(pointed)}
      </pre>
      <p>! {pointed.says}</p>
      <p className={classes.fieldNames}>
        {fieldsOf(cron)
          .slice(0, 6)
          .map(({ name, text }) => `${text} ${NAMES[name] ?? name}`)
          .join(" · ")}
      </p>
    </div>
  );
}

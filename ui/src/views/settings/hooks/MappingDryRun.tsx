// Dry run of the mapping on a sample, while typing; nothing is sent or stored.
import { Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { type Problem, send } from "~/api/client";
import type { HookMapping, HookTried } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import classes from "../parts/Parts.module.css";
import { fieldOfFault, readSample, SAMPLE, type Scheme } from "./mapping";

interface Props {
  mapping: HookMapping | null;
  scheme: Scheme;
  onFault: (field: string, text: string) => void;
}

export function MappingDryRun({ mapping, scheme, onFault }: Props) {
  const [draft, setText] = useDraft("settings hook sample");
  const text = draft ?? SAMPLE;
  const sample = readSample(text);
  const [asked] = useDebouncedValue(JSON.stringify({ mapping, scheme, text }), 350);
  const now = asked === JSON.stringify({ mapping, scheme, text });
  const tried = useQuery<HookTried, Problem>({
    queryKey: ["hook trial", asked],
    queryFn: () => send("POST /v1/webhooks/in/test", { body: { mapping, scheme, body: sample.body } }),
    enabled: now && mapping !== null && sample.fault === null,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
  });
  const fault = tried.data?.outcome === "unmapped" && now ? tried.data.fault : null;
  const place = fault ? `${fault.path}\n${fault.problem}` : null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: reported once per fault
  useEffect(() => {
    if (fault) onFault(fieldOfFault(fault.path), fault.problem);
  }, [place]);
  return (
    <div className={classes.part}>
      <h3>Dry run</h3>
      <Textarea
        size="xs"
        label="Sample body"
        description="Nothing is sent or stored."
        rows={7}
        resize="vertical"
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        value={text}
        error={sample.fault}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div role="status" className={classes.part} aria-label="Dry run result">
        {mapping === null ? (
          <p>Enter an intent and a target to see the resulting message.</p>
        ) : tried.error ? (
          <p className={classes.trouble}>! {tried.error.message}</p>
        ) : tried.data && sample.fault === null ? (
          <Outcome tried={tried.data} />
        ) : null}
      </div>
    </div>
  );
}

function Outcome({ tried }: { tried: HookTried }) {
  if (tried.outcome === "ignored")
    return (
      <p>
        <Tag tone="idle">○ ignored</Tag> “Only when” excludes this body.
      </p>
    );
  if (tried.outcome === "unmapped")
    return (
      <p>
        <Tag tone="alert">× unmapped</Tag> {tried.fault?.path} {tried.fault?.problem}
      </p>
    );
  return (
    <>
      <p>
        <Tag tone="good">✓ accepted</Tag> “{tried.intent}” for {tried.target?.kind} {tried.target?.name}
        {tried.session && `, session ${tried.session}`}
      </p>
      <Json value={tried.payload} label="Payload" />
    </>
  );
}

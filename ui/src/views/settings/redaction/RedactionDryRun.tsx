// Dry run of a rule, or of all rules in force, on a sample. Nothing is stored.
import { Textarea } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { type Problem, send } from "~/api/client";
import type { NewRedaction, TrialAnswer } from "~/protocol/openapi";
import { useDraft } from "~/widgets/drafts";
import { Json } from "~/widgets/Json";
import { Tag } from "~/widgets/Mark";
import { type Faults, faultsOf } from "../faults";
import { readSample } from "../hooks/mapping";
import classes from "../parts/Parts.module.css";
import { SAMPLE } from "./rules";

interface Props {
  /** Without one the rules in force are tested. */
  rule: NewRedaction | null;
  onFault?: (faults: Faults) => void;
}

export function RedactionDryRun({ rule, onFault }: Props) {
  const [draft, setText] = useDraft("settings redaction sample");
  const text = draft ?? SAMPLE;
  const sample = readSample(text);
  const key = JSON.stringify({ rule, text });
  const [asked] = useDebouncedValue(key, 350);
  const tried = useQuery<TrialAnswer, Problem>({
    queryKey: ["redaction trial", asked],
    queryFn: () =>
      send("POST /v1/redaction/dry-run", { body: { message: sample.body as Record<string, unknown>, rule } }),
    enabled: asked === key && sample.fault === null,
    retry: false,
    placeholderData: (before) => before,
  });
  const problem = tried.error;
  // biome-ignore lint/correctness/useExhaustiveDependencies: reported once per refusal
  useEffect(() => {
    if (problem) onFault?.(faultsOf(problem, ["name", "pattern", "path"]).at);
  }, [problem]);
  return (
    <div className={classes.part}>
      <h3>{rule ? "Dry run of this rule" : "Dry run of all rules"}</h3>
      <Textarea
        size="xs"
        label="Sample message"
        description="Nothing is stored."
        rows={8}
        resize="vertical"
        spellCheck={false}
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        value={text}
        error={sample.fault}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div role="status" aria-label="Redacted message">
        {problem ? (
          <p className={classes.trouble}>! {problem.message}</p>
        ) : (
          tried.data && sample.fault === null && <RedactedMessage answer={tried.data} />
        )}
      </div>
    </div>
  );
}

function RedactedMessage({ answer }: { answer: TrialAnswer }) {
  return (
    <>
      <p>
        {answer.replaced === 0 ? (
          <Tag tone="idle">○ no matches</Tag>
        ) : (
          <Tag tone="good">✓ {answer.replaced} redacted</Tag>
        )}{" "}
        {answer.places
          .map((one) => `${one.path} (${one.kind}${one.times > 1 ? `, ${one.times}×` : ""})`)
          .join(", ")}
        {!answer.fits && " The result is not a valid message: it would be refused."}
      </p>
      <Json value={answer.message} label="Redacted message" />
    </>
  );
}

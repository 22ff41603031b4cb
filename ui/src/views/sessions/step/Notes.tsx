// Notes on a step, and the review of a low-confidence one.
import { Button, Select, Textarea } from "@mantine/core";
import { useState } from "react";
import { refetch, useApi } from "~/api/queries";
import { review } from "~/commands/session";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNames, useWhyNot } from "~/widgets/users";
import classes from "./Step.module.css";
import { annotate, removeNote, STEP } from "./stepCommands";
import type { StepDetails } from "./stepDetails";

export function Notes({ details }: { details: StepDetails }) {
  const name = useNames();
  const [draft, setText] = useDraft(`step note ${details.message_id ?? details.sequence_number}`);
  const text = draft ?? "";
  const [writing, setWriting] = useState(draft !== null);
  const denied = useWhyNot("approve");
  const [category, setCategory] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const categories = useApi("/v1/annotations/categories", undefined, { enabled: writing });
  const kinds = categories.data?.items ?? [];
  return (
    <>
      {details.annotations.length > 0 && (
        <ul className={classes.notes} aria-label="Notes">
          {details.annotations.map((note) => (
            <li key={note.annotation_id}>
              <p className={classes.fact}>
                {note.category && <Tag tone="violation">{note.category.replaceAll("_", " ")}</Tag>}{" "}
                {note.text}
              </p>
              <div className={classes.tools}>
                <span>
                  {name(note.author_id)}, <Ago at={note.created_at} />
                </span>
                <button
                  type="button"
                  className={classes.link}
                  disabled={denied !== undefined}
                  title={denied}
                  onClick={() => void removeNote(note.annotation_id)}
                >
                  remove
                </button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {!writing ? (
        <Button
          size="compact-xs"
          variant="default"
          disabled={denied !== undefined}
          title={denied}
          onClick={() => setWriting(true)}
        >
          Add a note…
        </Button>
      ) : (
        <form
          className={classes.form}
          onSubmit={async (event) => {
            event.preventDefault();
            setBusy(true);
            const step = details.message_id ?? String(details.sequence_number);
            const answer = await annotate(details.session_id, step, { text, category, label: null });
            setBusy(false);
            if (!answer) return;
            setText(null);
            setWriting(false);
          }}
        >
          <Textarea
            size="xs"
            autosize
            minRows={2}
            required
            maxLength={4096}
            label="Note"
            value={text}
            onChange={(event) => setText(event.currentTarget.value || null)}
          />
          <Select
            size="xs"
            clearable
            searchable
            label="Kind of failure (optional)"
            data={kinds.map((kind) => ({
              value: kind.category,
              label: `${kind.category.replaceAll("_", " ")}: ${kind.meaning}`,
            }))}
            value={category}
            onChange={setCategory}
          />
          <div className={classes.tools}>
            <Button size="compact-xs" type="submit" loading={busy} disabled={!text.trim()}>
              Save note
            </Button>
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => {
                setText(null);
                setWriting(false);
              }}
            >
              Cancel
            </Button>
          </div>
        </form>
      )}
    </>
  );
}

const VERDICTS = [
  { verdict: "ok", words: "Correct" },
  { verdict: "wrong", words: "Incorrect" },
  { verdict: "unsure", words: "Unsure" },
] as const;

export function ReviewStep({ details }: { details: StepDetails }) {
  const name = useNames();
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("approve");
  if (details.review)
    return (
      <p>
        {VERDICTS.find((one) => one.verdict === details.review?.verdict)?.words}, says{" "}
        {name(details.review.reviewed_by)} <Ago at={details.review.reviewed_at} />
        {details.review.note && `: ${details.review.note}`}
      </p>
    );
  return (
    <div className={classes.form}>
      <p>Confidence {Math.round((details.confidence ?? 0) * 100)} %, not reviewed yet.</p>
      <Textarea
        size="xs"
        autosize
        minRows={1}
        label="Note (optional)"
        value={note}
        onChange={(event) => setNote(event.currentTarget.value)}
      />
      <div className={classes.tools}>
        {VERDICTS.map(({ verdict, words }) => (
          <Button
            key={verdict}
            size="compact-xs"
            variant="default"
            disabled={busy || denied !== undefined}
            title={denied}
            onClick={async () => {
              setBusy(true);
              await review(String(details.sequence_number), verdict, note.trim() || null);
              refetch(STEP);
              setBusy(false);
            }}
          >
            {words}
          </Button>
        ))}
      </div>
    </div>
  );
}

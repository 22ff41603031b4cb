// What people note about a step, and their verdict on one the agent itself was not sure of.
import { Button, Select, Textarea } from "@mantine/core";
import { useState } from "react";
import { review } from "~/acts/acts";
import { askAgain, useAnswer } from "~/api/questions";
import { useDraft } from "~/widgets/drafts";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { useNames, useWhyNot } from "~/widgets/people";
import { annotate, removeNote, STEP } from "./acting";
import classes from "./Step.module.css";
import type { Told } from "./told";

export function Notes({ told }: { told: Told }) {
  const name = useNames();
  const [draft, setText] = useDraft(`step note ${told.message_id ?? told.sequence_number}`);
  const text = draft ?? "";
  const [writing, setWriting] = useState(draft !== null);
  const denied = useWhyNot("approve");
  const [category, setCategory] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const categories = useAnswer("/v1/annotations/categories", undefined, { enabled: writing });
  const kinds = categories.data?.items ?? [];
  return (
    <>
      {told.annotations.length > 0 && (
        <ul className={classes.notes} aria-label="Notes">
          {told.annotations.map((note) => (
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
            const step = told.message_id ?? String(told.sequence_number);
            const answer = await annotate(told.session_id, step, { text, category, label: null });
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
            label="Kind of failure (may stay empty)"
            data={kinds.map((kind) => ({
              value: kind.category,
              label: `${kind.category.replaceAll("_", " ")}: ${kind.meaning}`,
            }))}
            value={category}
            onChange={setCategory}
          />
          <div className={classes.tools}>
            <Button size="compact-xs" type="submit" loading={busy} disabled={!text.trim()}>
              Save the note
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
  { verdict: "ok", words: "It was right" },
  { verdict: "wrong", words: "It was wrong" },
  { verdict: "unsure", words: "Cannot tell" },
] as const;

export function ReviewStep({ told }: { told: Told }) {
  const name = useNames();
  const [note, setNote] = useState("");
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("approve");
  if (told.review)
    return (
      <p>
        {VERDICTS.find((one) => one.verdict === told.review?.verdict)?.words}, says{" "}
        {name(told.review.reviewed_by)} <Ago at={told.review.reviewed_at} />
        {told.review.note && `: ${told.review.note}`}
      </p>
    );
  return (
    <div className={classes.form}>
      <p>
        The agent was {Math.round((told.confidence ?? 0) * 100)} % sure. Nobody has looked at it yet. What do
        you say?
      </p>
      <Textarea
        size="xs"
        autosize
        minRows={1}
        label="Note (may stay empty)"
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
              await review(String(told.sequence_number), verdict, note.trim() || null);
              askAgain(STEP);
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

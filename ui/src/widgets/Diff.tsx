// A line diff of two texts, and a JSON editor with the diff next to it. Added and removed lines differ by
// sign, word and colour. The editor never sends; its caller does.
import { Textarea } from "@mantine/core";
import { useMemo } from "react";
import type { Fault } from "~/api/client";
import { plural } from "~/plural";
import classes from "./Diff.module.css";
import { counted, folded, linesOf } from "./lineDiff";

const SIGNS = { same: " ", in: "+", out: "−" } as const;
const SAID = { same: "", in: "added: ", out: "removed: " } as const;

export function Diff({
  before,
  after,
  label = "Changes",
}: {
  before: string;
  after: string;
  label?: string;
}) {
  const lines = useMemo(() => linesOf(before, after), [before, after]);
  const { into, out } = counted(lines);
  return (
    <figure className={classes.diff} aria-label={label}>
      <figcaption className={classes.sum}>
        {into + out === 0 ? "No changes yet" : `${out} removed, ${into} added`}
      </figcaption>
      {/* biome-ignore-start lint/a11y/noNoninteractiveTabindex: a long text must be scrollable by keyboard */}
      {/* biome-ignore-start lint/a11y/useSemanticElements: lines are a group, not a set of fields */}
      <div className={classes.lines} tabIndex={0} role="group" aria-label={`${label}, line by line`}>
        {/* biome-ignore-end lint/a11y/useSemanticElements: see above */}
        {/* biome-ignore-end lint/a11y/noNoninteractiveTabindex: see above */}
        {folded(lines).map((line, n) =>
          line.kind === "gap" ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
            <div key={n} className={classes.gap}>
              {plural(line.hidden, "line")} unchanged
            </div>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity but their place
            <div key={n} className={classes.line} data-kind={line.kind}>
              <span className={classes.number} aria-hidden>
                {line.now ?? line.old}
              </span>
              <span className={classes.sign} aria-hidden>
                {SIGNS[line.kind]}
              </span>
              <code>
                <span className="unseen">{SAID[line.kind]}</span>
                {line.text}
              </code>
            </div>
          ),
        )}
      </div>
    </figure>
  );
}

/** The text parsed as a JSON object, or the error, with its line if known. */
export function readObject(text: string): { value: Record<string, unknown> } | { problem: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value))
      return { problem: "A message must be a JSON object: it begins with { and ends with }." };
    return { value: value as Record<string, unknown> };
  } catch (error) {
    const problemText = (error as Error).message;
    const at = /position (\d+)/.exec(problemText)?.[1];
    const line = at ? text.slice(0, Number(at)).split("\n").length : null;
    return {
      problem: `Not valid JSON${line ? ` at line ${line}` : ""}: ${problemText.replace(/ \(line.*/, "")}`,
    };
  }
}

export function DiffEditor({
  original,
  text,
  onText,
  faults = [],
  label = "Message to be delivered",
}: {
  original: string;
  text: string;
  onText: (text: string) => void;
  faults?: Fault[];
  label?: string;
}) {
  const read = readObject(text);
  const problem = "problem" in read ? read.problem : null;
  return (
    <div className={classes.editor}>
      <div>
        <Textarea
          label={label}
          value={text}
          onChange={(event) => onText(event.currentTarget.value)}
          autosize
          minRows={10}
          maxRows={26}
          spellCheck={false}
          classNames={{ input: classes.input }}
          error={problem}
          data-autofocus
        />
        {faults.length > 0 && (
          <ul className={classes.faults} role="alert">
            {faults.map((fault) => (
              <li key={`${fault.path} ${fault.problem}`}>
                <code>{fault.path || "message"}</code> {fault.problem}
              </li>
            ))}
          </ul>
        )}
      </div>
      <Diff before={original} after={text} />
    </div>
  );
}

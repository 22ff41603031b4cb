// A quote of a message with the matching words marked; untrusted text, shown inert.
import type { SearchHit } from "~/protocol/openapi";
import classes from "./Hits.module.css";
import { runsOf } from "./queryText";

const PARTS: Record<string, string> = {
  memory_read: "memory read",
  details: "in its details",
  message: "",
  intent: "",
};

export function Quote({ hit }: { hit: SearchHit }) {
  const { snippet } = hit;
  if (!snippet || snippet.text === "")
    return <span className={classes.none}>{snippet === null ? "" : "content removed"}</span>;
  const part = PARTS[snippet.part] ?? snippet.part;
  return (
    <span className={classes.quote} dir="auto">
      {part && <span className={classes.part}>{part} </span>}
      {runsOf(snippet).map(({ text, marked }, n) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: runs have no identity but their place
        marked ? <mark key={n}>{text}</mark> : <span key={n}>{text}</span>,
      )}
    </span>
  );
}

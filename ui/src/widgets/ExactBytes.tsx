// The bytes of a message as they were archived, pretty to read or as they are, and whether they are those a
// digest names. What turns the writing around or hides in it is named, and of a huge one the beginning is shown.
import { useState } from "react";
import classes from "./ExactBytes.module.css";
import type { Exact } from "./exact";
import { Id } from "./Figures";
import { beginning, inert } from "./inert";

/** A browser lays out so much at once without standing still. */
const SHOWN = 65_536;

export function ExactBytes({
  content,
  digest,
  title = "The exact message",
}: {
  content: Exact;
  digest: string | null;
  title?: string;
}) {
  const [raw, setRaw] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const cut = beginning(raw ? content.text : content.pretty, most);
  const proven = content.digest !== null && content.digest === digest;
  const other = content.digest !== null && digest !== null && !proven;
  return (
    <figure className={classes.exact} aria-label={title}>
      <figcaption>
        <span>
          {content.rewritten ? "What a person put in its place" : title}, {content.size.toLocaleString("en")}{" "}
          bytes
        </span>
        <button type="button" className={classes.toggle} onClick={() => setRaw(!raw)} aria-pressed={raw}>
          as sent
        </button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long text must be scrollable by keyboard */}
      <pre tabIndex={0}>{inert(cut.text)}</pre>
      {cut.left > 0 && (
        <button type="button" className={classes.toggle} onClick={() => setMost(most + 4 * SHOWN)}>
          {cut.left.toLocaleString("en")} more characters: show on
        </button>
      )}
      {digest && (
        <p className={classes.digest} data-other={other || undefined}>
          <Id id={digest} length={24} /> {proven && "✓ these bytes, hashed in this browser"}
          {other && "! these bytes have another digest: the message changed while you looked; open it again"}
          {content.digest === null && "not checked here: the page has no secure origin"}
        </p>
      )}
    </figure>
  );
}

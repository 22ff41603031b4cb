// The archived bytes of a message, formatted or raw, and whether they match a digest. Invisible and
// direction-changing characters are named; a huge message is cut.
import { useState } from "react";
import classes from "./ExactBytes.module.css";
import type { Exact } from "./exactBytes";
import { Id } from "./Figures";
import { beginning, inert } from "./inert";

/** What a browser can lay out without freezing. */
const SHOWN = 65_536;

export function ExactBytes({
  content,
  digest,
  title = "Exact message",
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
          {content.rewritten ? "Rewritten content" : title}, {content.size.toLocaleString("en")} bytes
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
          <Id id={digest} length={24} /> {proven && "✓ matches these bytes, hashed in this browser"}
          {other && "! digest mismatch: the message changed while open; open it again"}
          {content.digest === null && "not checked: the page is not a secure origin"}
        </p>
      )}
    </figure>
  );
}

// A board that begins with one large sentence: what is so, then how it is looked at, then the whole of it.
import type { ReactNode } from "react";
import classes from "./Deck.module.css";

export function Deck({
  label,
  lead,
  beside,
  stale,
  tools,
  children,
}: {
  label: string;
  /** The one thing, large. */
  lead: ReactNode;
  /** What explains it, small. */
  beside?: ReactNode;
  stale?: Error | null | undefined;
  tools?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={classes.deck} aria-label={label}>
      <h1 className="unseen">{label}</h1>
      <header className={classes.head}>
        <div className={classes.lead}>{lead}</div>
        {beside !== undefined && <div className={classes.beside}>{beside}</div>}
      </header>
      {tools !== undefined && <div className={classes.tools}>{tools}</div>}
      {stale && <p className={classes.stale}>Not up to date: {stale.message}</p>}
      {children}
    </section>
  );
}

/** A share as a bar with its figure: the length says what the number says. */
export function Share({ of, text }: { of: number; text: string }) {
  return (
    <span className={classes.share}>
      <span className={classes.track} aria-hidden>
        <span style={{ width: `${Math.max(of > 0 ? 1 : 0, Math.min(100, of * 100))}%` }} />
      </span>
      <span className={classes.part}>{text}</span>
    </span>
  );
}

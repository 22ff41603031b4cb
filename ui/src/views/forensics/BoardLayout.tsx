// A board with a headline sentence, controls and content.
import type { ReactNode } from "react";
import classes from "./BoardLayout.module.css";

export function BoardLayout({
  label,
  lead,
  hint,
  stale,
  tools,
  children,
}: {
  label: string;
  /** The headline. */
  lead: ReactNode;
  /** A short explanation. */
  hint?: ReactNode;
  stale?: Error | null | undefined;
  tools?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className={classes.deck} aria-label={label}>
      <h1 className="unseen">{label}</h1>
      <header className={classes.head}>
        <div className={classes.lead}>{lead}</div>
        {hint !== undefined && <div className={classes.hint}>{hint}</div>}
      </header>
      {tools !== undefined && <div className={classes.tools}>{tools}</div>}
      {stale && <p className={classes.stale}>Not up to date: {stale.message}</p>}
      {children}
    </section>
  );
}

/** A share as a bar with its figure. */
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

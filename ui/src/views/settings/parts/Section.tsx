// A section of the settings: title, description, and its actions.
import type { ReactNode } from "react";
import classes from "./Parts.module.css";

export function Section({
  title,
  lead,
  acts,
  children,
  fills = false,
}: {
  title: string;
  lead: ReactNode;
  acts?: ReactNode;
  children: ReactNode;
  /** Fills the available height; else the page scrolls. */
  fills?: boolean;
}) {
  return (
    <section className={classes.section} aria-label={title} data-fills={fills || undefined}>
      <header className={classes.head}>
        <h1>{title}</h1>
        <p>{lead}</p>
        {acts && <div className={classes.acts}>{acts}</div>}
      </header>
      {children}
    </section>
  );
}

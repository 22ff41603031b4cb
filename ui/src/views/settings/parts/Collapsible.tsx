// A collapsible part of a form; opens by itself when it contains a fault.
import type { ReactNode } from "react";
import classes from "./Collapsible.module.css";

export function Collapsible({
  word,
  children,
  open = false,
}: {
  word: string;
  children: ReactNode;
  open?: boolean;
}) {
  return (
    <details className={classes.folded} open={open || undefined}>
      <summary>{word}</summary>
      <div className={classes.inside}>{children}</div>
    </details>
  );
}

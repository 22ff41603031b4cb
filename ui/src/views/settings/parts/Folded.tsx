// What is rarely needed, behind its name; open by itself while a fault is in it.
import type { ReactNode } from "react";
import classes from "./Folded.module.css";

export function Folded({
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

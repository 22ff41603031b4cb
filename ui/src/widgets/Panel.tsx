// A panel and its four states without data: empty, loading, error, offline. Every panel of every view uses
// it, so none can miss one.
import { Button, Skeleton } from "@mantine/core";
import type { ReactNode } from "react";
import type { Problem } from "~/api/client";
import { ErrorBoundary } from "./ErrorBoundary";
import classes from "./Panel.module.css";

export function Panel({
  title,
  aside,
  children,
  label,
}: {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  label?: string;
}) {
  return (
    <section className={classes.panel} aria-label={label ?? (typeof title === "string" ? title : undefined)}>
      {title !== undefined && (
        <header className={classes.head}>
          <h2 className={classes.title}>{title}</h2>
          <div className={classes.aside}>{aside}</div>
        </header>
      )}
      <div className={classes.body}>
        <ErrorBoundary of={typeof title === "string" ? title : (label ?? "This part")}>
          {children}
        </ErrorBoundary>
      </div>
    </section>
  );
}

/** Empty state: what would be shown, and how to get it (`command` can be copied). */
export function Empty({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className={classes.empty}>
      <p>{children}</p>
      {command && <code className={classes.command}>{command}</code>}
    </div>
  );
}

export function ErrorNotice({ problem, again }: { problem: Problem | Error; again?: () => void }) {
  return (
    <div className={classes.trouble} role="alert">
      <p>{problem.message}</p>
      {again && (
        <Button size="compact-sm" variant="default" onClick={again}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Loading({ rows = 3 }: { rows?: number }) {
  return (
    <div className={classes.loading} role="status">
      <span className="unseen">loading</span>
      {Array.from({ length: rows }, (_, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: bars without identity
        <Skeleton key={n} height={12} width={`${90 - 17 * (n % 3)}%`} />
      ))}
    </div>
  );
}

interface Asked<T> {
  data: T | undefined;
  error: Error | null;
  isPending: boolean;
  refetch?: () => unknown;
}

/** Data, or why there is none yet: old data stays on screen while the gateway is unreachable. */
export function Loaded<T>({
  query: asked,
  rows,
  children,
}: {
  query: Asked<T>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (asked.data !== undefined) {
    return (
      <>
        {asked.error && <p className={classes.stale}>Not up to date: {asked.error.message}</p>}
        {children(asked.data)}
      </>
    );
  }
  if (asked.error) return <ErrorNotice problem={asked.error} again={() => asked.refetch?.()} />;
  return <Loading rows={rows} />;
}

// Error boundary for a part of a page: a sentence in its place and a retry button. React reports what was
// caught; main.tsx logs each error once.
import { CatchBoundary } from "@tanstack/react-router";
import { type ReactNode, useSyncExternalStore } from "react";
import { questions } from "~/api/queries";
import { ErrorNotice } from "./Panel";

let tries = 0;
const failed = new Set<() => void>();

/** Everything that failed: one response may be used in several parts; cleared with it. */
function tryAgain(): void {
  questions.removeQueries({ type: "inactive" });
  tries += 1;
  for (const notify of failed) notify();
}

function useTries(): number {
  return useSyncExternalStore(
    (notify) => {
      failed.add(notify);
      return () => failed.delete(notify);
    },
    () => tries,
  );
}

/**
 * `of` is the display name of the part; a new `about` retries automatically. `loaded`: its code came from the
 * gateway, so that a retry reloads the page; `small`: where a sentence does not fit.
 */
export function ErrorBoundary(props: {
  of: string;
  about?: string;
  loaded?: boolean;
  small?: boolean;
  children: ReactNode;
}) {
  const { of, about = "", loaded = false, small = false, children } = props;
  const tried = useTries();
  return (
    <CatchBoundary
      getResetKey={() => `${about} ${tried}`}
      errorComponent={({ error }) => {
        const failureText = `${of} cannot be shown: ${(error as Error).message}`;
        if (small) return <span title={failureText}>! failed</span>;
        return (
          <ErrorNotice problem={new Error(failureText)} again={loaded ? () => location.reload() : tryAgain} />
        );
      }}
    >
      {children}
    </CatchBoundary>
  );
}

const logged = new Set<string>();
const MAX_LOGGED = 100;

/** Each error once: a part that fails with every message would fill the console. */
export function logOnce(error: unknown): void {
  const failureText = String(error);
  if (logged.has(failureText) || logged.size >= MAX_LOGGED) return;
  logged.add(failureText);
  console.error(error);
}

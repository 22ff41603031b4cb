// A part of a page that fails takes nothing but itself: a sentence in its place and a way to try again. React
// reports what was caught; main.tsx logs each once.
import { CatchBoundary } from "@tanstack/react-router";
import { type ReactNode, useSyncExternalStore } from "react";
import { questions } from "~/api/questions";
import { Trouble } from "./Panel";

let tries = 0;
const failed = new Set<() => void>();

/** All that failed, as one answer may stand in several places; and not with the answer it failed at. */
function tryAgain(): void {
  questions.removeQueries({ type: "inactive" });
  tries += 1;
  for (const tell of failed) tell();
}

function useTries(): number {
  return useSyncExternalStore(
    (tell) => {
      failed.add(tell);
      return () => failed.delete(tell);
    },
    () => tries,
  );
}

/**
 * `of` is what failed, as a person calls it; with another `about` it is tried again by itself. `loaded`: its code
 * came from the gateway, so that trying again is loading the page; `small`: it stands where a sentence has no room.
 */
export function Guarded(props: {
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
        const said = `${of} cannot be shown: ${(error as Error).message}`;
        if (small) return <span title={said}>! failed</span>;
        return <Trouble problem={new Error(said)} again={loaded ? () => location.reload() : tryAgain} />;
      }}
    >
      {children}
    </CatchBoundary>
  );
}

const logged = new Set<string>();
const MAX_LOGGED = 100;

/** Each failure once: a part that fails with every message would fill the console. */
export function logOnce(error: unknown): void {
  const said = String(error);
  if (logged.has(said) || logged.size >= MAX_LOGGED) return;
  logged.add(said);
  console.error(error);
}

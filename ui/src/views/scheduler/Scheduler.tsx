// Scheduler & Lifecycle (view 4): leader, a timeline of past and upcoming runs, and below it jobs, dead
// letters, heartbeats and scaling triggers. The URL holds the board, the selection and the time window.
import { useApi } from "~/api/queries";
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { type Board, Boards } from "~/widgets/Boards";
import { DeadLetters } from "./dead-letters/DeadLetters";
import { FromNow } from "./FromNow";
import { Heartbeats } from "./heartbeats/Heartbeats";
import { Jobs } from "./jobs/Jobs";
import { Leader } from "./Leader";
import classes from "./Scheduler.module.css";
import { Scaling } from "./scaling/Scaling";
import { Timeline } from "./timeline/Timeline";
import { useAgents } from "./useSchedule";

const NAMES = {
  jobs: "Jobs",
  letters: "Dead letters",
  heartbeats: "Heartbeats",
  scaling: "Scaling",
} as const;
/** The gateway's counting limit. */
const COUNTED = 1_000;
type Name = keyof typeof NAMES;
const KEYS: Record<Name, string> = { jobs: "j", letters: "l", heartbeats: "h", scaling: "s" };
const PAGES: Record<Name, () => React.JSX.Element> = {
  jobs: Jobs,
  letters: DeadLetters,
  heartbeats: Heartbeats,
  scaling: Scaling,
};

function boardOf(text: string | undefined): Name {
  return text !== undefined && Object.hasOwn(NAMES, text) ? (text as Name) : "jobs";
}

export function Scheduler() {
  const [url, setUrl] = useUrl();
  const board = boardOf(url.board);
  const scheduler = useApi("/v1/scheduler", undefined, { every: 3_000, keep: true });
  const agents = useAgents();
  const silent = agents.data?.items.filter((one) => one.liveness === "zombie").length ?? 0;
  const dead = scheduler.data?.dead_letters ?? 0;
  const go = (name: Name) => setUrl({ ...LEFT, board: name === "jobs" ? null : name });
  useKeys(
    {
      g: {
        says: "Focus the timeline",
        run: () => document.querySelector<HTMLElement>("[data-strip] [tabindex='0']")?.focus(),
      },
      f: {
        says: "Search this board",
        run: () => document.querySelector<HTMLElement>("[data-board] input[type='text']")?.focus(),
      },
      t: {
        says: "Focus the list",
        run: () =>
          document
            .querySelector<HTMLElement>("[data-board] :is(tr[data-reached], [data-cell][tabindex='0'])")
            ?.focus(),
      },
      d: {
        says: "Focus the selected item",
        run: () => document.querySelector<HTMLElement>("[data-board] aside")?.focus(),
      },
      ...Object.fromEntries(
        (Object.keys(NAMES) as Name[]).map((name) => [
          `alt+${KEYS[name]}`,
          { says: NAMES[name], run: () => go(name) },
        ]),
      ),
    },
    "Scheduler",
  );
  const counts: Partial<Record<Name, string>> = {
    ...(dead > 0 && { letters: dead < COUNTED ? String(dead) : `${COUNTED} or more` }),
    ...(silent > 0 && { heartbeats: `${silent} silent` }),
  };
  const boards: Board[] = (Object.keys(NAMES) as Name[]).map((name) => ({
    id: name,
    name: NAMES[name],
    to: "/scheduler",
    search: {
      // Also for the first board: a link with fewer parameters would match every other board too.
      board: name,
      ...(url.window && { window: url.window }),
    },
    ...(counts[name] && { count: counts[name] }),
  }));
  const Page = PAGES[board];
  return (
    <section className={classes.view} aria-label="Scheduler and Lifecycle">
      <h1 className="unseen">Scheduler and Lifecycle</h1>
      <div className={classes.inside}>
        <Leader asked={scheduler} />
        {scheduler.data?.clock.status === "degraded" && <FromNow clock={scheduler.data.clock} />}
        <Timeline />
        <div className={classes.below} data-board>
          <Boards label="Boards of the scheduler" boards={boards} current={board}>
            <Page />
          </Boards>
        </div>
      </div>
    </section>
  );
}

/** Search parameters that belong to one board only. */
const LEFT = {
  q: null,
  job: null,
  letter: null,
  trigger: null,
  state: null,
  kind: null,
  live: null,
  edit: null,
  reminders: null,
};

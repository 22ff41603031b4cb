// The guided tour, a small card at the edge of the page: five steps, each with a real example. It starts by
// itself only on a first visit to the demo's mesh, and never again once it was closed.
import { ActionIcon, Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { useApi } from "~/api/queries";
import { Icon } from "./Icon";
import classes from "./Tour.module.css";
import { endTour, goTour, STEPS, startTour, tourSeen, useTour } from "./tour";

/** Only the demo's mesh has a director that stages incidents. */
const DIRECTOR = "director";

function useFirstVisit(): void {
  const fresh = !tourSeen();
  const agents = useApi("/v1/agents", undefined, { enabled: fresh });
  const demo = agents.data?.items.some((agent) => agent.agent_id === DIRECTOR) ?? false;
  useEffect(() => {
    // On a phone the card would cover half of what it points at; there it is started by hand.
    if (demo && !tourSeen() && matchMedia("(min-width: 720px)").matches) startTour();
  }, [demo]);
}

export function Tour() {
  useFirstVisit();
  const at = useTour();
  const step = at === null ? undefined : STEPS[at];
  if (at === null || !step) return null;
  return <Card key={at} at={at} />;
}

function Card({ at }: { at: number }) {
  const navigate = useNavigate();
  const step = STEPS[at] as (typeof STEPS)[number];
  const found = useQuery({
    queryKey: ["tour", at],
    queryFn: step.find,
    staleTime: 5_000,
    refetchInterval: 5_000,
  });
  const last = at === STEPS.length - 1;
  return (
    <section className={classes.card} aria-label="Tour">
      <header>
        <span className={classes.count}>
          {at + 1} of {STEPS.length}
        </span>
        <ActionIcon variant="subtle" color="gray" size={24} aria-label="End the tour" onClick={endTour}>
          <Icon name="close" size={14} />
        </ActionIcon>
      </header>
      <h2>{step.title}</h2>
      <p>{step.why}</p>
      <div className={classes.target} aria-live="polite">
        {found.data?.text ?? (found.error ? "The gateway did not answer; try the next step." : "Looking…")}
        {found.data?.command && (
          <>
            {" "}
            To see one:
            <code>{found.data.command}</code>
          </>
        )}
      </div>
      <footer>
        <Button
          size="compact-sm"
          disabled={!found.data?.href}
          onClick={() => void navigate({ href: found.data?.href ?? "/fleet" })}
        >
          Show me
        </Button>
        <span className={classes.rest} />
        <Button size="compact-sm" variant="default" disabled={at === 0} onClick={() => goTour(at - 1)}>
          Back
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => (last ? endTour() : goTour(at + 1))}>
          {last ? "Done" : "Next"}
        </Button>
      </footer>
    </section>
  );
}

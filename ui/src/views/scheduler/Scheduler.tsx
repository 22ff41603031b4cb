// View 4 comes with issue 8; until then an honest page.
import { Coming } from "~/widgets/Coming";

export function Scheduler() {
  return (
    <Coming
      name="Scheduler"
      holds="the next and the last 24 hours of timed work, dead letters, and heartbeats as cells that fade with silence. Timed jobs themselves are still to come."
      today={[
        {
          want: "See who has fallen silent",
          command: "observatory agents",
          route: "GET /v1/agents?liveness=zombie",
        },
        {
          want: "See sessions in which nothing moves",
          command: "observatory sessions",
          route: "GET /v1/sessions/stuck",
        },
        {
          want: "Dismiss an agent that will not come back",
          command: "—",
          route: "POST /v1/agents/{agent_id}/evict",
        },
        { want: "Follow everything as it is committed", command: "observatory tail", route: "WS /v1/live" },
      ]}
      also={{ text: "Silent agents on the map", to: "/fleet" }}
    />
  );
}

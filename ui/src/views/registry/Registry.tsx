// View 3 comes with issue 8; until then an honest page.
import { Coming } from "~/widgets/Coming";

export function Registry() {
  return (
    <Coming
      name="Registry and Routing"
      holds="the yellow pages of agent types with the health of every instance, versions, traffic weights and circuit breakers."
      today={[
        { want: "See who is there", command: "observatory agents", route: "GET /v1/agents" },
        {
          want: "See what can be done by whom",
          command: "observatory route list",
          route: "GET /v1/capabilities",
        },
        {
          want: "Share out the work for a capability",
          command: "observatory route set summarizer cluster:new=10 cluster:old=90",
          route: "PUT /v1/routes",
        },
        { want: "Look at circuits", command: "observatory route circuits", route: "GET /v1/breakers" },
        { want: "See accepted versions", command: "observatory versions list", route: "GET /v1/versions" },
      ]}
      also={{ text: "All agents as a list, in Fleet Command", to: "/fleet" }}
    />
  );
}

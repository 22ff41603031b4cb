// View 6 comes with issue 8; until then an honest page.
import { Coming } from "~/widgets/Coming";

export function GodMode() {
  return (
    <Coming
      name="God Mode"
      holds="the kill-switch with its scope and consequence, and instructions per class with their roll-out. Two typed confirmations, nothing by accident."
      today={[
        {
          want: "Stop a class of agents (admin)",
          command: 'observatory kill class writer --reason "…"',
          route: "POST /v1/kill-switch",
        },
        {
          want: "Stop everything (admin)",
          command: 'observatory kill global --reason "…"',
          route: "POST /v1/kill-switch",
        },
        {
          want: "Let them go on",
          command: 'observatory kill release --reason "…"',
          route: "POST /v1/kill-switch/{kill_id}/release",
        },
        {
          want: "Give a class new instructions",
          command: "observatory instructions set writer --file writer.md",
          route: "PUT /v1/instructions/{agent_type}",
        },
        { want: "See what was ever done", command: "observatory kill list", route: "GET /v1/audit/tenant" },
      ]}
    />
  );
}

// View 5 comes with issue 8; until then an honest page.
import { Coming } from "~/widgets/Coming";

export function Forensics() {
  return (
    <Coming
      name="Forensic Inspector"
      holds="search over everything ever said, messages with their proof, and boards of infections, drift and violations."
      today={[
        {
          want: "Search by words and meaning",
          command: 'observatory search agent:planner since:1h "earnings"',
          route: "GET /v1/search?q=…",
        },
        { want: "Verify the whole record", command: "observatory verify", route: "POST /v1/audit/verify" },
        {
          want: "Export it with its manifest",
          command: "observatory export --out trail.jsonl",
          route: "GET /v1/audit/tenant",
        },
        { want: "Follow a fact that was false", command: "—", route: "GET /v1/facts/{fact_id}/infection" },
        { want: "See where agents disagree", command: "—", route: "GET /v1/drift" },
      ]}
      also={{ text: "Press / to search from here", to: "/forensics" }}
    />
  );
}

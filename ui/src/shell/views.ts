// The six views in their order (brief §5): number, name, address. Used by the rail, the keys and the palette.
export const VIEWS = [
  { number: 1, name: "Fleet", whole: "Fleet Command", to: "/fleet", icon: "fleet" },
  { number: 2, name: "Sessions", whole: "Session Cluster Manager", to: "/sessions", icon: "sessions" },
  { number: 3, name: "Registry", whole: "Registry and Routing", to: "/registry", icon: "registry" },
  { number: 4, name: "Scheduler", whole: "Scheduler", to: "/scheduler", icon: "scheduler" },
  { number: 5, name: "Forensics", whole: "Forensic Inspector", to: "/forensics", icon: "forensics" },
  { number: 6, name: "God Mode", whole: "God Mode", to: "/god-mode", icon: "god" },
] as const;

// The boards of the Forensic Inspector: address, name, and the page behind it, each a chunk of its own.
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

export interface ForensicBoard {
  id: string;
  name: string;
  group: string;
  page: LazyExoticComponent<ComponentType>;
}

const page = <K extends string>(load: () => Promise<{ [name in K]: ComponentType }>, name: K) =>
  lazy(async () => ({ default: (await load())[name] }));

export const BOARDS: readonly ForensicBoard[] = [
  {
    id: "archive",
    name: "Archive",
    group: "Traffic",
    page: page(() => import("./archive/Archive"), "Archive"),
  },
  {
    id: "violations",
    name: "Violations",
    group: "Traffic",
    page: page(() => import("./violations/Violations"), "Violations"),
  },
  { id: "costs", name: "Costs", group: "Traffic", page: page(() => import("./costs/Costs"), "Costs") },
  {
    id: "infections",
    name: "Infections",
    group: "Traffic",
    page: page(() => import("./infections/Infections"), "Infections"),
  },
  { id: "drift", name: "Drift", group: "Traffic", page: page(() => import("./drift/Drift"), "Drift") },
  { id: "audit", name: "Audit log", group: "Proof", page: page(() => import("./audit/Audit"), "Audit") },
  { id: "trail", name: "Decision trail", group: "Proof", page: page(() => import("./trail/Trail"), "Trail") },
  { id: "log", name: "Chain and log", group: "Proof", page: page(() => import("./log/Log"), "Log") },
  { id: "exports", name: "Export", group: "Proof", page: page(() => import("./exports/Exports"), "Exports") },
  {
    id: "webhooks",
    name: "Webhooks",
    group: "Security",
    page: page(() => import("./webhooks/Webhooks"), "Webhooks"),
  },
  {
    id: "policies",
    name: "Policies",
    group: "Security",
    page: page(() => import("./policies/Policies"), "Policies"),
  },
];

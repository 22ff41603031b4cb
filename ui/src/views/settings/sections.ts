// The sections of the settings: address, name, and the page behind it, each a chunk of its own.
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

export interface SettingsSection {
  id: string;
  name: string;
  group: string;
  page: LazyExoticComponent<ComponentType>;
}

const page = <K extends string>(load: () => Promise<{ [name in K]: ComponentType }>, name: K) =>
  lazy(async () => ({ default: (await load())[name] }));

export const SECTIONS: readonly SettingsSection[] = [
  {
    id: "alerts",
    name: "Alerts",
    group: "Who is told",
    page: page(() => import("./alerts/Alerts"), "Alerts"),
  },
  {
    id: "channels",
    name: "Channels",
    group: "Who is told",
    page: page(() => import("./channels/Channels"), "Channels"),
  },
  {
    id: "exporters",
    name: "Exporters",
    group: "Who is told",
    page: page(() => import("./exporters/Exporters"), "Exporters"),
  },
  {
    id: "hooks",
    name: "Hooks in",
    group: "Who may call",
    page: page(() => import("./hooks/Hooks"), "Hooks"),
  },
  {
    id: "telemetry",
    name: "Telemetry in",
    group: "Who may call",
    page: page(() => import("./telemetry/Telemetry"), "Telemetry"),
  },
  {
    id: "redaction",
    name: "Redaction",
    group: "What is kept",
    page: page(() => import("./redaction/Redaction"), "Redaction"),
  },
  {
    id: "retention",
    name: "Retention",
    group: "What is kept",
    page: page(() => import("./retention/Retention"), "Retention"),
  },
  {
    id: "peers",
    name: "Federation",
    group: "What is kept",
    page: page(() => import("./peers/Peers"), "Peers"),
  },
  {
    id: "detectors",
    name: "Detectors",
    group: "The mesh",
    page: page(() => import("./detectors/Detectors"), "Detectors"),
  },
  {
    id: "regions",
    name: "Regions",
    group: "The mesh",
    page: page(() => import("./regions/Regions"), "Regions"),
  },
  { id: "you", name: "Appearance", group: "You", page: page(() => import("./you/You"), "You") },
];

export const FIRST = "alerts";

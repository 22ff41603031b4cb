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
    group: "Notifications",
    page: page(() => import("./alerts/Alerts"), "Alerts"),
  },
  {
    id: "channels",
    name: "Channels",
    group: "Notifications",
    page: page(() => import("./channels/Channels"), "Channels"),
  },
  {
    id: "exporters",
    name: "Exporters",
    group: "Notifications",
    page: page(() => import("./exporters/Exporters"), "Exporters"),
  },
  {
    id: "hooks",
    name: "Inbound webhooks",
    group: "Inbound",
    page: page(() => import("./hooks/Hooks"), "Hooks"),
  },
  {
    id: "telemetry",
    name: "OTLP ingest",
    group: "Inbound",
    page: page(() => import("./telemetry/Telemetry"), "Telemetry"),
  },
  {
    id: "redaction",
    name: "Redaction",
    group: "Data",
    page: page(() => import("./redaction/Redaction"), "Redaction"),
  },
  {
    id: "retention",
    name: "Retention",
    group: "Data",
    page: page(() => import("./retention/Retention"), "Retention"),
  },
  {
    id: "peers",
    name: "Federation",
    group: "Data",
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
  { id: "you", name: "Appearance", group: "You", page: page(() => import("./you/Account"), "Account") },
];

export const FIRST = "alerts";

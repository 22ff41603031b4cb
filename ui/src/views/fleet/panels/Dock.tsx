// Panels docked below the map: open ones side by side, closed ones as a stack of headlines at the end, so
// that a closed panel still shows its figure. On a phone they are a tab strip with one open. Which are open
// is remembered by the browser: it is a preference, not shared state. Only a link to one panel
// (`panel=certificates`) opens it.
import { UnstyledButton } from "@mantine/core";
import { useLocalStorage, useMediaQuery } from "@mantine/hooks";
import { type ReactNode, useEffect, useId } from "react";
import { useRecords } from "~/live/useLive";
import { useUrl } from "~/useUrl";
import { ErrorBoundary } from "~/widgets/ErrorBoundary";
import { money, ms, rate } from "~/widgets/format";
import { Certificates, CertificatesNow } from "./Certificates";
import { CostHeat } from "./CostHeat";
import classes from "./Dock.module.css";
import { Health, STATUS, StatusMark, useHealth, useReached } from "./Health";
import { Latency, useLatency } from "./Latency";
import { Throughput } from "./Throughput";

interface PanelOf {
  id: string;
  name: string;
  Headline: () => ReactNode;
  Body: () => ReactNode;
  /** Nothing in it takes focus, so the keyboard must be able to scroll it. */
  still?: boolean;
}

const PANELS: readonly PanelOf[] = [
  { id: "throughput", name: "Throughput", Headline: RateNow, Body: Throughput },
  { id: "cost", name: "Cost heatmap", Headline: CostNow, Body: CostHeat },
  { id: "health", name: "Health", Headline: HealthNow, Body: Health, still: true },
  { id: "latency", name: "Latency by region", Headline: LatencyNow, Body: Latency },
  { id: "certificates", name: "Certificates", Headline: CertificatesNow, Body: Certificates, still: true },
];

export const PHONE = "(max-width: 640px)";

export function Dock() {
  const phone = useMediaQuery(PHONE);
  return phone ? <Tabs /> : <Row />;
}

// Five would be too narrow side by side; the last changes least, and shows when it needs attention.
const CLOSED: string[] = ["certificates"];

function Row() {
  const [closed, setClosed] = useLocalStorage<string[]>({
    key: "observatory.fleet.closed",
    defaultValue: CLOSED,
  });
  const [search, setUrl] = useUrl();
  const toggle = (id: string) => {
    const isOpen = search.panel === id || !closed.includes(id);
    if (search.panel === id) setUrl({ panel: null }, true);
    setClosed((before) =>
      isOpen ? [...before.filter((one) => one !== id), id] : before.filter((one) => one !== id),
    );
  };
  const open = PANELS.filter((panel) => panel.id === search.panel || !closed.includes(panel.id));
  const away = PANELS.filter((panel) => !open.includes(panel));
  return (
    <div className={classes.dock} data-low={open.length === 0 || undefined}>
      {open.map((panel) => (
        <section key={panel.id} className={classes.panel} aria-label={panel.name}>
          <Head panel={panel} open onClick={() => toggle(panel.id)} />
          <div className={classes.body} tabIndex={panel.still ? 0 : undefined}>
            <ErrorBoundary of={panel.name}>
              <panel.Body />
            </ErrorBoundary>
          </div>
        </section>
      ))}
      {away.length > 0 && (
        <div className={classes.away}>
          {away.map((panel) => (
            <Head key={panel.id} panel={panel} open={false} onClick={() => toggle(panel.id)} />
          ))}
        </div>
      )}
    </div>
  );
}

function Head({ panel, open, onClick }: { panel: PanelOf; open: boolean; onClick: () => void }) {
  return (
    <h2 className={classes.head}>
      <UnstyledButton
        className={classes.toggle}
        aria-expanded={open}
        onClick={onClick}
        title={open ? "Collapse" : "Open"}
      >
        <span aria-hidden className={classes.arrow} data-open={open || undefined}>
          ▸
        </span>
        <span>{panel.name}</span>
        <span className={classes.headline}>
          <ErrorBoundary of={panel.name} small>
            <panel.Headline />
          </ErrorBoundary>
        </span>
      </UnstyledButton>
    </h2>
  );
}

function Tabs() {
  const [kept, setKept] = useLocalStorage<string>({
    key: "observatory.fleet.tab",
    defaultValue: "throughput",
  });
  const [search, setUrl] = useUrl();
  const open = PANELS.some((panel) => panel.id === search.panel) ? search.panel : kept;
  const setOpen = (panel: string) => {
    if (search.panel) setUrl({ panel: null }, true);
    setKept(panel);
  };
  const id = useId();
  const chosen = PANELS.find((panel) => panel.id === open);
  useEffect(() => {
    document.getElementById(`${id}-${open}`)?.scrollIntoView({ inline: "nearest", block: "nearest" });
  }, [id, open]);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next =
      PANELS[(PANELS.findIndex((panel) => panel.id === open) + by + PANELS.length) % PANELS.length];
    if (!next) return;
    setOpen(next.id);
    document.getElementById(`${id}-${next.id}`)?.focus();
  };
  return (
    <div className={classes.tabs}>
      <div role="tablist" aria-label="Panels" className={classes.strip} onKeyDown={onKeyDown}>
        {PANELS.map((panel) => (
          <UnstyledButton
            key={panel.id}
            id={`${id}-${panel.id}`}
            role="tab"
            aria-selected={panel.id === open}
            aria-controls={`${id}-panel`}
            tabIndex={panel.id === open || (!chosen && panel === PANELS[0]) ? 0 : -1}
            className={classes.tab}
            onClick={() => setOpen(panel.id === open ? "" : panel.id)}
          >
            {panel.name.split(" ")[0]}{" "}
            <span className={classes.headline}>
              <ErrorBoundary of={panel.name} small>
                <panel.Headline />
              </ErrorBoundary>
            </span>
          </UnstyledButton>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-label={chosen?.name ?? "closed"}
        className={classes.body}
        hidden={!chosen}
        tabIndex={chosen?.still ? 0 : undefined}
      >
        {chosen && (
          <ErrorBoundary of={chosen.name} about={chosen.id}>
            <chosen.Body />
          </ErrorBoundary>
        )}
      </div>
    </div>
  );
}

interface PanelProps {
  rate_per_s: number;
  cost_per_min: number;
}

function useFlow(): PanelProps | undefined {
  return useRecords<PanelProps>("fleet", "throughput").items[0];
}

function RateNow() {
  const now = useFlow();
  return now ? rate(now.rate_per_s) : null;
}

function CostNow() {
  const now = useFlow();
  return now ? `${money(now.cost_per_min)}/min` : null;
}

function HealthNow() {
  const { data, error } = useHealth();
  const reached = useReached();
  if (!reached) return "? unreachable";
  if (!data) return error ? "unknown" : null;
  const parts = (["gateway", "bus", "database", "insight"] as const).filter(
    (name) => data[name].status !== "ok",
  );
  if (parts.length === 0) return <StatusMark status="ok" />;
  return (
    <>
      <StatusMark status={data.status} bare />{" "}
      {parts.map((name) => `${name} ${STATUS[data[name].status].word}`).join(", ")}
    </>
  );
}

function LatencyNow() {
  const { data } = useLatency();
  return data && data.all.p95_ms !== null ? `p95 ${ms(data.all.p95_ms)}` : null;
}

// Incident cards next to the worst few agents, with a button. React creates them when the incidents change;
// their position is set on the elements themselves with every move of the map.
import { Button } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useApi } from "~/api/queries";
import { pauseAndInspect } from "~/commands/agents";
import { showToast } from "~/commands/toasts";
import type { Callout, Topology } from "~/graph";
import { useUrl } from "~/useUrl";
import { useWhyNot } from "~/widgets/users";
import { pausable, sentence } from "./alertText";
import classes from "./Callouts.module.css";
import { placeCallouts } from "./calloutPlacement";

/** A narrow map holds fewer of them. */
const mostIn = (width: number) => (width < 640 ? 1 : width < 1100 ? 2 : 3);
/**
 * Only incidents that are more than a state are shown (the mark of a held agent is enough); of several equal
 * ones, as after a bad deploy, one.
 */
const LOOKED_AT = 12;

function incidents(map: Topology, layer: HTMLElement | null): Callout[] {
  return map
    .callouts(LOOKED_AT)
    .filter((one) => one.severity === "critical" || pausable(one.kind))
    .sort((a, b) => Number(pausable(b.kind)) - Number(pausable(a.kind)))
    .filter(
      (one, n, all) => one.session_id !== null || all.findIndex((other) => other.kind === one.kind) === n,
    )
    .slice(0, mostIn(layer?.clientWidth ?? 0));
}

const keyOf = (one: Callout) => `${one.id} ${one.kind} ${one.session_id} ${one.text}`;

export const Callouts = memo(function Callouts({ map, quiet }: { map: Topology; quiet: boolean }) {
  const [shown, setShown] = useState<Callout[]>([]);
  const layer = useRef<HTMLElement>(null);
  useEffect(() => {
    let before = "";
    const place = () => {
      const found = incidents(map, layer.current);
      const keys = found.map(keyOf).join("\n");
      if (keys !== before) {
        before = keys;
        setShown(found);
      }
      stand(layer.current, found);
    };
    const offs = [map.on("view", place), map.on("data", place)];
    place();
    return () => {
      for (const off of offs) off();
    };
  }, [map]);
  // A new card, or one with a longer text, is placed before it is shown.
  useLayoutEffect(() => stand(layer.current, incidents(map, layer.current)));
  const alerts = useApi(
    "/v1/entropy/alerts",
    { limit: 100 },
    { every: 4_000, keep: true, enabled: shown.length > 0 && !quiet },
  );
  const notices = useApi(
    "/v1/alerts",
    { kind: "violation", limit: 50 },
    { every: 8_000, keep: true, enabled: !quiet && shown.some((one) => one.kind === "schema_violation") },
  );
  return (
    <section ref={layer} className={classes.layer} aria-label="Incidents on the map">
      {shown.map((one) => (
        <Card
          key={`${one.id} ${one.kind}`}
          one={one}
          text={sentence(one, alerts.data?.items ?? [], notices.data?.items ?? [])}
          quiet={quiet}
        />
      ))}
    </section>
  );
});

function stand(layer: HTMLElement | null, found: readonly Callout[]): void {
  if (!layer) return;
  const cards = found.flatMap((one) => {
    const card = layer.querySelector<HTMLElement>(`[data-agent="${CSS.escape(one.id)}"]`);
    return card ? [{ one, card }] : [];
  });
  const sizes = cards.map(({ one, card }) => ({
    ...one,
    width: card.offsetWidth,
    height: card.offsetHeight,
  }));
  const places = placeCallouts(sizes, layer.clientWidth, layer.clientHeight);
  cards.forEach(({ card }, n) => {
    const spot = places[n];
    card.style.visibility = spot ? "visible" : "hidden";
    if (spot) card.style.transform = `translate(${Math.round(spot.x)}px, ${Math.round(spot.y)}px)`;
  });
}

function Card({ one, text, quiet }: { one: Callout; text: string; quiet: boolean }) {
  const navigate = useNavigate();
  const [, setUrl] = useUrl();
  const [busy, setBusy] = useState(false);
  const denied = useWhyNot("operate");
  const inspect = async () => {
    setBusy(true);
    const found = await pauseAndInspect(one.id, one.session_id);
    setBusy(false);
    if (found)
      await navigate({
        to: "/sessions/$sessionId",
        params: { sessionId: found.session_id },
        search: (found.step ? { step: found.step } : {}) as never,
      });
    else {
      showToast({ tone: "plain", text: `${one.id} has no session yet, so there is nothing to pause.` });
      setUrl({ peek: `agent:${one.id}` });
    }
  };
  return (
    <article
      className={classes.card}
      data-agent={one.id}
      data-severity={one.severity}
      aria-label={`${one.name}: ${text}`}
    >
      <button type="button" className={classes.name} onClick={() => setUrl({ peek: `agent:${one.id}` })}>
        {one.name}
      </button>
      <p className={classes.text} title={text}>
        {coded(text)}
      </p>
      <div className={classes.acts}>
        {!quiet && pausable(one.kind) ? (
          <Button
            size="compact-xs"
            loading={busy}
            disabled={denied !== undefined}
            title={denied}
            onClick={() => void inspect()}
          >
            Pause and inspect
          </Button>
        ) : (
          <Button size="compact-xs" variant="default" onClick={() => setUrl({ peek: `agent:${one.id}` })}>
            Inspect
          </Button>
        )}
        {one.session_id && (
          <Link to="/sessions/$sessionId" params={{ sessionId: one.session_id }} className={classes.session}>
            session
          </Link>
        )}
      </div>
    </article>
  );
}

/** Names in backticks as code. */
function coded(text: string) {
  // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text have no other identity
  return text.split("`").map((part, n) => (n % 2 ? <code key={n}>{part}</code> : part));
}

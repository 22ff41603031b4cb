// Health of the deployment: gateway, bus, database, analyst, signed log; each by mark, word and a sentence.
import { useApi } from "~/api/queries";
import { useConnection } from "~/live/useLive";
import { Ago } from "~/widgets/Figures";
import { Loaded } from "~/widgets/Panel";
import classes from "./Health.module.css";

export type Status = "ok" | "degraded" | "down";
export const STATUS: Record<Status, { word: string; mark: string }> = {
  ok: { word: "well", mark: "✓" },
  degraded: { word: "strained", mark: "!" },
  down: { word: "down", mark: "×" },
};
const PARTS = ["gateway", "bus", "database", "insight", "log", "clock"] as const;

export function useHealth() {
  return useApi("/v1/fleet/health", {}, { every: 5_000, keep: true });
}

export function StatusMark({ status, bare = false }: { status: Status; bare?: boolean }) {
  const sign = STATUS[status] ?? STATUS.degraded;
  return (
    <span className={classes.status} data-status={status}>
      <span aria-hidden>{sign.mark}</span>
      <span className={bare ? "unseen" : undefined}>{sign.word}</span>
    </span>
  );
}

/** While the gateway is unreachable nothing is shown as healthy. */
export function useReached(): boolean {
  const connection = useConnection();
  return connection !== "waiting" && connection !== "refused";
}

export function Health() {
  const query = useHealth();
  const reached = useReached();
  return (
    <Loaded query={query} rows={5}>
      {(answer) => (
        <ul className={classes.parts}>
          {!reached && (
            <li className={classes.away}>
              ? The gateway is unreachable. Last known state, <Ago at={answer.as_of} />:
            </li>
          )}
          {PARTS.map((name) => (
            <li key={name}>
              <span className={classes.name}>{name}</span>
              <StatusMark status={answer[name].status} />
              <span className={classes.text}>{answer[name].text}</span>
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}

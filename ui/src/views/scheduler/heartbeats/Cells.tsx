// The grid of heartbeat cells. A cell is rendered again only when its state or its silence step changed: of a
// thousand, few.
import { memo, useRef, useState } from "react";
import { LIVES } from "~/widgets/liveness";
import type { Beat, Group } from "./beats";
import own from "./Heartbeats.module.css";

interface Props {
  groups: readonly Group[];
  peek: string | undefined;
  onPeek: (agent_id: string) => void;
}

export function Cells({ groups, peek, onPeek }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const ids = groups.flatMap(({ beats }) => beats.map((one) => one.agent_id));
  const [reached, setReached] = useState<string | null>(null);
  const at = reached !== null && ids.includes(reached) ? reached : ids[0];
  const latest = useRef(onPeek);
  latest.current = onPeek;
  const [open] = useState(() => (id: string) => latest.current(id));
  const walk = (event: React.KeyboardEvent) => {
    const cells = [...(box.current?.querySelectorAll<HTMLElement>("[data-cell]") ?? [])];
    const here = cells.indexOf(event.target as HTMLElement);
    if (here < 0) return;
    const next = target(cells, here, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a grid of buttons, not a set of fields
    <div
      className={own.cells}
      ref={box}
      role="group"
      aria-label="Heartbeats; arrows move, Enter opens the agent"
      onKeyDown={walk}
    >
      {groups.map(({ type, beats, silent }) => (
        <section key={type} className={own.group} aria-label={type}>
          <h3>
            {type} <span>{beats.length}</span>
            {silent > 0 && <b>! {silent} silent</b>}
          </h3>
          <div className={own.row}>
            {beats.map((beat) => (
              <Cell
                key={beat.agent_id}
                agent_id={beat.agent_id}
                live={beat.live}
                fade={beat.fade}
                reached={beat.agent_id === at}
                peeked={peek === `agent:${beat.agent_id}`}
                onReach={setReached}
                onOpen={open}
              />
            ))}
          </div>
        </section>
      ))}
      {groups.length === 0 && <p className={own.none}>No matching agents.</p>}
    </div>
  );
}

/** The neighbour by its position on the page: cells wrap, and each group starts a row. */
function target(cells: readonly HTMLElement[], here: number, key: string): HTMLElement | undefined {
  if (key === "ArrowRight") return cells[here + 1];
  if (key === "ArrowLeft") return cells[here - 1];
  if (key === "Home") return cells[0];
  if (key === "End") return cells.at(-1);
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const from = cells[here]?.getBoundingClientRect();
  if (!from) return undefined;
  const by = key === "ArrowDown" ? 1 : -1;
  let best: HTMLElement | undefined;
  let top: number | null = null;
  let nearest = Number.POSITIVE_INFINITY;
  for (let n = here + by; n >= 0 && n < cells.length; n += by) {
    const one = cells[n];
    const box = one?.getBoundingClientRect();
    if (!one || !box || Math.abs(box.top - from.top) < 2) continue;
    if (top !== null && Math.abs(box.top - top) > 2) break;
    top = box.top;
    const away = Math.abs(box.left - from.left);
    if (away < nearest) [nearest, best] = [away, one];
  }
  return best;
}

interface CellProps extends Pick<Beat, "agent_id" | "live" | "fade"> {
  reached: boolean;
  peeked: boolean;
  onReach: (agent_id: string) => void;
  onOpen: (agent_id: string) => void;
}

const HEARD = ["just now", "10 s ago", "20 s ago", "30 s ago", "45 s ago", "60 s ago", "90 s ago or more"];

const Cell = memo(function Cell({ agent_id, live, fade, reached, peeked, onReach, onOpen }: CellProps) {
  const sign = LIVES[live];
  const words = `${agent_id}: ${sign.word}${live === "unknown" ? "" : `, last heartbeat ${HEARD[fade]}`}`;
  return (
    <button
      type="button"
      className={own.cell}
      data-cell={agent_id}
      data-tone={sign.tone}
      data-fade={fade}
      aria-current={peeked || undefined}
      aria-label={words}
      title={words}
      tabIndex={reached ? 0 : -1}
      onFocus={() => onReach(agent_id)}
      onClick={() => onOpen(agent_id)}
    >
      <span aria-hidden>{sign.mark}</span>
    </button>
  );
});

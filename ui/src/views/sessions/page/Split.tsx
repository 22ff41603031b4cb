// Two panes with a divider: dragged or moved by arrow keys, its position remembered by the browser.
import { useLocalStorage } from "@mantine/hooks";
import { type ReactNode, useRef } from "react";
import classes from "./Page.module.css";

interface Props {
  /** Orientation: side by side or stacked. */
  lie: "side-by-side" | "above";
  name: string;
  label: string;
  /** Share of the first pane. */
  start: number;
  first: ReactNode;
  second: ReactNode;
}

const LEAST = 0.15;

export function Split({ lie, name, label, start, first, second }: Props) {
  const [share, setShare] = useLocalStorage<number>({
    key: `observatory.panes.${name}`,
    defaultValue: start,
  });
  const box = useRef<HTMLDivElement>(null);
  const to = (next: number) => setShare(Math.round(Math.min(1 - LEAST, Math.max(LEAST, next)) * 1000) / 1000);
  const across = lie === "side-by-side";
  const drag = (event: React.PointerEvent<HTMLDivElement>) => {
    const bounds = box.current?.getBoundingClientRect();
    if (!bounds || event.buttons === 0) return;
    to(across ? (event.clientX - bounds.left) / bounds.width : (event.clientY - bounds.top) / bounds.height);
  };
  const back = across ? "ArrowLeft" : "ArrowUp";
  const on = across ? "ArrowRight" : "ArrowDown";
  return (
    <div ref={box} className={classes.split} data-lie={lie}>
      <div className={classes.pane} style={{ flexBasis: `${share * 100}%` }}>
        {first}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a movable divider is not a thematic break */}
      <div
        role="separator"
        tabIndex={0}
        aria-label={label}
        aria-orientation={across ? "vertical" : "horizontal"}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={LEAST * 100}
        aria-valuemax={(1 - LEAST) * 100}
        className={classes.between}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={drag}
        onDoubleClick={() => to(start)}
        onKeyDown={(event) => {
          if (event.key !== back && event.key !== on) return;
          event.preventDefault();
          event.stopPropagation();
          to(share + (event.key === on ? 0.02 : -0.02));
        }}
      />
      <div className={classes.pane} style={{ flexBasis: `${(1 - share) * 100}%` }}>
        {second}
      </div>
    </div>
  );
}

// A part of a total as a bar with its sentence: readable without colour.
import classes from "../God.module.css";

export function Bar({ label, done, of, says }: { label: string; done: number; of: number; says: string }) {
  const share = of === 0 ? 1 : done / of;
  return (
    <div className={classes.progress}>
      <span className={classes.says}>
        <span aria-hidden>{done >= of ? "✓" : "…"}</span> {says}
      </span>
      <span
        className={classes.track}
        role="progressbar"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.max(of, 1)}
        aria-valuenow={of === 0 ? 1 : done}
        aria-valuetext={says}
      >
        <span
          className={classes.filled}
          data-full={done >= of || undefined}
          style={{ width: `${share * 100}%` }}
        />
      </span>
    </div>
  );
}

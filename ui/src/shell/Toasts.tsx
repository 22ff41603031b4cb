// Toasts at the lower edge: the result of the last commands, with undo. Announced to screen readers; a
// hovered one does not expire.
import { ActionIcon, Button } from "@mantine/core";
import { dismissToast, pauseTimer, resumeTimer, type Toast, useToasts } from "~/commands/toasts";
import { Icon } from "./Icon";
import { useKeys } from "./keys";
import classes from "./Toasts.module.css";

const SIGNS = { good: "✓", alert: "!", plain: "i" } as const;

function undo(toast: Toast): void {
  dismissToast(toast.id);
  void toast.undo?.();
}

export function Toasts() {
  const toasts = useToasts();
  const latest = toasts.findLast((toast) => toast.undo);
  useKeys(
    latest ? { u: { says: "Undo the last command", run: () => undo(latest) } } : {},
    "Everywhere",
    true,
  );
  return (
    <section className={classes.toasts} aria-label="Notifications">
      <div role="status" aria-live="polite" className={classes.list}>
        {toasts.map((toast) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: hovering only stops the clock
          <div
            key={toast.id}
            className={classes.toast}
            data-tone={toast.tone}
            onMouseEnter={() => pauseTimer(toast.id)}
            onMouseLeave={() => resumeTimer(toast.id)}
            onFocus={() => pauseTimer(toast.id)}
            onBlur={() => resumeTimer(toast.id)}
          >
            <span className={classes.sign} aria-hidden>
              {SIGNS[toast.tone]}
            </span>
            <div className={classes.text}>
              {toast.text}
              {toast.detail && <pre>{toast.detail}</pre>}
            </div>
            {toast.undo && (
              <Button size="compact-sm" variant="default" onClick={() => undo(toast)}>
                Undo
              </Button>
            )}
            <ActionIcon
              variant="subtle"
              color="gray"
              size={24}
              aria-label="Close"
              onClick={() => dismissToast(toast.id)}
            >
              <Icon name="close" size={14} />
            </ActionIcon>
          </div>
        ))}
      </div>
    </section>
  );
}

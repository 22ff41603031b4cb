// The side panel: shows whatever the URL's `peek` names, next to any view. Esc closes it, J and K step
// through the view's list, the link can be copied. Each kind of peek is a chunk of its own.
import { ActionIcon, CopyButton, Tooltip } from "@mantine/core";
import { type ComponentType, lazy, Suspense, useEffect, useRef } from "react";
import { ErrorBoundary } from "~/widgets/ErrorBoundary";
import { Loading } from "~/widgets/Panel";
import { Icon } from "./Icon";
import { useKeys } from "./keys";
import classes from "./PeekPanel.module.css";
import { neighbour, type PeekKind, useListed, usePeek } from "./peek";

type Peek = ComponentType<{ id: string }>;
const found = import.meta.glob<Record<string, Peek>>("../peeks/*Peek.tsx");
const NAMES: Record<PeekKind, string> = {
  agent: "Agent",
  edge: "Edge",
  session: "Session",
  step: "Step",
  message: "Message",
};
const PEEKS = new Map<PeekKind, Peek>();
for (const [kind, name] of Object.entries(NAMES) as [PeekKind, string][]) {
  const load = found[`../peeks/${name}Peek.tsx`];
  if (load)
    PEEKS.set(
      kind,
      lazy(async () => ({ default: (await load())[`${name}Peek`] as Peek })),
    );
}

export function PeekPanel() {
  const { text, peek, open, close } = usePeek();
  const ids = useListed();
  const panel = useRef<HTMLElement>(null);
  const came = useRef<Element | null>(null);
  const shown = peek !== null;
  const go = (by: 1 | -1) => {
    const to = neighbour(ids, text, by);
    if (to) open(to);
  };
  useKeys(
    shown
      ? {
          j: { says: "Next in the list", run: () => go(1) },
          k: { says: "Previous in the list", run: () => go(-1) },
        }
      : {},
    "Side panel",
    true,
  );
  // On closing, focus returns to where it was before the panel took it; opening does not take focus.
  useEffect(() => {
    if (!shown) return;
    came.current = document.activeElement;
    return () => {
      const before = came.current;
      if (before instanceof HTMLElement && before.isConnected && document.activeElement === document.body)
        before.focus();
    };
  }, [shown]);
  if (!peek) return null;
  const Shown = PEEKS.get(peek.kind);
  const at = text ? ids.indexOf(text) : -1;
  return (
    <aside className={classes.panel} aria-label={`${NAMES[peek.kind]} ${peek.id}`} ref={panel}>
      <header className={classes.head}>
        <h2>{NAMES[peek.kind]}</h2>
        {at >= 0 && ids.length > 1 && (
          <>
            <span className={classes.place}>
              {at + 1} of {ids.length}
            </span>
            <Step icon="previous" label="Previous (K)" off={at === 0} run={() => go(-1)} />
            <Step icon="next" label="Next (J)" off={at === ids.length - 1} run={() => go(1)} />
          </>
        )}
        <span className={classes.rest} />
        <CopyButton value={location.href}>
          {({ copied, copy }) => <Step icon="link" label={copied ? "Copied" : "Copy link"} run={copy} />}
        </CopyButton>
        <Step icon="close" label="Close (Esc)" run={close} />
      </header>
      <div className={classes.body}>
        <ErrorBoundary of={`This ${NAMES[peek.kind]}`} about={text ?? ""} loaded>
          <Suspense fallback={<Loading rows={6} />}>{Shown && <Shown key={peek.id} id={peek.id} />}</Suspense>
        </ErrorBoundary>
      </div>
    </aside>
  );
}

function Step({
  icon,
  label,
  run,
  off = false,
}: {
  icon: "next" | "previous" | "link" | "close";
  label: string;
  run: () => void;
  off?: boolean;
}) {
  return (
    <Tooltip label={label} openDelay={400}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={26}
        aria-label={label.replace(/ \(.*/, "")}
        onClick={run}
        disabled={off}
      >
        <Icon name={icon} size={16} />
      </ActionIcon>
    </Tooltip>
  );
}

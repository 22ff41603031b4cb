// An unsaved order: save or discard it; on a conflict, theirs or mine.
import { Button } from "@mantine/core";
import { useState } from "react";
import type { Problem } from "~/api/client";
import { refetch } from "~/api/queries";
import { orderRules } from "~/commands/policies";
import type { PolicyList } from "~/protocol/openapi";
import { useSettled } from "~/widgets/useSettled";
import type { Ordering } from "./Policies";
import classes from "./Policies.module.css";
import { rebased } from "./rules";

export function OrderBar({
  list,
  ordering: { order, was },
  set,
  denied,
}: {
  list: PolicyList;
  ordering: Ordering;
  set: (next: Ordering | null) => void;
  denied: string | undefined;
}) {
  const [busy, setBusy] = useState(false);
  const now = list.items.map((rule) => rule.rule_id);
  const theirs = now.join() !== was.join();
  const save = async () => {
    setBusy(true);
    const refused = (problem: Problem) => {
      if (problem.reason !== "stale_order") return false;
      refetch("/v1/policies");
      return true;
    };
    const done = await orderRules(order, was, refused);
    setBusy(false);
    if (done) set(null);
  };
  if (theirs)
    return (
      <Theirs
        key="theirs"
        onMine={() => set({ order: rebased(order, now), was: now })}
        onTheirs={() => set(null)}
      />
    );
  return (
    <div key="mine" className={classes.order}>
      <p>Unsaved order: the gateway still uses the old one.</p>
      <div className={classes.buttons}>
        <Button
          size="compact-sm"
          loading={busy}
          disabled={denied !== undefined}
          title={denied}
          onClick={() => void save()}
        >
          Save order
        </Button>
        <Button size="compact-sm" variant="default" onClick={() => set(null)}>
          Discard
        </Button>
      </div>
    </div>
  );
}

/** It replaces the bar without user action: a click meant for "Save order" must not hit it unread. */
function Theirs({ onMine, onTheirs }: { onMine: () => void; onTheirs: () => void }) {
  const settled = useSettled();
  return (
    <div className={classes.conflict} role="alert">
      <p>! Someone else changed the rules or their order. Your order is kept here, not saved.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" disabled={!settled} onClick={onMine}>
          Overwrite with mine
        </Button>
        <Button size="compact-sm" variant="default" disabled={!settled} onClick={onTheirs}>
          Use theirs
        </Button>
      </div>
    </div>
  );
}

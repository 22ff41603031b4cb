// An order that is not saved yet: save it, or throw it away; and if somebody was first, theirs or mine.
import { Button } from "@mantine/core";
import { useState } from "react";
import { orderRules } from "~/acts/policies";
import type { Problem } from "~/api/client";
import { askAgain } from "~/api/questions";
import type { PolicyList } from "~/protocol/openapi";
import { useSettled } from "~/widgets/settled";
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
      askAgain("/v1/policies");
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
      <p>The order is changed and not saved: the gateway still goes by the old one.</p>
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
          Put it back
        </Button>
      </div>
    </div>
  );
}

/** It takes the place of the bar by itself: a press meant for "Save order" must not answer it unread. */
function Theirs({ onMine, onTheirs }: { onMine: () => void; onTheirs: () => void }) {
  const settled = useSettled();
  return (
    <div className={classes.conflict} role="alert">
      <p>! Somebody changed the rules or their order while you did. Your order is kept here, not saved.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" disabled={!settled} onClick={onMine}>
          Go on with mine, over theirs
        </Button>
        <Button size="compact-sm" variant="default" disabled={!settled} onClick={onTheirs}>
          Take theirs
        </Button>
      </div>
    </div>
  );
}

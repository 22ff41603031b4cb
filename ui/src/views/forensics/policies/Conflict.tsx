// Two people at one rule: what it is now and what is here, side by side, and whose holds. Nothing is lost by asking.
import { Button } from "@mantine/core";
import type { RuleBody } from "~/protocol/openapi";
import { Diff } from "~/widgets/Diff";
import classes from "./Policies.module.css";
import { isSame, sentence, textOf } from "./rules";

export function Conflict({
  mine,
  theirs,
  onMine,
  onTheirs,
}: {
  mine: RuleBody;
  /** null when it was removed. */
  theirs: RuleBody | null;
  onMine: () => void;
  onTheirs: () => void;
}) {
  if (theirs === null)
    return (
      <div className={classes.conflict} role="alert">
        <p>
          ! Somebody removed this rule. Yours is kept here: test it and add it as a new one, or let it go.
        </p>
        <div className={classes.buttons}>
          <Button size="compact-sm" variant="default" onClick={onTheirs}>
            Let it go
          </Button>
        </div>
      </div>
    );
  return (
    <div className={classes.conflict} role="alert">
      <p>
        ! Somebody changed this rule while you did, and yours is not saved. Now it says: {sentence(theirs)}
      </p>
      {!isSame(mine, theirs) && (
        <Diff before={textOf(theirs)} after={textOf(mine)} label="From theirs to yours" />
      )}
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={onMine}>
          Go on with mine, over theirs
        </Button>
        <Button size="compact-sm" variant="default" onClick={onTheirs}>
          Take theirs
        </Button>
      </div>
    </div>
  );
}

// Edit conflict on a rule: the saved version and yours side by side. Nothing is lost either way.
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
          ! This rule was removed by someone else. Yours is kept here: test it and add it as a new rule, or
          discard it.
        </p>
        <div className={classes.buttons}>
          <Button size="compact-sm" variant="default" onClick={onTheirs}>
            {" "}
            Discard mine{" "}
          </Button>
        </div>
      </div>
    );
  return (
    <div className={classes.conflict} role="alert">
      <p>! Someone else changed this rule; yours is not saved. The saved version: {sentence(theirs)}</p>
      {!isSame(mine, theirs) && (
        <Diff before={textOf(theirs)} after={textOf(mine)} label="From theirs to yours" />
      )}
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={onMine}>
          Overwrite with mine
        </Button>
        <Button size="compact-sm" variant="default" onClick={onTheirs}>
          Use theirs
        </Button>
      </div>
    </div>
  );
}

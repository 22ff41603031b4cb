// Chain and log: how far the record is signed, by whom and before whom; and the one thing to do here, to verify all of
// it in this browser without believing the gateway.
import { useAnswer } from "~/api/questions";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Shown } from "~/widgets/Panel";
import { Checkpoints } from "./Checkpoints";
import classes from "./Log.module.css";
import { SecondOpinion } from "./SecondOpinion";
import { Keys, Witnesses } from "./Signers";
import { standing } from "./standing";
import { WholeLog } from "./WholeLog";

export function Log() {
  const log = useAnswer("/v1/audit/log", undefined, { every: 3_000 });
  return (
    <section className={classes.view} aria-label="Chain and log">
      <Shown asked={log} rows={8}>
        {(told) => {
          const { tone, mark, word, sentence } = standing(told);
          return (
            <>
              <header className={classes.head}>
                <h1>
                  {told.size.toLocaleString("en")} <small>events under a signed root</small>
                </h1>
                <p>
                  <Tag tone={tone}>
                    <span aria-hidden>{mark}</span> {word}
                  </Tag>{" "}
                  {sentence}{" "}
                  {told.signed_at && (
                    <span className={classes.faint}>
                      Signed <Ago at={told.signed_at} />.
                    </span>
                  )}
                </p>
              </header>
              {told.size === 0 ? (
                <Empty command="observatory demo">
                  Nothing is recorded yet. With the first message a chain begins, and within a second its
                  first checkpoint is signed; to see one:
                </Empty>
              ) : (
                <>
                  <WholeLog size={told.size} tenant={told.tenant_id} />
                  <div className={classes.below}>
                    <Checkpoints log={told} />
                    <aside className={classes.aside} aria-label="Who signs">
                      <Witnesses size={told.size} />
                      <Keys log={told} />
                      <SecondOpinion />
                    </aside>
                  </div>
                </>
              )}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

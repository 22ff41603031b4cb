// Chain and log: how much of the record is signed, by whom and witnessed by whom; and verification of all of
// it in this browser, independently of the gateway.
import { useApi } from "~/api/queries";
import { Ago } from "~/widgets/Figures";
import { Tag } from "~/widgets/Mark";
import { Empty, Loaded } from "~/widgets/Panel";
import { Checkpoints } from "./Checkpoints";
import classes from "./Log.module.css";
import { logStatus } from "./logStatus";
import { ServerVerification } from "./ServerVerification";
import { Keys, Witnesses } from "./Signers";
import { WholeLog } from "./WholeLog";

export function Log() {
  const log = useApi("/v1/audit/log", undefined, { every: 3_000 });
  return (
    <section className={classes.view} aria-label="Chain and log">
      <Loaded query={log} rows={8}>
        {(logState) => {
          const { tone, mark, word, sentence } = logStatus(logState);
          return (
            <>
              <header className={classes.head}>
                <h1>
                  {logState.size.toLocaleString("en")} <small>events under a signed root</small>
                </h1>
                <p>
                  <Tag tone={tone}>
                    <span aria-hidden>{mark}</span> {word}
                  </Tag>{" "}
                  {sentence}{" "}
                  {logState.signed_at && (
                    <span className={classes.faint}>
                      Signed <Ago at={logState.signed_at} />.
                    </span>
                  )}
                </p>
              </header>
              {logState.size === 0 ? (
                <Empty command="observatory demo">
                  No events yet. The chain starts with the first message, and its first checkpoint is signed
                  within a second; to see one:
                </Empty>
              ) : (
                <>
                  <WholeLog size={logState.size} tenant={logState.tenant_id} />
                  <div className={classes.below}>
                    <Checkpoints log={logState} />
                    <aside className={classes.aside} aria-label="Signers">
                      <Witnesses size={logState.size} />
                      <Keys log={logState} />
                      <ServerVerification />
                    </aside>
                  </div>
                </>
              )}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}
